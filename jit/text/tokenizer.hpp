// Finds the __global__ functions of a text. The compiler decides everything else.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <bascule/jit/text/template_header.hpp>

namespace bascule {

/// One __global__ function as the text declares it.
struct KernelDeclaration {
    std::string name;  ///< qualified: "ns::scale"
    /// Names; empty strings where a parameter has none, or another declaration gives it another one.
    std::vector<std::string> parameters;
    std::vector<std::string> parameter_types;  ///< as written, one a parameter: "const T* __restrict__"
    std::uint32_t defaults = 0;                ///< how many parameters have a default argument
    /// Of a template; an abbreviated one's are named after their places: `auto:1`.
    std::vector<TemplateParameter> template_parameters;
    bool is_template = false;
    bool is_definition = false;   ///< has a body
    bool is_conditional = false;  ///< stands inside of an #if: the compiler may not see it
    int line = 1;                 ///< of its name, in the text, from 1
    bool is_divided = false;      ///< an #if chooses between some of its parameters: they cannot be read
    std::vector<int> lines;       ///< of each `__global__` and of each name, of all declarations of it
};

/// Every __global__ function of the text, in order. Comments, strings, raw strings and preprocessor lines do
/// not fool it; functions that macros make are not seen, and every branch of an #if is.
std::vector<KernelDeclaration> find_kernels(std::string_view text);

}  // namespace bascule
