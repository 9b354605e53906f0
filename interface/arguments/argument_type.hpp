// The type of an argument without its value, which decides the choice among templates and overloads.
#pragma once

#include <cstdint>
#include <string>

#include <bascule/interface/arguments/argument_value.hpp>
#include <bascule/interface/arguments/signature.hpp>

namespace bascule {

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
