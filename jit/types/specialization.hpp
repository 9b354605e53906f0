// From the types of arguments to the instance of a template that they mean.
//
// The rule: what was said explicitly comes first, then the arrays decide, then NumPy scalars, then Python
// numbers (bool, int, double), then the template's defaults; every other scalar is converted to what was
// chosen.
#pragma once

#include <span>
#include <string>
#include <utility>
#include <vector>

#include <bascule/interface/arguments/argument_type.hpp>
#include <bascule/interface/errors/error.hpp>
#include <bascule/jit/text/tokenizer.hpp>
#include <bascule/jit/types/type_pattern.hpp>

namespace bascule {

/// Template arguments that a person gave, each as C++ text: "float", "256".
struct TemplateArguments {
    std::vector<std::string> positional;
    std::vector<std::pair<std::string, std::string>> named;  ///< by template parameter

    bool empty() const noexcept { return positional.empty() && named.empty(); }
    bool operator==(const TemplateArguments&) const = default;
};

/// Text for every template parameter that is known; a pack has any number.
struct Deduction {
    struct Entry {
        bool known = false;
        std::vector<std::string> texts;
        std::vector<int> weak{};  ///< the Python numbers it was deduced from, where nothing else decided
    };
    std::vector<Entry> entries;  ///< one a template parameter
    int missing = -1;            ///< the first that is not known and has no default; -1 when none

    bool complete() const noexcept { return missing < 0; }
};

/// What is said explicitly, in its place. Throws: ArgumentError for too many, and for a name that the
/// template does not have.
Deduction place_explicit(const KernelDeclaration& kernel, const TemplateArguments& given);

/// Adds what the arguments say. `patterns` has one entry a function parameter. Throws: ArgumentError naming
/// both arguments and both types when two of them disagree.
Deduction deduce(const KernelDeclaration& kernel, std::span<const TypePattern> patterns,
                 std::span<const ArgumentType> arguments, Deduction from);

/// The error that says which template parameter cannot be deduced, and the explicit form that works.
ArgumentError missing_argument(const KernelDeclaration& kernel, std::span<const TypePattern> patterns,
                               std::span<const ArgumentType> arguments, const Deduction& deduction);

/// "ns::saxpy<float, 256>".
std::string instance_name(const KernelDeclaration& kernel, const Deduction& deduction);

/// The types of the function parameters, those of packs too, each for one argument.
std::vector<std::string> substituted_types(const KernelDeclaration& kernel, const Deduction& deduction);

/// The function parameter that argument `index` goes to: a pack takes all that are left over. -1 when there
/// is none.
int pattern_index(std::span<const TypePattern> patterns, std::size_t arguments, std::size_t index) noexcept;

/// "void (*)(float*, int)", of a kernel with these parameter types.
std::string function_pointer(std::span<const std::string> types);

/// The name expression that picks one of several functions of a name by its type, a function pointer.
std::string overload_expression(const std::string& kernel, const std::string& type);

}  // namespace bascule
