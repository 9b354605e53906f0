// Code from elsewhere as an image: its kernels by the names that C++ has for them.
#pragma once

#include <vector>

#include <bascule/jit/compile/image.hpp>
#include <bascule/jit/link/code.hpp>

namespace bascule {

/// The kernels of an outline. `name` and `expression` are "ns::scale<float>"; of overloads, with their parameters:
/// "add(float*, int)".
std::vector<KernelImage> kernels_of(const CodeOutline& outline);

/// Throws: CompileError for what is neither PTX nor a cubin.
Image image_of_code(const Code& code);

}  // namespace bascule
