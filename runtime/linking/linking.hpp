// Modules that are not one CUDA C++ text: code that was compiled elsewhere, and several texts that are linked.
#pragma once

#include <string>
#include <variant>
#include <vector>

#include <bascule/jit/link/code.hpp>
#include <bascule/runtime/kernels/kernel.hpp>

namespace bascule {

/// A file of PTX, a cubin or LTO-IR. Throws: Error naming the path; ArgumentError for what is none of these.
Code read_code(const std::string& path);
/// The same from memory; `name` is for messages. Throws: ArgumentError for what is none of these.
Code code_from_bytes(std::string bytes, std::string name = "<bytes>");

/// Code as a module, loaded for `device` now. Kernels have the names and the types that their mangled names tell: "ns::scale<float>", and with
/// their parameters where they are overloaded, "add(float*, int)"; the mangled name finds them too. Kernels that are
/// `extern "C"`, and parameters of types that a name does not tell, are checked by their sizes. LTO-IR becomes machine
/// code (on the emulated device PTX) by nvJitLink. The emulated device runs PTX alone. Throws: CompileError for code
/// that cannot be read or that the driver refuses; ArgumentError for code that does not run on the device;
/// LibraryError without nvJitLink; CudaError.
Module load_module(Code code, Device device = Device::current());
Module load_module(const std::string& path, Device device = Device::current());

/// What can be linked: a text; a module, whose own options and name expressions hold, and whose text is compiled anew;
/// code from elsewhere.
using LinkPart = std::variant<Source, Module, Code>;

/// One module of several parts: what one of them declares `extern`, another one defines. Texts are compiled with these
/// options and -rdc=true, each into the cache by its own key, and what is linked is cached by what all of them are.
/// nvJitLink links for a GPU where it is installed beside NVRTC, the driver elsewhere. Templates are instantiated where
/// their own part names them. Throws: CompileError, also for a name that is defined twice, or needed and not defined,
/// with the names of the texts; ArgumentError without parts; LibraryError, CudaError.
Module link(const std::vector<LinkPart>& parts, const CompileOptions& options = {},
            Cache& cache = Cache::process_default(), Device device = Device::current());

}  // namespace bascule
