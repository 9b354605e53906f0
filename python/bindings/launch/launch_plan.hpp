// How a launcher launches: its configuration, its stream and its options.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include <pybind11/pybind11.h>

#include <bascule/interface/arguments/launch_config.hpp>
#include <bascule/runtime/faults/launch_history.hpp>
#include <bascule/runtime/streams/stream.hpp>

#include "launch/launch_options.hpp"

namespace bascule::python {

/// Fixed when the launcher is made. A value.
struct LaunchPlan {
    LaunchConfig config;              ///< where `work` is empty
    std::vector<std::uint64_t> work;  ///< threads along each axis: grid and block are chosen for them
    std::uint32_t shared_bytes = 0;   ///< with `work`
    std::optional<StreamRef> stream;  ///< none: chosen from the arguments
    pybind11::object stream_object;   ///< kept alive with the launcher
    std::shared_ptr<const LaunchOptions> options{};  ///< null: as usual
    bool configured = true;                          ///< false: no grid is known, for `explain` and `prepare`
    LaunchSite site{};                               ///< where it was made, unless that is another launcher's

    /// False: everything is checked and nothing is launched, as with `forall(0)`.
    bool launches() const noexcept {
        return configured && std::find(work.begin(), work.end(), 0) == work.end();
    }
};

/// With grid and block given; `stream` as users pass streams. Throws: ArgumentError for what is not a stream.
LaunchPlan to_plan(LaunchConfig config, const pybind11::object& stream);

/// Where a launch begins to look for its device and its stream: the stream given, else what was entered last.
struct LaunchStart {
    Device device;
    std::optional<StreamRef> stream;
};
LaunchStart start_of(const LaunchPlan& plan);

/// The current stream, where it counts for a launch on `device`: none was given. Throws: ArgumentError for one of
/// another device.
std::optional<StreamRef> current_for(const LaunchPlan& plan, Device device);

}  // namespace bascule::python
