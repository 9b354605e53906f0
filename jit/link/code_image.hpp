// Makes an image of code that was compiled elsewhere: its kernels by their C++ names.
#pragma once

#include <vector>

#include <bascule/jit/compile/image.hpp>
#include <bascule/jit/link/code.hpp>

namespace bascule {

/// The kernels of an outline. `name` and `expression` are "ns::scale<float>"; for overloads they include the
/// parameters: "add(float*, int)".
std::vector<KernelImage> kernels_of(const CodeOutline& outline);

/// Throws: CompileError if it is neither PTX nor a cubin.
Image image_of_code(const Code& code);

}  // namespace bascule
