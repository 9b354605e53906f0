// How cuda::std::span and mdspan lie in memory: their members are private, so objects of known content are
// compiled and the bytes that the compiler gives them are read.
#pragma once

#include <bascule/jit/compile/image.hpp>
#include <bascule/jit/compile/nvrtc.hpp>
#include <bascule/jit/headers/header_manifest.hpp>
#include <bascule/jit/text/program.hpp>

namespace bascule {

/// `compile`, which completes its images with what is read here (compile.hpp).
using CompileFunction = Image (*)(const Program&, const Nvrtc&, const HeaderManifest*);

/// Finds the layouts of the span and mdspan parameters of the image's kernels, and completes its signatures.
/// One compile for all of them, none where there are no such parameters. A type whose bytes the compiler does
/// not give stays without a layout. Throws: LibraryError.
void read_view_layouts(Image& image, const Program& program, const Nvrtc& nvrtc, CompileFunction compile);

}  // namespace bascule
