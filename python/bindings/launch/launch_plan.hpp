// How a launcher launches: its configuration, its stream and its options.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include <bascule/interface/arguments/argument.hpp>
#include <bascule/interface/arguments/launch_config.hpp>
#include <bascule/runtime/faults/launch_history.hpp>
#include <bascule/runtime/streams/stream.hpp>

#include "support/pybind.hpp"

namespace bascule::python {

/// The options that `kernel[grid, block].options(...)` sets. A value type.
struct LaunchOptions {
    bool peer = false;                                       ///< arrays of other devices are accepted
    bool sync = true;                                        ///< the arrays' streams are waited for
    std::vector<std::pair<std::string, StreamRef>> streams;  ///< for arrays that name none, by parameter
    py::object kept;                                         ///< the owners of those streams

    /// The stream that the caller named for a parameter; null if none.
    const StreamRef* stream_of(const std::string& parameter) const noexcept;
};

/// Returns `base` (null: the defaults) with the options that are not None. Null if the result has only defaults.
/// Throws: ArgumentError that names the option.
std::shared_ptr<const LaunchOptions> to_options(const std::shared_ptr<const LaunchOptions>& base,
                                                const py::object& peer, const py::object& sync,
                                                const py::object& streams);

/// Call this before the arguments are set. Makes the pack ignore their streams if the options say so.
void prepare_pack(ArgumentPack& pack, const LaunchOptions* options);
/// Call this after the arguments are set. Adds the streams that the caller named to the pack's producers. Throws:
/// ArgumentError for a name that no parameter has.
void add_named_streams(ArgumentPack& pack, const LaunchOptions* options, Device home);

/// The part of a launch that is fixed when its launcher is made. A value type.
struct LaunchPlan {
    LaunchConfig config;              ///< used if `work` is empty
    std::vector<std::uint64_t> work;  ///< threads along each axis: grid and block are chosen for them
    std::uint32_t shared_bytes = 0;   ///< used with `work`
    std::optional<StreamRef> stream;  ///< empty: chosen at each launch
    py::object stream_object;         ///< kept alive with the launcher; see LaunchState::stream_object
    std::shared_ptr<const LaunchOptions> options{};  ///< null: the defaults
    bool configured = true;                          ///< false: no grid is known, for `explain` and `prepare`
    LaunchSite site{};                               ///< the line that made the launcher
    std::weak_ptr<Stream> lent_stream{};             ///< replaces `stream_object` in a cached launcher

    /// If false, a call checks everything and launches nothing, as with `forall(0)`.
    bool launches() const noexcept {
        return configured && std::find(work.begin(), work.end(), 0) == work.end();
    }
};

/// Makes a plan. `stream` is a stream object of the user, or None. Throws: ArgumentError if it is not a stream.
LaunchPlan to_plan(LaunchConfig config, const py::object& stream);

/// The device and the stream of a launch before its arguments are read: the given stream, else the stream or device
/// that was entered last, else the current device.
struct LaunchStart {
    Device device;
    std::optional<StreamRef> stream;
};
LaunchStart start_of(const LaunchPlan& plan);

/// The current stream, if it determines the stream of a launch on `device`. Empty if a stream was given or none is
/// current. Throws: ArgumentError if the current stream belongs to another device.
std::optional<StreamRef> current_for(const LaunchPlan& plan, Device device);

}  // namespace bascule::python
