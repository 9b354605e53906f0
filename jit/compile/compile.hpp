// A program through NVRTC: its kernels by their names, or an error at the user's own lines.
#pragma once

#include <bascule/jit/compile/image.hpp>
#include <bascule/jit/compile/nvrtc.hpp>
#include <bascule/jit/headers/header_manifest.hpp>
#include <bascule/jit/text/program.hpp>

namespace bascule {

/// What the program asks for, each kernel with its signature; of a text alone every kernel that is not a template.
/// Remembers nothing: that is Cache's work. Asks no driver. `reached`: the headers that it will read, without which there
/// are not precompiled ones; null when they are not known. Thread-safe. Throws: CompileError with the user's own file and
/// line; ArgumentError (value); LibraryError.
Image compile(const Program& program, const Nvrtc& nvrtc, const HeaderManifest* reached = nullptr);

}  // namespace bascule
