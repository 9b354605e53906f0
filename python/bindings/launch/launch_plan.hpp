// How a launcher launches: its configuration, its stream and its options.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <bascule/interface/arguments/argument.hpp>
#include <bascule/interface/arguments/launch_config.hpp>
#include <bascule/runtime/faults/launch_history.hpp>
#include <bascule/runtime/streams/stream.hpp>

#include "support/pybind.hpp"

namespace bascule::python {

/// What `kernel[grid, block].options(...)` says. A value.
struct LaunchOptions {
    bool peer = false;                                       ///< arrays of other devices are taken
    bool sync = true;                                        ///< the arrays' streams are waited for
    std::vector<std::pair<std::string, StreamRef>> streams;  ///< of arrays that name none, by parameter
    pybind11::object kept;                                   ///< the owners of those streams

    /// The stream that the caller named for a parameter; null without one.
    const StreamRef* stream_of(const std::string& parameter) const noexcept;
};

/// Null where nothing is asked for. `base` is what was asked for before; None leaves an option as it is
/// there. Throws: ArgumentError that names the option.
std::shared_ptr<const LaunchOptions> to_options(const std::shared_ptr<const LaunchOptions>& base,
                                                const pybind11::object& peer, const pybind11::object& sync,
                                                const pybind11::object& streams);

/// Before the arguments are set: whether their streams count.
void prepare_pack(ArgumentPack& pack, const LaunchOptions* options);
/// After the arguments were set: the streams that the caller named join the producers. Throws: ArgumentError
/// for a name that no parameter has.
void add_named_streams(ArgumentPack& pack, const LaunchOptions* options, Device home);

/// Fixed when the launcher is made. A value.
struct LaunchPlan {
    LaunchConfig config;              ///< where `work` is empty
    std::vector<std::uint64_t> work;  ///< threads along each axis: grid and block are chosen for them
    std::uint32_t shared_bytes = 0;   ///< with `work`
    std::optional<StreamRef> stream;  ///< none: chosen from the arguments
    pybind11::object stream_object;   ///< kept alive with the launcher; LaunchState::stream_object has it
    std::shared_ptr<const LaunchOptions> options{};  ///< null: as usual
    bool configured = true;                          ///< false: no grid is known, for `explain` and `prepare`
    LaunchSite site{};                               ///< where it was made, unless that is another launcher's
    std::weak_ptr<Stream> lent_stream{};  ///< in place of `stream_object`, of a launcher that is known

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
