// The kernels of an image that its text does not spell: from macros, includes and explicit instantiations.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <bascule/jit/compile/image.hpp>
#include <bascule/jit/program/program.hpp>
#include <bascule/jit/text/tokenizer.hpp>

namespace bascule {

/// The lowered names of the kernels that this PTX defines.
std::vector<std::string> entries_of(std::string_view ptx);

/// A kernel of an image: its C++ name, "ns::add" or "scale<float>", and its lowered name.
struct EntryName {
    std::string name;  ///< empty if C++ has none
    std::string lowered_name;
    std::string overload;  ///< the expression that selects the overload; empty if its types are not known
};

/// The entries of the image's PTX that are not among its kernels. Omits instances of the text's templates, and entries of
/// anonymous namespaces, which no name expression reaches.
std::vector<EntryName> undeclared_entries(const Image& image, const std::vector<KernelDeclaration>& in_text);

/// If a macro opens a namespace around a kernel, the compiler does not find the name that the text has. The kernel gets
/// that name if nothing else in the text or in the image has the same last component.
void name_as_in_text(std::span<KernelImage> undeclared, const Image& image,
                     const std::vector<KernelDeclaration>& in_text);

/// Completes the names of an image that has all functions of its text. A kernel that shares its name only with device
/// functions gets that name as its expression. Kernels that the image has are removed from `absent`.
void name_sole_kernels(Image& image, const Program& program);

}  // namespace bascule
