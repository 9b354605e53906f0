// What a kernel declares: its parameters' C++ types, with sizes and alignments as the compiler gave them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <bascule/interface/arrays/plain_array.hpp>
#include <bascule/interface/types/dtype.hpp>

namespace bascule {

/// Where a view that we did not lay out ourselves keeps what it knows: read from the compiler's output.
struct ViewLayout {
    struct Slot {
        int axis = 0;
        std::uint32_t offset = 0;

        bool operator==(const Slot&) const = default;
    };
    std::uint32_t pointer = 0;      ///< the data pointer's offset
    std::uint32_t index_bytes = 8;  ///< of one extent or stride
    std::vector<Slot> extents{};    ///< of the axes whose extent is not part of the type
    std::vector<Slot> strides{};    ///< in elements

    bool operator==(const ViewLayout&) const = default;
};

/// One parameter's type, reduced to what an argument is checked against. A value.
struct ParameterType {
    enum class Kind : std::uint8_t {
        scalar,       ///< bool, integers, enumerations, floats down to fp8 and smaller, complex
        pointer,      ///< T*; `any_element` for void*
        array_view,   ///< bascule::array_view<T, rank>
        masked_view,  ///< bascule::masked_view<T, rank>: takes masks
        vector,       ///< float4 and its like, and cuda::std::array, by value: `lanes` times `dtype`
        span,         ///< cuda::std::span, cuda::std::mdspan with a layout of CCCL's
        structure,    ///< a trivially copyable class
        opaque,       ///< anything else passed by value: bytes
        untyped,      ///< of code without C++ types: dtype.itemsize bytes of whatever they are
    };
    /// The elements of a pointer or a view, where they have no dtype.
    enum class Element : std::uint8_t {
        named,      ///< `dtype` (times `lanes`)
        any,        ///< void
        structure,  ///< a trivially copyable class of dtype.itemsize bytes: `element` names it
        pointer,    ///< an address: arrays of uint64
        opaque,     ///< a type without a dtype: dtype.itemsize is its size, 0 where it is not known
        function,
    };
    /// In which order a span's or an mdspan's elements must lie.
    enum class Order : std::uint8_t { right, left, strided };

    /// What a 64-bit integer stands for, where the text says it: `cudaTextureObject_t`, `cudaSurfaceObject_t`.
    enum class Image : std::uint8_t { none, texture, surface };

    Kind kind = Kind::opaque;
    Image image = Image::none;
    Element element_kind = Element::named;
    DType dtype;    ///< of the scalar, of the elements, of one lane
    int lanes = 0;  ///< of a vector type or cuda::std::array, by value or as element; 0: not one
    /// The extents of the elements of a pointer to arrays, such as `float (*)[3][4]`; their product is `lanes`.
    std::vector<std::int64_t> row{};
    bool character = false;       ///< plain `char`: takes i1 and u1
    bool constant = false;        ///< the elements are const: read-only arrays are welcome
    int rank = 1;                 ///< of a view or span
    std::uint32_t alignment = 1;  ///< of one element, in bytes (pointers, views), or of the value
    std::string element;          ///< the elements' C++ type without const: "Particle"

    Order order = Order::right;  ///< span alone
    DType index;                 ///< span alone: the type of extents
    std::vector<std::int64_t>
        static_extents{};                ///< span alone: one an axis, -1 where it is chosen at run time
    std::optional<ViewLayout> layout{};  ///< span alone: empty until it was read

    bool operator==(const ParameterType&) const = default;
};

/// Which parameter of which kernel a view came in by. Views that check their bounds carry it into the kernel,
/// so that a report can name them: 8 bytes as they are.
struct ViewTag {
    std::uint32_t kernel = 0;  ///< tag_of(its name)
    std::int32_t parameter = 0;

    bool operator==(const ViewTag&) const = default;
};

/// A hash of a kernel's name.
std::uint32_t tag_of(std::string_view kernel) noexcept;

/// One parameter of a kernel.
struct Parameter {
    std::string name;      ///< "x"; "arg2" where the text gives none
    std::string spelling;  ///< the C++ type as a person writes it: "const float*"
    ParameterType type;
    std::uint32_t bytes = 0;      ///< sizeof
    std::uint32_t alignment = 1;  ///< alignof
    std::uint32_t offset = 0;     ///< in the parameter buffer
    /// What most parameters are: a pointer to numbers, or a number, of exactly `type.dtype`. Set by lay_out.
    PlainTraits plain = takes_none;
    ViewTag tag;

    bool operator==(const Parameter&) const = default;
};

/// A kernel's whole parameter list.
struct Signature {
    std::string kernel;  ///< qualified name: "ns::saxpy<float>"
    std::vector<Parameter> parameters;
    std::uint32_t bytes = 0;     ///< of the parameter buffer
    std::uint32_t defaults = 0;  ///< parameters that have a default argument in C++; for messages

    /// Index of the parameter called `name`, or -1.
    int find(std::string_view name) const noexcept;
};

/// Whether nothing but its size is known, and an address has that size.
inline bool may_be_pointer(const ParameterType& declared) noexcept {
    return declared.kind == ParameterType::Kind::untyped && declared.dtype.itemsize == sizeof(std::uint64_t);
}

/// Whether an address is what it takes, null included.
inline bool takes_addresses(const ParameterType& declared) noexcept {
    return declared.kind == ParameterType::Kind::pointer || may_be_pointer(declared);
}

/// Whether arrays are what it takes.
inline bool takes_arrays(const ParameterType& declared) noexcept {
    using Kind = ParameterType::Kind;
    return declared.kind == Kind::pointer || declared.kind == Kind::array_view ||
           declared.kind == Kind::masked_view || declared.kind == Kind::span || may_be_pointer(declared);
}

/// Whether it can hold the handle of a texture or a surface: an integer of 64 bits.
inline bool can_hold_handle(const ParameterType& declared) noexcept {
    return (declared.kind == ParameterType::Kind::scalar &&
            declared.dtype == DType{DType::Kind::unsigned_integer, 8}) ||
           may_be_pointer(declared);
}

/// Whether a texture or a surface is what it takes, and nothing else.
inline bool takes_images(const ParameterType& declared) noexcept {
    return declared.image != ParameterType::Image::none;
}

/// Fills in what follows from the rest: the offsets and the total, each parameter aligned as the compiler said,
/// `plain`, and the tags.
void lay_out(Signature& signature) noexcept;

/// Appended to a message about missing arguments: that default arguments are not used. Empty without any.
std::string_view advice_on_defaults(std::uint32_t defaults) noexcept;

/// "void saxpy(float a, const float* x, float* y)".
std::string to_string(const Signature& signature);

}  // namespace bascule
