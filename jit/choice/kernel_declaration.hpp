// What the text of a kernel says of its parameters before anything is compiled: for messages, and to read
// arguments by while it is open which function they mean.
#pragma once

#include <cstddef>
#include <string>

#include <bascule/interface/arguments/signature.hpp>
#include <bascule/jit/text/tokenizer.hpp>

namespace bascule {

/// Whether a kernel that is declared so can be called with this many arguments.
bool takes(const KernelDeclaration& declaration, std::size_t arguments);

/// "template <T, N> void scale(T* x, int n)".
std::string spell(const KernelDeclaration& declaration);

/// For a number of arguments that it takes. Types are as far as the text tells: which are pointers or views.
Signature signature_in_text(const KernelDeclaration& declaration, std::size_t arguments);

}  // namespace bascule
