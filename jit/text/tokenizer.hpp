// Finds the __global__ functions of a text. The compiler determines everything else.
#pragma once

#include <string_view>

#include <bascule/jit/text/template_header.hpp>

namespace bascule {

/// One __global__ function as the text declares it.
struct KernelDeclaration {
    std::string name;  ///< qualified: "ns::scale"
    /// The parameters' names; empty for a parameter that has no name, or different names in several declarations.
    std::vector<std::string> parameters;
    /// The types as written, one for each parameter: "const T* __restrict__".
    std::vector<std::string> parameter_types;
    std::uint32_t defaults = 0;  ///< how many parameters have a default argument
    /// The template's parameters; those of an abbreviated template are named by their positions: `auto:1`.
    std::vector<TemplateParameter> template_parameters;
    bool is_template = false;
    bool is_definition = false;   ///< has a body
    bool is_conditional = false;  ///< inside an #if: the compiler may not see it
    bool is_redeclared = false;   ///< the text also has a declaration of it without a body
    int line = 1;                 ///< of its name, in the text, from 1
    bool is_divided = false;      ///< an #if chooses between some of its parameters: they cannot be read
    std::vector<int> lines;       ///< of each `__global__` and each name in all its declarations
};

/// All __global__ functions of the text, in order. Ignores comments, strings, raw strings and preprocessor lines. Does
/// not see functions that macros make; sees all branches of an #if.
std::vector<KernelDeclaration> find_kernels(std::string_view text);

}  // namespace bascule
