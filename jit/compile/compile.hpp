// Compiles a program with NVRTC: gives its kernels by their names, or an error at the user's own lines.
#pragma once

#include <bascule/jit/compile/nvrtc.hpp>
#include <bascule/jit/headers/header_manifest.hpp>
#include <bascule/jit/program/program.hpp>

namespace bascule {

/// Compiles what the program asks for; if it names no instances, all kernels that are not templates. Each kernel has
/// its signature. Caches nothing (see Cache) and calls no driver. `reached`: the headers that the program reads; null
/// if they are not known, and then no precompiled headers are used. Thread-safe. Throws: CompileError with the user's
/// own file and line; ArgumentError (value); LibraryError.
Image compile(const Program& program, const Nvrtc& nvrtc, const HeaderManifest* reached = nullptr);

}  // namespace bascule
