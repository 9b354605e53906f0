// A kernel's parameters as the text declares them, before anything is compiled: for messages, and for reading
// arguments before it is known which function they mean.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <bascule/interface/arguments/signature.hpp>
#include <bascule/jit/text/tokenizer.hpp>

namespace bascule {

/// "scale" of "ns::scale<int>".
inline std::string_view last_component(std::string_view name) noexcept {
    name = name.substr(0, name.find('<'));
    const std::size_t colons = name.rfind("::");
    return colons == std::string_view::npos ? name : name.substr(colons + 2);
}

/// Whether a kernel with this declaration can be called with this many arguments.
bool takes(const KernelDeclaration& declaration, std::size_t arguments);

/// The names of so many parameters, of which each of these declarations, which take them, may be meant: empty where two
/// disagree.
std::vector<std::string> parameter_names(std::span<const KernelDeclaration* const> declarations,
                                         std::size_t parameters);

/// "template <T, N> void scale(T* x, int n)".
std::string spell(const KernelDeclaration& declaration);

/// For a number of arguments that all of them take, with the names that they agree on. Of the first one's types only this
/// is known: which are pointers or views.
Signature signature_in_text(std::span<const KernelDeclaration* const> declarations, std::size_t arguments);

}  // namespace bascule
