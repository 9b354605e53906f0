// `kernel[grid, block].explain(...)`: what a launch would do, without doing it; and what displays show of launchers.
#pragma once

#include "launch/prepared_launch.hpp"
#include "support/pybind.hpp"

namespace bascule::python {

/// A bascule.Explanation of the launch with these arguments: prepared as every launch is, and not enqueued. Throws:
/// what the launch would throw before its first operation.
pybind11::object explain_launch(LaunchState& state, const CallArguments& arguments);

/// A dict: kernel, config (None where no grid is known yet), work, shared_bytes, stream, peer, sync, streams. `config`
/// is the chosen one, or null. Asks the driver nothing.
pybind11::dict launch_facts(const LaunchState& state, const Kernel& kernel, const LaunchConfig* config);

}  // namespace bascule::python
