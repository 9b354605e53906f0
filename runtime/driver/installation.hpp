// Describes what this program runs on: the device, the driver, NVRTC and the CUDA headers; and what the driver can load.
#pragma once

#include <string>

#include <bascule/jit/compile/nvrtc_search.hpp>

namespace bascule {

/// Returns four lines that begin with `device`, `driver`, `nvrtc` and `headers`. Each names what
/// was found and its path, or says why it is missing and how to fix that. This is for logs and bug reports; programs
/// should query Device and catch errors instead. Opens the driver and NVRTC if they are not open, and makes no context.
/// Thread-safe; throws nothing but std::bad_alloc.
std::string describe_installation();

/// Returns which images the driver can load: the process's driver or, if none is initialised, the driver that would be
/// chosen. That one is asked only for its version, so compiling needs no device. There is no limit without a driver,
/// nor for the emulated device, which reads the PTX of every version, unless BASCULE_EMULATED_DRIVER names a version.
/// Thread-safe; throws nothing but std::bad_alloc.
DriverLimit driver_limit();

}  // namespace bascule
