// Deduces the instance of a template from the types of the arguments.
//
// The order of precedence: explicit template arguments, arrays, NumPy scalars, Python numbers (bool, int, double), the
// template's defaults. All other scalars are converted to the chosen types.
#pragma once

#include <bascule/interface/arguments/argument_value.hpp>
#include <bascule/interface/errors/error.hpp>
#include <bascule/jit/program/program.hpp>
#include <bascule/jit/templates/kernel_declaration.hpp>

namespace bascule {

/// The text of each known template parameter; a pack may have any number of texts.
struct Deduction {
    struct Entry {
        bool known = false;
        std::vector<std::string> texts;
        std::vector<int> weak{};  ///< the Python numbers that it was deduced from, if nothing else decided
    };
    std::vector<Entry> entries;  ///< one for each template parameter
    int missing = -1;            ///< the first that is not known and has no default; -1 if there is none

    bool complete() const noexcept { return missing < 0; }
};

/// The explicit arguments by template parameter. Throws: ArgumentError for too many, and for an unknown name.
Deduction place_explicit(const KernelDeclaration& kernel, const TemplateArguments& given);

/// Adds the template parameters that follow from the arguments. `patterns` has one entry for each function parameter.
/// Throws: ArgumentError that names both arguments and both types if two of them disagree.
Deduction deduce(const KernelDeclaration& kernel, std::span<const TypePattern> patterns,
                 std::span<const ArgumentType> arguments, Deduction from);

/// The error that names the template parameter that cannot be deduced, and an explicit form that works.
ArgumentError missing_argument(const KernelDeclaration& kernel, std::span<const TypePattern> patterns,
                               std::span<const ArgumentType> arguments, const Deduction& deduction);

/// "ns::saxpy<float, 256>".
std::string instance_name(const KernelDeclaration& kernel, const Deduction& deduction);

/// The types of the function parameters; packs are expanded to one type for each argument.
std::vector<std::string> substituted_types(const KernelDeclaration& kernel, const Deduction& deduction);

/// "void (*)(float*, int)", the type of a pointer to a kernel with these parameter types.
std::string function_pointer(std::span<const std::string> types);

/// The name expression that selects one of several functions of a name by its type, a function pointer.
std::string overload_expression(const std::string& kernel, const std::string& type);

}  // namespace bascule
