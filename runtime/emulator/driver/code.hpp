// What launches need of loaded code.
#pragma once

#include <vector>

#include "driver/process.hpp"

namespace emulated::driver {

/// The addresses of the library's variables in a context, by index; made and initialised at the first
/// request.
const std::vector<memory::DeviceAddress>& globals_of(Library& library, Context& context);

/// Dynamic shared memory that a launch of this kernel may ask for, in bytes.
int max_dynamic_shared_bytes(const KernelHandle& handle) noexcept;

}  // namespace emulated::driver
