// The current stream and device of a thread or asyncio task: `with stream:` and `with device:`.
#pragma once

#include <atomic>
#include <optional>
#include <utility>

#include <bascule/runtime/streams/stream.hpp>

#include "support/pybind.hpp"

namespace bascule::python {

namespace detail {
inline std::atomic<bool> ever_entered{false};
}

/// False until a stream or a device is entered for the first time in this process.
inline bool anything_entered() noexcept { return detail::ever_entered.load(std::memory_order_relaxed); }

/// The stream of operations on `device` that are given none: the stream that was entered last, even if it belongs to
/// another device; if a device was entered after it, the last entered stream of `device`. Needs the GIL.
std::optional<StreamRef> current_stream(Device device);

/// The same as the bascule.Stream that was entered; null if there is no such stream.
py::object current_stream_object(Device device);

/// The object that was entered last, if it is a stream.
std::optional<StreamRef> innermost_stream();

/// The device of the object that was entered last.
std::optional<Device> entered_device();

/// Enters a bascule.Stream, whose value is `stream`, like `with`. Throws: the error of a failing context variable.
void enter_stream(const py::object& object, StreamRef stream);
/// Enters a bascule.Device, whose value is `device`. Throws: as above.
void enter_device(const py::object& object, Device device);
/// Leaves a stream or a device. Throws: ArgumentError unless it was entered last in this thread or task.
void leave_current(const py::object& object);

/// Makes a bascule.Stream current for its lifetime.
class CurrentStream {
  public:
    CurrentStream(py::object object, StreamRef stream) : object_(std::move(object)) {
        enter_stream(object_, stream);
    }
    ~CurrentStream() {
        try {
            leave_current(object_);
        } catch (...) {  // it has been left already
        }
    }
    const py::object& object() const noexcept { return object_; }
    CurrentStream(CurrentStream&&) = delete;

  private:
    py::object object_;
};

}  // namespace bascule::python
