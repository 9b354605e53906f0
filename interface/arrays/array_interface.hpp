// The fields of `__cuda_array_interface__`, versions 0 to 3, as values; and the validated view that they
// make. Sources: the CUDA Array Interface texts, versions 0, 2 and 3; NumPy's array interface for typestr.
#pragma once

#include <memory>

#include <bascule/interface/arrays/producer_stream.hpp>
#include <bascule/interface/types/dimensions.hpp>
#include <bascule/interface/types/dtype.hpp>
#include <bascule/interface/types/struct_layout.hpp>

namespace bascule {

/// The fields as a producer gave them. Only their Python types are checked. Borrows `typestr` from the reader.
struct RawInterface {
    std::int64_t version = 3;
    bool accept_newer = false;  ///< a later version than 3 is read by the rules of version 3
    Dimensions shape;
    std::string_view typestr;
    std::uint64_t pointer = 0;
    bool pointer_is_none = false;  ///< `data[0]` was None, which is valid only for an empty array
    bool readonly = false;
    bool has_strides = false;               ///< false for missing and for None: C order
    Dimensions strides;                     ///< bytes
    std::optional<std::uint64_t> stream{};  ///< empty for missing and for None
};

struct MaskView;  // mask.hpp

/// A validated array, which a kernel can take. Borrows the memory; owns nothing.
struct ArrayView {
    std::uint64_t pointer = 0;  ///< the first logical element, as the device sees it; may be 0 when empty
    DType dtype;
    bool readonly = false;
    bool in_constant_memory = false;  ///< a `__constant__` variable: copies can write it, kernels cannot
    /// Axes of extent 1 may have any stride; empty arrays are contiguous in every order.
    bool c_contiguous = false;
    bool f_contiguous = false;
    ProducerStream stream;
    std::uint64_t size = 1;    ///< elements
    std::int64_t version = 3;  ///< of the interface it was read from
    Dimensions shape;
    Dimensions strides;                            ///< bytes, always filled in
    std::shared_ptr<const StructLayout> layout{};  ///< of the elements, if `descr` names their fields
    std::shared_ptr<const MaskView> mask{};        ///< which elements are valid; null: all of them

    int ndim() const noexcept { return shape.size(); }
    bool empty() const noexcept { return size == 0; }
    bool contiguous() const noexcept { return c_contiguous || f_contiguous; }
    bool writable_by_kernels() const noexcept { return !readonly && !in_constant_memory; }
};

/// Checks a descriptor against the interface's texts: version, shape, typestr, pointer, strides, stream. Throws:
/// ArgumentError whose message names the key and the value.
ArrayView validate(const RawInterface& raw);

/// Whether the elements are contiguous in C order or, if `c_order` is false, in Fortran order.
bool is_packed(const ArrayView& view, bool c_order) noexcept;
/// Sets `c_contiguous` and `f_contiguous` from size, shape and strides.
void find_contiguity(ArrayView& view) noexcept;

/// Throws an ArgumentError that names the field, its value, and why the value is wrong.
using FailField = void (*)(const char* field, const std::string& got, const std::string& why);
/// Returns the number of elements: 0 if an extent is 0. Calls `fail` for 'shape' if an extent is negative, or if the
/// bytes do not fit 63 bits.
std::uint64_t count_elements(const Dimensions& shape, std::uint32_t itemsize, FailField fail);

/// Whether all bytes of a non-empty array have addresses below 2**64; `too_far`: one axis alone spans 2**63 or more.
enum class Reach : std::uint8_t { fits, leaves, too_far };
Reach reach_of(const ArrayView& view) noexcept;

/// Strides in bytes of a C-contiguous array.
Dimensions c_strides(const Dimensions& shape, std::uint32_t itemsize) noexcept;

/// "a float64 array of shape (1000,)"; adds the strides if it is not C-contiguous, and says if it is read-only, masked
/// or in constant memory.
std::string describe(const ArrayView& view);

}  // namespace bascule
