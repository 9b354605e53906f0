// What launches need of loaded code.
#pragma once

#include <memory>

#include "driver/process.hpp"

namespace emulated::driver {

/// The library's variables in a context; made and initialised at the first request. Null when there is no
/// memory for them.
std::shared_ptr<const Instance> instance_of(Library& library, Context& context);
/// Loads a kernel, or (null) the variables, of a library into a context where that has not happened yet: with lazy
/// loading.
void load_part(Library& library, const program::Kernel* kernel, const Context& context);
void load_kernel(const KernelHandle& handle, const Context& context);
bool is_loaded(Library& library, const program::Kernel* kernel, const Context& context);

/// The error of a call for which there is none, with a report.
CUresult no_room_for_variables(const Library& library, const Context& context);

/// Dynamic shared memory that a launch of this kernel on this device may ask for, in bytes.
int max_dynamic_shared_bytes(const KernelHandle& handle, int device) noexcept;

/// The handle of a kernel, made at its first request. `context` is null for a CUkernel.
KernelHandle* handle_of(const std::shared_ptr<Library>& library, const program::Kernel& kernel,
                        Context* context);

}  // namespace emulated::driver
