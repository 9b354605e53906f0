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
    std::string name;                          ///< qualified: "ns::scale"
    std::vector<std::string> parameters;       ///< names; empty strings where a parameter has none
    std::vector<std::string> parameter_types;  ///< as written, one a parameter: "const T* __restrict__"
    std::uint32_t defaults = 0;                ///< how many parameters have a default argument
    /// Of a template; an abbreviated one's are named after their places: `auto:1`.
    std::vector<TemplateParameter> template_parameters;
    bool is_template = false;
    bool is_definition = false;  ///< has a body
    int line = 1;                ///< in the text, from 1
};

/// Every __global__ function of the text, in order. Comments, strings, raw strings and preprocessor lines do
/// not fool it; functions that macros make are not seen.
std::vector<KernelDeclaration> find_kernels(std::string_view text);

}  // namespace bascule
