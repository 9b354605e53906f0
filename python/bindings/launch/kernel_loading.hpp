// Kernels compiled, chosen and loaded for Python: without the GIL, and with the compiler's warnings issued.
#pragma once

#include <optional>
#include <span>

#include <bascule/interface/arguments/argument.hpp>
#include <bascule/runtime/kernels/kernel.hpp>

namespace bascule::python {

/// The kernel's one function where it is not a template and has no overloads, else the kernel itself; compiles to know.
/// Throws: CompileError, LibraryError.
Kernel resolve_function(const Kernel& kernel, Device device);

/// The function that the values mean; compiles it if need be. Throws: as Kernel::for_arguments.
Kernel choose_function(const Kernel& kernel, std::span<const ArgumentValue> values, Device device);

/// Compiles a function for the device, and loads nothing. Throws: CompileError, LibraryError.
KernelImage compile(const Kernel& function, Device device);

/// Compiles and loads a function for the device. Throws: ArgumentError for a kernel that is none; CompileError,
/// LibraryError; CudaError, also where it is not loaded and a capture does not allow it: of `stream`, or of the
/// current one.
const LoadedKernel& load(const Kernel& function, Device device, std::optional<StreamRef> stream = {});

}  // namespace bascule::python
