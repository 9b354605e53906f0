// bascule.Launcher: `kernel[grid, block, stream, shared_bytes]`, an object whose call is a launch; and bascule.BoundLaunch,
// which has its arguments too.
#pragma once

#include <bascule/runtime/kernels/kernel.hpp>

#include "launch/launch_plan.hpp"
#include "support/pybind.hpp"

namespace bascule::python {

class LaunchState;  // prepared_launch.hpp
struct CallArguments;
struct KernelObject;  // known_launchers.hpp
struct LauncherKey;   // launcher_key.hpp

/// A new bascule.Launcher, made at the line that runs now.
pybind11::object make_launcher(const Kernel& kernel, LaunchPlan plan);
/// The same, made at `plan.site`. The kernel knows it from now on by `key`, where it can.
pybind11::object make_known_launcher(const KernelObject& self, LaunchPlan plan, const LauncherKey& key);

/// A launcher for kernel[grid, block], kernel[grid, block, stream], kernel[grid, block, stream, shared_bytes],
/// kernel[LaunchConfig] or kernel[LaunchConfig, stream]. Throws: ArgumentError for any other key.
pybind11::object launcher_of(const KernelObject& self, const pybind11::object& key);

/// A new bascule.BoundLaunch, which keeps `launcher`, whose state it uses. Throws: whatever a launch with these arguments
/// would throw before it is issued.
pybind11::object make_bound_launch(pybind11::object launcher, LaunchState& state,
                                   const CallArguments& arguments);

/// Lives as long as the launcher. Throws: TypeError for an object of another class.
const LaunchState& state_of_launcher(pybind11::handle launcher);

}  // namespace bascule::python
