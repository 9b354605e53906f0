// bascule.Launcher: `kernel[grid, block, stream, shared_bytes]`, an object whose call is a launch.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include <pybind11/pybind11.h>

#include <bascule/interface/launch_config.hpp>
#include <bascule/runtime/kernel.hpp>

namespace bascule::python {

/// How one Launcher launches; fixed when it is made.
struct LaunchPlan {
    LaunchConfig config;              ///< where `work` is empty
    std::vector<std::uint64_t> work;  ///< threads along each axis: grid and block are chosen for them
    std::uint32_t shared_bytes = 0;   ///< with `work`
    std::optional<StreamRef> stream;  ///< none: chosen from the arguments
    pybind11::object stream_object;   ///< kept alive with the launcher
    LaunchSite site{};                ///< where it was made, unless that is another launcher's

    /// forall(0): check everything, launch nothing.
    bool empty() const noexcept { return std::find(work.begin(), work.end(), 0) != work.end(); }
};

/// A new bascule.Launcher.
pybind11::object make_launcher(const Kernel& kernel, LaunchPlan plan);

void register_launcher(pybind11::module_& module);

}  // namespace bascule::python
