// bascule.Launcher, which `kernel[grid, block, stream, shared_bytes]` makes and whose call launches, and bascule.BoundLaunch.
#pragma once

#include <bascule/runtime/kernels/kernel.hpp>

#include "launch/launch_plan.hpp"

namespace bascule::python {

class LaunchState;  // prepared_launch.hpp
struct CallArguments;
struct KernelObject;  // known_launchers.hpp
struct LauncherKey;   // launcher_key.hpp

/// Makes a bascule.Launcher whose site is the line that is running.
py::object make_launcher(const Kernel& kernel, LaunchPlan plan);
/// The same, with the site `plan.site`. The kernel caches the launcher by `key` if it can.
py::object make_known_launcher(const KernelObject& self, LaunchPlan plan, const LauncherKey& key);

/// Makes a launcher for kernel[grid, block], kernel[grid, block, stream], kernel[grid, block, stream, shared_bytes],
/// kernel[LaunchConfig] or kernel[LaunchConfig, stream]. Throws: ArgumentError for any other key.
py::object launcher_of(const KernelObject& self, const py::object& key);

/// Makes a bascule.BoundLaunch, which keeps `launcher` alive and uses its state. Throws: as a launch with these
/// arguments before it is issued.
py::object make_bound_launch(py::object launcher, LaunchState& state, const CallArguments& arguments);

/// The state of a launcher, valid as long as the launcher. Throws: TypeError for an object of another class.
const LaunchState& state_of_launcher(py::handle launcher);

}  // namespace bascule::python
