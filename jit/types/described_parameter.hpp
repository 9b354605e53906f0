// A parameter's C++ type, as the demangler writes it, to what an argument is checked against.
#pragma once

#include <cstdint>

#include <bascule/interface/arguments/signature.hpp>
#include <bascule/jit/types/demangled_type.hpp>

namespace bascule {

/// What the compiler says of a type, beside its name: form_of in the prelude.
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

/// `whole` is of the parameter, `element` of what it points to or views: the compiler's, or `facts_of_name`'s.
ParameterType describe_parameter(const DemangledType& type, TypeFacts whole, TypeFacts element);

/// What the name alone tells: sizes of numbers, of CUDA's vector types, complex numbers and arrays of those, and of
/// pointers. No bytes for any other type.
TypeFacts facts_of_name(const DemangledType& type);

}  // namespace bascule
