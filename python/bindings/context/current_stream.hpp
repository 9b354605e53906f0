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

/// The stream that operations on `device` go to when they are given none: of what was entered last, when that
/// is a stream, whichever device it is of; else the stream of this device that was entered last. Needs the
/// GIL.
std::optional<StreamRef> current_stream(Device device);

/// The same as the bascule.Stream that was entered; null without one.
pybind11::object current_stream_object(Device device);

/// What was entered last, when that is a stream.
std::optional<StreamRef> innermost_stream();

/// The device of what was entered last.
std::optional<Device> entered_device();

/// Enters a bascule.Stream, which is `stream`, as `with` does. Throws: what a failing context variable
/// raises.
void enter_stream(const pybind11::object& object, StreamRef stream);
/// Enters a bascule.Device, which is `device`. Throws: as above.
void enter_device(const pybind11::object& object, Device device);
/// Leaves either again. Throws: ArgumentError unless it is what was entered last in this thread or task.
void leave_current(const pybind11::object& object);

/// Makes a bascule.Stream current for its lifetime.
class CurrentStream {
  public:
    CurrentStream(pybind11::object object, StreamRef stream) : object_(std::move(object)) {
        enter_stream(object_, stream);
    }
    ~CurrentStream() {
        try {
            leave_current(object_);
        } catch (...) {  // left already: nothing is current that should not be
        }
    }
    const pybind11::object& object() const noexcept { return object_; }
    CurrentStream(const CurrentStream&) = delete;
    CurrentStream& operator=(const CurrentStream&) = delete;

  private:
    pybind11::object object_;
};

}  // namespace bascule::python
