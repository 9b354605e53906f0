// The __device__ and __constant__ variables of loaded code, as arrays that the host reads and writes.
#pragma once

#include <string>

#include <bascule/interface/arrays/array_interface.hpp>
#include <bascule/jit/types/variable.hpp>
#include <bascule/runtime/kernels/kernel.hpp>

namespace bascule {

/// A variable in a device's memory. The module owns the memory: keep it, or one of its kernels. A value; any thread may use it. Copies (memory.hpp) are ordered like any array's: by the stream.
struct Global {
    Variable variable;
    std::uint64_t address = 0;
    Device device;
    bool in_constant_memory = false;  ///< a `__constant__` variable

    /// What a kernel or a copy takes. Read-only where the variable is declared const; __constant__ alone is
    /// for the kernels: copies, conversions and fills (elementwise.hpp) write it.
    ArrayView view() const;
};

/// The variable that all kernels of `kernel`'s module have on this device. `name` is qualified ("ns::table",
/// "scale<float>"), or a last component that only one variable of the text has. Compiles and loads the kernel if need be, and
/// asks the compiler for the variable's type once. Throws: CompileError for a name that is not a variable of the text
/// ("did you mean 'table'?"), and for a managed variable, or one with a function's address, that no loaded kernel uses;
/// LibraryError, CudaError.
Global find_global(const Kernel& kernel, const std::string& name, Device device = Device::current());

/// The same, without a kernel to load first: where no loaded kernel uses the variable, it is loaded with the module's own
/// functions, or alone.
Global find_global(const Module& module, const std::string& name, Device device = Device::current());

}  // namespace bascule
