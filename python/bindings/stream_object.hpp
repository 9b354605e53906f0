// bascule.Stream and bascule.Event, and whatever else people pass as a stream.
#pragma once

#include <memory>
#include <optional>

#include <pybind11/pybind11.h>

#include <bascule/runtime/event.hpp>
#include <bascule/runtime/stream.hpp>

namespace bascule::python {

/// bascule.Stream: owns its stream, or borrows one that somebody else keeps alive.
struct StreamObject {
    std::shared_ptr<Stream> owned;  ///< null when borrowed
    StreamRef ref;
    pybind11::object foreign;  ///< whoever owns a borrowed one, if known
};

/// bascule.Event.
struct EventObject {
    Event event;
};

/// A stream from a bascule.Stream, an integer handle (0: the default stream), or any object with
/// `__cuda_stream__`, `.ptr`,
/// `.cuda_stream` or `.handle`; nothing from None. Throws: ArgumentError that names `stream` and the forms.
std::optional<StreamRef> to_stream(pybind11::handle object, Device device);

/// The device's default stream.
StreamRef default_stream(Device device) noexcept;

void bind_streams(pybind11::module_& module);

}  // namespace bascule::python
