// A kernel's parameters as the text declares them, before anything is compiled: for messages, and for reading
// arguments before it is known which function they mean.
#pragma once

#include <cstddef>
#include <string>

#include <bascule/interface/arguments/signature.hpp>
#include <bascule/jit/text/tokenizer.hpp>

namespace bascule {

/// Whether a kernel with this declaration can be called with this many arguments.
bool takes(const KernelDeclaration& declaration, std::size_t arguments);

/// "template <T, N> void scale(T* x, int n)".
std::string spell(const KernelDeclaration& declaration);

/// For a number of arguments that it takes. Of the types only this is known: which are pointers or views.
Signature signature_in_text(const KernelDeclaration& declaration, std::size_t arguments);

}  // namespace bascule
