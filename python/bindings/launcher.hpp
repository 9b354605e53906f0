// bascule.Launcher: `kernel[grid, block, stream, shared_bytes]`, an object whose call is a launch.
#pragma once

#include <optional>
#include <span>

#include <pybind11/pybind11.h>

#include <bascule/interface/launch_config.hpp>
#include <bascule/runtime/kernel.hpp>

namespace bascule::python {

/// How one Launcher launches; fixed when it is made.
struct LaunchPlan {
    LaunchConfig config;
    std::optional<StreamRef> stream;  ///< none: chosen from the arguments
    pybind11::object stream_object;   ///< kept alive with the launcher
    bool empty = false;               ///< forall(0): check everything, launch nothing
};

/// A new bascule.Launcher.
pybind11::object make_launcher(const Kernel& kernel, LaunchPlan plan);

/// Compiles and loads the kernel for the device, without the GIL.
const LoadedKernel& load(const Kernel& kernel, Device device);

/// Checks arguments against the kernel without launching; loads it if need be.
void check_arguments(const Kernel& kernel, std::span<PyObject* const> positional, PyObject* keyword_names);

void register_launcher(pybind11::module_& module);

}  // namespace bascule::python
