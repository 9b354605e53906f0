// Finds the memory layout of cuda::std::span and mdspan. Their members are private, so a probe compiles objects with
// known values, and the compiler's initial bytes are read.
#pragma once

#include <bascule/jit/compile/image.hpp>
#include <bascule/jit/compile/nvrtc.hpp>
#include <bascule/jit/headers/header_manifest.hpp>
#include <bascule/jit/program/program.hpp>

namespace bascule {

/// The type of `compile` (compile.hpp), which calls this function to complete its images.
using CompileFunction = Image (*)(const Program&, const Nvrtc&, const HeaderManifest*);

/// Finds the layouts of the span and mdspan parameters of the image's kernels, and completes its signatures. Takes one
/// compile for all of them, and none if there are no such parameters. If the compiler does not give the bytes of a
/// type, the type has no layout. Throws: LibraryError.
void read_view_layouts(Image& image, const Program& program, const Nvrtc& nvrtc, CompileFunction compile);

}  // namespace bascule
