// One program through NVRTC: its kernels by their names, or an error at the user's own lines.
#pragma once

#include <bascule/jit/compile/image.hpp>
#include <bascule/jit/compile/nvrtc.hpp>
#include <bascule/jit/headers/header_manifest.hpp>
#include <bascule/jit/text/program.hpp>

namespace bascule {

/// What Compiler::compile gives, without the layouts of span and mdspan parameters (view_probe.hpp). `reached`: the
/// headers that it will read; null when they are not known. Throws: CompileError, ArgumentError (value), LibraryError.
Image compile_once(const Program& program, const Nvrtc& nvrtc, const HeaderManifest* reached);

}  // namespace bascule
