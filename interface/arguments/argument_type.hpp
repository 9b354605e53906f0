// What an argument's type says, without its value: from this, templates and overloads are chosen.
#pragma once

#include <cstdint>
#include <string>

#include <bascule/interface/arguments/argument_value.hpp>
#include <bascule/interface/arguments/signature.hpp>

namespace bascule {

/// The part of an argument that decides which instance of a template it goes to. A small value.
struct ArgumentType {
    enum class Kind : std::uint8_t {
        array,          ///< of `dtype`, with `rank` dimensions
        strong_scalar,  ///< a NumPy scalar of `dtype`
        weak_scalar,  ///< a Python number: `dtype` is what C++ would make of it (int, double, bool, complex)
        none,         ///< a null pointer, a raw address, bytes: says nothing about a type
    };
    Kind kind = Kind::none;
    DType dtype;
    std::int32_t rank = 0;
    bool readonly = false;  ///< kernels must not write it
    bool masked = false;

    bool operator==(const ArgumentType&) const = default;
};

ArgumentType type_of(const ArgumentValue& value) noexcept;

/// The CUDA C++ type that a template parameter becomes for elements or scalars of this dtype: "float"; two
/// opaque bytes, as producers export bfloat16, are "__nv_bfloat16". Empty when there is none.
std::string_view element_name(DType dtype) noexcept;

/// "a float32 array", "the int 3's int": how messages name what a type was taken from.
std::string describe(const ArgumentType& type);

/// How well an argument of this type goes to a parameter, whatever its value: C++'s ranks of conversions, the
/// better ones later. All names of a dtype are one type here.
enum class Fit : std::uint8_t {
    none,              ///< it is refused
    class_conversion,  ///< to a class: complex, or bytes
    pointer_to_const,  ///< any array for const void*
    conversion,        ///< another kind of number; any array for void*
    promotion,  ///< int8 to int, float to double; a Python number to another type of its kind; an array of
                ///< float for float4*
    added_qualifiers,  ///< int* to const volatile int*
    added_qualifier,   ///< int* to const int*
    exact,
};
Fit fit(const ArgumentType& argument, const Parameter& parameter) noexcept;

}  // namespace bascule
