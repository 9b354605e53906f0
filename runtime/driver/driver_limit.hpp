// The driver's version, which decides what the compiler may produce.
#pragma once

#include <bascule/jit/compile/nvrtc_search.hpp>

namespace bascule {

/// Returns which images the driver can load: the process's driver or, if none is initialised, the driver that would be
/// chosen. That one is asked only for its version, so compiling needs no device. There is no limit without a driver,
/// nor for the emulated device, which reads the PTX of every version, unless BASCULE_EMULATED_DRIVER names a version.
/// Thread-safe; throws nothing but std::bad_alloc.
DriverLimit driver_limit();

}  // namespace bascule
