// The __device__ and __constant__ variables of loaded code, as arrays that the host can read and write.
#pragma once

#include <bascule/interface/arrays/array_interface.hpp>
#include <bascule/jit/variables/variable.hpp>
#include <bascule/runtime/kernels/kernel.hpp>

namespace bascule {

/// A variable in a device's memory. The module owns the memory: keep the module, or one of its kernels. A value type;
/// any thread may use it. Copies (memory.hpp) are ordered by the stream, like those of any array.
struct Global {
    Variable variable;
    std::uint64_t address = 0;
    Device device;
    bool in_constant_memory = false;  ///< a `__constant__` variable

    /// A view for kernels and copies. Read-only if the variable is declared const. __constant__ alone makes it
    /// read-only for kernels only: copies, conversions and fills (elementwise.hpp) can write it.
    ArrayView view() const;
};

/// The variable that all kernels of `kernel`'s module share on this device. `name` is qualified ("ns::table",
/// "scale<float>"), or a last component that is unique in the text. Compiles and loads the kernel if necessary, and
/// asks the compiler for the variable's type once. Throws: CompileError if the text has no such variable ("did you mean
/// 'table'?"), or if no loaded kernel uses it and it is managed or holds a function's address; LibraryError, CudaError.
Global find_global(const Kernel& kernel, const std::string& name, Device device = Device::current());

/// The same without a kernel to load first. If no loaded kernel uses the variable, it is loaded with the module's own
/// functions, or alone.
Global find_global(const Module& module, const std::string& name, Device device = Device::current());

}  // namespace bascule
