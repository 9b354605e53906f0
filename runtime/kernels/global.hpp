// The __device__ and __constant__ variables of loaded code, as arrays that the host reads and writes.
#pragma once

#include <string>

#include <bascule/interface/arrays/array_interface.hpp>
#include <bascule/jit/types/variable.hpp>
#include <bascule/runtime/kernels/kernel.hpp>

namespace bascule {

/// A variable in a device's memory. The module of the kernel that it was asked of owns the memory: keep one
/// of them. A value; any thread may use it. Copies (memory.hpp) are ordered like any array's: by the stream.
struct Global {
    Variable variable;
    std::uint64_t address = 0;
    Device device;
    bool in_constant_memory = false;  ///< a `__constant__` variable

    /// What a kernel or a copy takes. Read-only where the variable is declared const; __constant__ alone is
    /// for the kernels: copies, conversions and fills (elementwise.hpp) write it.
    ArrayView view() const;
};

/// The copy that `kernel` uses: each compiled image has its own variables, and so has each device. `name` is
/// qualified ("ns::table", "scale<float>"), or a last component that only one variable of the text has.
/// Compiles and loads the kernel if need be, and asks the compiler for the variable's type once.
/// Throws: CompileError for a name that is not a variable of the text ("did you mean 'table'?"), and for one
/// that no kernel uses, so that the compiler left it out; LibraryError, CudaError.
Global find_global(const Kernel& kernel, const std::string& name, Device device = Device::current());

/// The copy that all kernels of a module share. Throws: as above; ArgumentError where the module has
/// templates, whose instances are images of their own.
Global find_global(const Module& module, const std::string& name, Device device = Device::current());

}  // namespace bascule
