// bascule.Launcher: `kernel[grid, block, stream, shared_bytes]`, an object whose call is a launch.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include <pybind11/pybind11.h>

#include <bascule/interface/arguments/launch_config.hpp>
#include <bascule/runtime/kernels/kernel.hpp>

#include "launch/launch_options.hpp"

namespace bascule::python {

/// How one Launcher launches; fixed when it is made.
struct LaunchPlan {
    LaunchConfig config;              ///< where `work` is empty
    std::vector<std::uint64_t> work;  ///< threads along each axis: grid and block are chosen for them
    std::uint32_t shared_bytes = 0;   ///< with `work`
    std::optional<StreamRef> stream;  ///< none: chosen from the arguments
    pybind11::object stream_object;   ///< kept alive with the launcher
    std::shared_ptr<const LaunchOptions> options{};  ///< null: as usual
    bool configured = true;                          ///< false: `kernel.explain`, which says no grid
    LaunchSite site{};                               ///< where it was made, unless that is another launcher's

    /// forall(0): check everything, launch nothing.
    bool empty() const noexcept { return std::find(work.begin(), work.end(), 0) != work.end(); }
};

/// Where a launch without a stream of its own begins to look for one: on the device of what was entered last,
/// with its stream if that is one.
struct Beginning {
    Device device;
    std::optional<StreamRef> stream;
};
Beginning beginning_of(const LaunchPlan& plan);

/// The current stream, where it counts for a launch on `device`: none was given. Throws: ArgumentError for
/// one of another device.
std::optional<StreamRef> current_for(const LaunchPlan& plan, Device device);

/// A new bascule.Launcher.
pybind11::object make_launcher(const Kernel& kernel, LaunchPlan plan);

void register_launcher(pybind11::module_& module);

}  // namespace bascule::python
