// A kernel's parameters as the text declares them, before anything is compiled: for messages, and for reading arguments
// before the function is chosen.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <bascule/interface/arguments/signature.hpp>
#include <bascule/jit/text/tokenizer.hpp>

namespace bascule {

/// Returns "scale" for "ns::scale<int>".
inline std::string_view last_component(std::string_view name) noexcept {
    name = name.substr(0, name.find('<'));
    const std::size_t colons = name.rfind("::");
    return colons == std::string_view::npos ? name : name.substr(colons + 2);
}

/// Whether a kernel with this declaration can be called with this many arguments.
bool takes(const KernelDeclaration& declaration, std::size_t arguments);

/// The names of the parameters, if any of `declarations` may be meant. All must accept this number of parameters. A
/// name is empty if two of them disagree.
std::vector<std::string> parameter_names(std::span<const KernelDeclaration* const> declarations,
                                         std::size_t parameters);

/// "template <T, N> void scale(T* x, int n)".
std::string spell(const KernelDeclaration& declaration);

/// A signature for this number of arguments, which all declarations must accept, with the names on which they agree.
/// The types tell only which parameters are pointers or views; they come from the text of the first declaration.
Signature signature_in_text(std::span<const KernelDeclaration* const> declarations, std::size_t arguments);

}  // namespace bascule
