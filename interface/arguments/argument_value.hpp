// One argument as the caller passed it, before it is compared with a parameter, and its type, which decides the choice
// among templates and overloads.
#pragma once

#include <cstddef>
#include <variant>

#include <bascule/interface/arguments/signature.hpp>
#include <bascule/interface/arrays/array_interface.hpp>

namespace bascule {

/// A scalar before its conversion to a declared type. `kind` tells which member has the value.
struct Scalar {
    enum class Kind : std::uint8_t { boolean, integer, unsigned_integer, huge_integer, floating, complex };
    Kind kind = Kind::integer;
    bool boolean = false;
    std::int64_t integer = 0;            ///< Kind::integer: any int that fits
    std::uint64_t unsigned_integer = 0;  ///< Kind::unsigned_integer: above the largest int64
    /// The value if `kind` is floating. If it is huge_integer: the nearest double, because the integer is beyond 64
    /// bits.
    double floating = 0;
    double real = 0, imaginary = 0;  ///< Kind::complex
    /// The type of the value, for a NumPy scalar; empty for Python's own numbers.
    std::optional<DType> dtype{};
};

/// A device address that the user vouches for.
struct RawPointer {
    std::uint64_t address = 0;
};

/// Bytes for an opaque parameter of exactly that size.
struct RawBytes {
    std::span<const std::byte> bytes;
};

/// A Python tuple for a vector type or a struct. Its elements are numbers; arrays, addresses and null pointers
/// (`std::monostate`) for members that are pointers; and tuples for members that are arrays or structs.
struct TupleArgument {
    using Element =
        std::variant<std::monostate, Scalar, RawPointer, std::shared_ptr<const ArrayView>, TupleArgument>;
    std::vector<Element> elements;
};

/// A structure by value, with the layout of its fields.
struct StructuredScalar {
    std::span<const std::byte> bytes;
    std::shared_ptr<const StructLayout> layout;
    LayoutSource source = LayoutSource::dtype;
};

/// A texture or surface object, and the array that it accesses, whose stream the launch is ordered with.
struct ImageArgument {
    std::uint64_t handle = 0;
    bool is_surface = false;
    ArrayView array;
};

/// A tensor map: the bytes of its CUtensorMap for a parameter by value, and the address of a copy in device memory for
/// a pointer. The launch is ordered with the map's array. Borrows the bytes.
struct TensorMapArgument {
    const std::byte* encoded = nullptr;  ///< the CUtensorMap: tensor_map_bytes bytes
    std::uint64_t address = 0;           ///< in the memory of the launch's device; 0: there is no copy
    ArrayView array;
};

/// One argument. `std::monostate` is a null pointer (Python's None). Borrows bytes.
using ArgumentValue = std::variant<std::monostate, ArrayView, Scalar, RawPointer, RawBytes, TupleArgument,
                                   StructuredScalar, ImageArgument, TensorMapArgument>;

/// The part of an argument that decides which instance of a template is used. A small value type.
struct ArgumentType {
    enum class Kind : std::uint8_t {
        array,          ///< elements of `dtype`, with `rank` dimensions
        strong_scalar,  ///< a NumPy scalar of `dtype`; a texture or surface counts as uint64
        weak_scalar,    ///< a Python number; `dtype` is that of the C++ type int, double, bool or complex
        none,           ///< no type: null pointers, raw addresses, bytes, tuples, structured scalars
    };
    Kind kind = Kind::none;
    DType dtype;
    std::int32_t rank = 0;
    bool readonly = false;  ///< kernels must not write to it
    bool masked = false;

    bool operator==(const ArgumentType&) const = default;
};

ArgumentType type_of(const ArgumentValue& value) noexcept;

/// The CUDA C++ type that a template parameter gets for this dtype: "float". Two opaque bytes give "__nv_bfloat16",
/// because producers export bfloat16 so. Empty if there is no such type.
std::string_view element_name(DType dtype) noexcept;

/// "a float32 array": the argument in messages.
std::string describe(const ArgumentType& type);

/// How well a parameter takes arguments of this type, in C++'s ranks of conversions from worst to best. All C++ types
/// with the same dtype count as one type.
enum class ConversionRank : std::uint8_t {
    none,              ///< the argument is refused
    class_conversion,  ///< to a class: complex, or bytes
    pointer_to_const,  ///< any array for const void*
    conversion,        ///< to another kind of number; any array for void*
    promotion,         ///< int8 to int, float to double, a Python int to short; a float array for float4*
    added_qualifiers,  ///< int* to const volatile int*
    added_qualifier,   ///< int* to const int*
    exact,
};
ConversionRank rank_of(const ArgumentType& argument, const Parameter& parameter) noexcept;

}  // namespace bascule
