// bascule.Stream and bascule.Event, and other objects that name a stream.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include <bascule/runtime/streams/event.hpp>
#include <bascule/runtime/streams/stream.hpp>

#include "classes/collected.hpp"
#include "support/pybind.hpp"

namespace bascule::python {

/// bascule.Stream: owns its stream, or borrows one.
struct StreamObject {
    std::shared_ptr<Stream> owned;  ///< null when borrowed
    StreamRef ref;
    pybind11::object foreign;  ///< the owner of a borrowed stream, if known
    bool lent = false;         ///< to launchers that do not keep it (launch/known_launchers.hpp)

    ~StreamObject() {
        if (lent) [[unlikely]]
            end_loan(*this);
    }
    /// Tells those launchers.
    inline static void (*end_loan)(const StreamObject&) noexcept = nullptr;

    void visit_references(ReferenceVisitor& each) { each(foreign); }
};

/// bascule.Event.
struct EventObject {
    Event event;
};

/// A stream from a bascule.Stream, an integer handle (0: the default stream), or any object with
/// `__cuda_stream__`, `.ptr`, `.cuda_stream` or `.handle`; nothing from None. A handle is a stream of
/// `device` unless the driver knows better. Throws: ArgumentError that names `stream` and the forms.
std::optional<StreamRef> to_stream(pybind11::handle object, Device device);

/// "0x55d0c8 on emulated:0", "legacy default on cuda:1 'NVIDIA H200'".
std::string describe(StreamRef stream);

/// Throws: ArgumentError that names both devices unless `stream` is one of `device`, where `what` is.
void require_device(StreamRef stream, Device device, const char* what);

/// Throws: CudaError where PyTorch or CuPy captures a graph on its current stream: a wait for `device` would invalidate
/// the capture.
void require_no_capture_of_libraries(Device device);

/// The stream given, else the current one, else the default stream; a stream of `device`, where `what` is.
/// Throws: as to_stream and require_device.
StreamRef stream_or_current(const pybind11::object& given, Device device, const char* what);
/// The same as a bascule.Stream, which keeps alive whatever owns it.
pybind11::object stream_object_or_current(const pybind11::object& given, Device device, const char* what);

}  // namespace bascule::python
