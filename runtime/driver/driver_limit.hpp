// The driver's version, for the choice of a compiler.
#pragma once

#include <bascule/jit/compile/nvrtc_choice.hpp>

namespace bascule {

/// What the driver of this process loads, or the one that it would take, which is asked for its version and not
/// initialised: compiling needs no device. No limit where there is no driver, and none for the emulated device, which reads the PTX of
/// every version, unless BASCULE_EMULATED_DRIVER names one. Thread-safe; throws nothing but std::bad_alloc.
DriverLimit driver_limit();

}  // namespace bascule
