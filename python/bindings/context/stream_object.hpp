// bascule.Stream, bascule.Event, and other objects that name a stream.
#pragma once

#include <memory>
#include <optional>

#include <bascule/runtime/streams/stream.hpp>

#include "classes/collected.hpp"

namespace bascule::python {

/// The value of a bascule.Stream: owns or borrows a stream.
struct StreamObject {
    std::shared_ptr<Stream> owned;  ///< null if borrowed
    StreamRef ref;
    py::object foreign;  ///< the owner of a borrowed stream, if known
    bool lent = false;   ///< to launchers that do not keep it (launch/known_launchers.hpp)

    ~StreamObject() {
        if (lent) [[unlikely]]
            end_loan(*this);
    }
    /// Tells these launchers that the stream is being destroyed.
    inline static void (*end_loan)(const StreamObject&) noexcept = nullptr;

    void visit_references(ReferenceVisitor& each) { each(foreign); }
};

/// Converts a bascule.Stream, an integer handle (0: the default stream), or any object with `__cuda_stream__`, `.ptr`,
/// `.cuda_stream` or `.handle`. Returns nothing for None. A handle belongs to `device` unless the driver reports
/// another device. Throws: ArgumentError that names `stream` and the accepted forms.
std::optional<StreamRef> to_stream(py::handle object, Device device);

/// Returns "0x55d0c8 on emulated:0" or "legacy default on cuda:1 'NVIDIA H200'".
std::string describe(StreamRef stream);

/// Throws: ArgumentError that names both devices unless `stream` belongs to `device`, the device of `what`.
void require_device(StreamRef stream, Device device, const char* what);

/// Throws: CudaError if PyTorch or CuPy is capturing a graph on its current stream. A wait for `device` would
/// invalidate the capture.
void require_no_capture_of_libraries(Device device);

/// The given stream, else the current one, else the default stream. It must belong to `device`, the device of `what`.
/// Throws: as to_stream and require_device.
StreamRef stream_or_current(const py::object& given, Device device, const char* what);
/// The same as a bascule.Stream, which keeps the stream's owner alive.
py::object stream_object_or_current(const py::object& given, Device device, const char* what);

}  // namespace bascule::python
