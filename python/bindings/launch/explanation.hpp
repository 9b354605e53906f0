// `kernel[grid, block].explain(...)`, which describes a launch without issuing it, and the facts that displays show of
// launchers.
#pragma once

#include "launch/prepared_launch.hpp"
#include "support/pybind.hpp"

namespace bascule::python {

/// Returns a bascule.Explanation of the launch with these arguments, which is prepared like every launch but not
/// enqueued. Throws: as the launch before its first operation.
py::object explain_launch(LaunchState& state, const CallArguments& arguments);

/// Returns a dict: kernel, config (None if no grid is known yet), work, shared_bytes, stream, peer, sync, streams.
/// `config` is the chosen configuration, or null.
py::dict launch_facts(const LaunchState& state, const Kernel& kernel, const LaunchConfig* config);

}  // namespace bascule::python
