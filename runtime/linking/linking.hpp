// Modules that are not one CUDA C++ text: precompiled code, and several linked texts.
#pragma once

#include <string>
#include <variant>
#include <vector>

#include <bascule/jit/link/code.hpp>
#include <bascule/runtime/kernels/kernel.hpp>

namespace bascule {

/// Reads a file of PTX, a cubin or LTO-IR. Throws: Error naming the path; ArgumentError for another format.
Code read_code(const std::string& path);
/// The same from memory; `name` is for messages. Throws: ArgumentError for another format.
Code code_from_bytes(std::string bytes, std::string name = "<bytes>");

/// Makes a module from code and loads it for `device`. Kernels have the names and types that their mangled names
/// encode: "ns::scale<float>", or with parameters if overloaded, "add(float*, int)". They can also be found by the
/// mangled name. Kernels that are `extern "C"`, and parameters whose types a name does not encode, are checked by size.
/// nvJitLink compiles LTO-IR to machine code (to PTX for the emulated device). The emulated device runs only PTX.
/// Throws: CompileError for code that cannot be read or that the driver refuses; ArgumentError for code that does not
/// run on the device; LibraryError without nvJitLink; CudaError.
Module load_module(Code code, Device device = Device::current());
Module load_module(const std::string& path, Device device = Device::current());

/// A part to link: a text; a module, whose text is recompiled with its own options and name expressions; or precompiled code.
using LinkPart = std::variant<Source, Module, Code>;

/// Links several parts to one module: one part may declare a symbol `extern` that another defines. Texts are compiled
/// with these options and -rdc=true. Each is cached by its own key, and the linked image by the code of all parts. If
/// nvJitLink is installed next to NVRTC, it links for GPUs; otherwise the driver does. Templates are instantiated in
/// the part that names them. Throws: CompileError, also for a symbol that is defined twice, or used and not defined,
/// with the names of the texts; ArgumentError without parts; LibraryError, CudaError.
Module link(const std::vector<LinkPart>& parts, const CompileOptions& options = {},
            Cache& cache = Cache::process_default(), Device device = Device::current());

}  // namespace bascule
