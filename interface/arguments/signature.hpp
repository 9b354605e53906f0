// A kernel's parameters: their C++ types, and the sizes and alignments that the compiler reported.
#pragma once

#include <vector>

#include <bascule/interface/arrays/plain_array.hpp>
#include <bascule/interface/arrays/tensor_map.hpp>

namespace bascule {

/// The offsets of the pointer, extents and strides in a view of another library, as read from the compiler's output.
struct ViewLayout {
    struct Slot {
        int axis = 0;
        std::uint32_t offset = 0;

        bool operator==(const Slot&) const = default;
    };
    std::uint32_t pointer = 0;      ///< the data pointer's offset
    std::uint32_t index_bytes = 8;  ///< the size of one extent or stride
    std::vector<Slot> extents{};    ///< of the axes whose extent is not part of the type
    std::vector<Slot> strides{};    ///< in elements

    bool operator==(const ViewLayout&) const = default;
};

/// One parameter's type, as far as arguments are checked against it. A value type.
struct ParameterType {
    enum class Kind : std::uint8_t {
        scalar,       ///< bool, integers, enumerations, floats down to fp8 and smaller, complex
        pointer,      ///< T*; Element::any for void*
        array_view,   ///< bascule::array_view<T, rank>
        masked_view,  ///< bascule::masked_view<T, rank>: takes masks
        vector,       ///< a vector type such as float4, or cuda::std::array, by value: `lanes` times `dtype`
        span,         ///< cuda::std::span, or cuda::std::mdspan with one of CCCL's layouts
        structure,    ///< a class that can be copied as bytes
        opaque,       ///< any other type passed by value: bytes
        untyped,      ///< in code without C++ types: dtype.itemsize bytes
    };
    /// The kind of elements of a pointer or a view.
    enum class Element : std::uint8_t {
        named,      ///< `dtype` (times `lanes`)
        any,        ///< void
        structure,  ///< a class of dtype.itemsize bytes that can be copied as bytes: `element` names it
        pointer,    ///< an address: arrays of uint64
        opaque,     ///< a type without a dtype: dtype.itemsize is its size, 0 if unknown
        function,
    };
    /// The memory order that a span or an mdspan requires of its elements.
    enum class Order : std::uint8_t { right, left, strided };

    /// Whether a 64-bit integer is a `cudaTextureObject_t` or a `cudaSurfaceObject_t`, by its spelling in the text.
    enum class Image : std::uint8_t { none, texture, surface };

    Kind kind = Kind::opaque;
    Image image = Image::none;
    Element element_kind = Element::named;
    DType dtype;    ///< of the scalar, of the elements, of one lane
    int lanes = 0;  ///< of a vector type or cuda::std::array, by value or as element; 0: not one
    /// The extents of the elements of a pointer to arrays, such as `float (*)[3][4]`; their product is `lanes`.
    std::vector<std::int64_t> row{};
    bool character = false;       ///< plain `char`: takes i1 and u1
    bool constant = false;        ///< the elements are const: read-only arrays are accepted
    int rank = 1;                 ///< of a view or span
    std::uint32_t alignment = 1;  ///< of one element, in bytes (pointers, views), or of the value
    std::string element;          ///< the elements' C++ type without const: "Particle"

    Order order = Order::right;                  ///< span alone
    DType index;                                 ///< span alone: the type of extents
    std::vector<std::int64_t> static_extents{};  ///< span alone: one per axis, -1 if it is set at run time
    std::optional<ViewLayout> layout{};          ///< span alone: empty until it was read

    bool operator==(const ParameterType&) const = default;
};

/// Identifies the kernel and the parameter that a view is passed to. Views with bounds checks contain these 8 bytes,
/// so that a report can name the parameter.
struct ViewTag {
    std::uint32_t kernel = 0;  ///< tag_of(the kernel's name)
    std::int32_t parameter = 0;

    bool operator==(const ViewTag&) const = default;
};

/// A hash of a kernel's name.
std::uint32_t tag_of(std::string_view kernel) noexcept;

/// One parameter of a kernel.
struct Parameter {
    std::string name;      ///< "x"; "arg2" if the text gives none
    std::string spelling;  ///< the C++ type as programs write it: "const float*"
    ParameterType type;
    std::uint32_t bytes = 0;      ///< sizeof
    std::uint32_t alignment = 1;  ///< alignof
    std::uint32_t offset = 0;     ///< in the parameter buffer
    /// The traits for the fast path, if this is a pointer to numbers or a number of `type.dtype`. Set by lay_out.
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

/// Whether the parameter is untyped and has the size of an address.
inline bool may_be_pointer(const ParameterType& declared) noexcept {
    return declared.kind == ParameterType::Kind::untyped && declared.dtype.itemsize == sizeof(std::uint64_t);
}

/// Whether the parameter takes addresses, null included.
inline bool takes_addresses(const ParameterType& declared) noexcept {
    return declared.kind == ParameterType::Kind::pointer || may_be_pointer(declared);
}

/// Whether the parameter takes arrays.
inline bool takes_arrays(const ParameterType& declared) noexcept {
    using Kind = ParameterType::Kind;
    return declared.kind == Kind::pointer || declared.kind == Kind::array_view ||
           declared.kind == Kind::masked_view || declared.kind == Kind::span || may_be_pointer(declared);
}

/// Whether the parameter can hold the handle of a texture or a surface: an integer of 64 bits.
inline bool can_hold_handle(const ParameterType& declared) noexcept {
    return (declared.kind == ParameterType::Kind::scalar &&
            declared.dtype == DType{DType::Kind::unsigned_integer, 8}) ||
           may_be_pointer(declared);
}

/// Whether the parameter takes only textures or surfaces.
inline bool takes_images(const ParameterType& declared) noexcept {
    return declared.image != ParameterType::Image::none;
}

/// Whether the parameter can hold a tensor map: it is a class of 128 bytes by value.
inline bool can_hold_tensor_map(const Parameter& parameter) noexcept {
    using enum ParameterType::Kind;
    const ParameterType::Kind kind = parameter.type.kind;
    return parameter.bytes == tensor_map_bytes && (kind == structure || kind == opaque || kind == untyped);
}

/// Whether the parameter can point to a tensor map: it is a pointer to a class of 128 bytes or to void, or untyped and
/// of the size of an address.
inline bool can_point_to_tensor_map(const ParameterType& declared) noexcept {
    using Element = ParameterType::Element;
    if (declared.kind != ParameterType::Kind::pointer) return may_be_pointer(declared);
    return declared.element_kind == Element::any ||
           ((declared.element_kind == Element::structure || declared.element_kind == Element::opaque) &&
            declared.dtype.itemsize == tensor_map_bytes);
}

/// Whether the parameter's type, or what it points to, is the driver's CUtensorMap, by its name.
bool names_tensor_map(const Parameter& parameter) noexcept;

/// Computes the offsets and the total size from the sizes and alignments, and sets `plain` and `tag` of each parameter.
void lay_out(Signature& signature) noexcept;

/// The end of a message about missing arguments. Says that defaults are not used; empty if `defaults` is 0.
std::string_view advice_on_defaults(std::uint32_t defaults) noexcept;

/// "void saxpy(float a, const float* x, float* y)".
std::string to_string(const Signature& signature);

}  // namespace bascule
