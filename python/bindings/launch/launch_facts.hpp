// How a launcher or a bound launch launches, for displays.
#pragma once

#include <pybind11/pybind11.h>

#include "launch/prepared_launch.hpp"

namespace bascule::python {

/// A dict: kernel, config (None where no grid is known yet), work, shared_bytes, stream, peer, sync, streams. `config`
/// is the chosen one, or null. Asks the driver nothing.
pybind11::dict launch_facts(const LaunchState& state, const Kernel& kernel, const LaunchConfig* config);

}  // namespace bascule::python
