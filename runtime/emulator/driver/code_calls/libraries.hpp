// Parts of loaded code that launches need.
#pragma once

#include <memory>

#include "driver/process.hpp"

namespace emulated::driver {

/// The library's variables in a context, allocated and initialised at the first request. Null if out of memory.
std::shared_ptr<const Instance> instance_of(Library& library, Context& context);
/// Loads a kernel of a library, or the variables if `kernel` is null, into a context if lazy loading has not done so yet.
void load_part(Library& library, const program::Kernel* kernel, const Context& context);
void load_kernel(const KernelHandle& handle, const Context& context);
bool is_loaded(Library& library, const program::Kernel* kernel, const Context& context);

/// Reports that device memory is too small for the library's variables, and returns CUDA_ERROR_OUT_OF_MEMORY.
CUresult no_room_for_variables(const Library& library, const Context& context);

/// The maximum dynamic shared memory of a launch of this kernel on this device, in bytes.
int max_dynamic_shared_bytes(const KernelHandle& handle, int device) noexcept;

/// The handle of a kernel, made at its first request. `context` is null for a CUkernel.
KernelHandle* handle_of(const std::shared_ptr<Library>& library, const program::Kernel& kernel,
                        Context* context);

}  // namespace emulated::driver
