// How launches are ordered where a caller wants it otherwise: `peer`, `sync` and `streams`.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <pybind11/pybind11.h>

#include <bascule/interface/arguments/argument.hpp>
#include <bascule/runtime/streams/stream.hpp>

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

}  // namespace bascule::python
