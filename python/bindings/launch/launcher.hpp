// bascule.Launcher: `kernel[grid, block, stream, shared_bytes]`, an object whose call is a launch.
#pragma once

#include <pybind11/pybind11.h>

#include <bascule/runtime/kernels/kernel.hpp>

#include "launch/launch_plan.hpp"

namespace bascule::python {

/// A new bascule.Launcher.
pybind11::object make_launcher(const Kernel& kernel, LaunchPlan plan);
pybind11::object make_launcher_at(LaunchSite site, const Kernel& kernel, LaunchPlan plan);

void register_launcher(pybind11::module_& module);

}  // namespace bascule::python
