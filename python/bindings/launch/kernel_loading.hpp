// Compiles, chooses and loads kernels for Python: without the GIL, and with the compiler's warnings issued.
#pragma once

#include <optional>
#include <span>

#include <bascule/interface/arguments/argument.hpp>
#include <bascule/runtime/kernels/kernel.hpp>

namespace bascule::python {

/// Returns the kernel's function if it is not a template and has no overloads; else the kernel itself. Compiles if that
/// is necessary to know. Throws: CompileError, LibraryError.
Kernel resolve_function(const Kernel& kernel, Device device);

/// Returns the function that the argument values choose, and compiles it if necessary. Throws: as Kernel::for_arguments.
Kernel choose_function(const Kernel& kernel, std::span<const ArgumentValue> values, Device device);

/// Compiles a function for the device without loading it. Throws: CompileError, LibraryError.
KernelImage compile(const Kernel& function, Device device);

/// Compiles and loads a function for the device. Throws: ArgumentError for a template or overloads; CompileError, LibraryError;
/// CudaError, also if the function is not loaded yet and a capture of `stream` (by default the current stream) forbids loading.
const LoadedKernel& load(const Kernel& function, Device device, std::optional<StreamRef> stream = {});

}  // namespace bascule::python
