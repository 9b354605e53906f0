// What launches need of loaded code.
#pragma once

#include <memory>

#include "driver/process.hpp"

namespace emulated::driver {

/// The library's variables in a context; made and initialised at the first request. Null when there is no
/// memory for them.
std::shared_ptr<const Instance> instance_of(Library& library, Context& context);

/// Dynamic shared memory that a launch of this kernel on this device may ask for, in bytes.
int max_dynamic_shared_bytes(const KernelHandle& handle, int device) noexcept;

}  // namespace emulated::driver
