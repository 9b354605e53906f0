// Converts a parameter's C++ type, as the demangler writes it, to the type that arguments are checked against.
#pragma once

#include <bascule/interface/arguments/signature.hpp>
#include <bascule/jit/signatures/demangled_type.hpp>

namespace bascule {

/// The kind of type that the compiler reports in addition to its name; see form_of in the prelude.
enum class TypeForm : std::uint8_t {
    named,
    signed_enumeration,
    unsigned_enumeration,
    bool_enumeration,
    structure,
    union_type,
    other_class,
    unknown,
};

/// Size, alignment and form of a type.
struct TypeFacts {
    std::uint32_t bytes = 0;
    std::uint32_t alignment = 1;
    TypeForm form = TypeForm::unknown;
};

/// `whole` describes the parameter, `element` what it points to or views. They come from the compiler or from
/// `facts_of_name`.
ParameterType describe_parameter(const DemangledType& type, TypeFacts whole, TypeFacts element);

/// The facts that follow from the name alone, for numbers, CUDA's vector types, complex numbers, arrays of those, and
/// pointers. `bytes` is 0 for other types.
TypeFacts facts_of_name(const DemangledType& type);

}  // namespace bascule
