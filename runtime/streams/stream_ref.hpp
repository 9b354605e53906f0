// Non-owning references to streams and events.
#pragma once

#include <atomic>
#include <cstdint>

#include <bascule/interface/arrays/producer_stream.hpp>
#include <bascule/runtime/driver/device.hpp>

struct CUevent_st;
struct CUstream_st;

namespace bascule {

class EventRef;

/// The default stream that is used if no stream is named.
enum class DefaultStream : std::uint8_t { legacy, per_thread };

namespace detail {
inline std::atomic<DefaultStream> default_stream{DefaultStream::legacy};
}

/// Sets the default stream for the whole process. Initially legacy.
inline void set_default_stream(DefaultStream which) noexcept {
    detail::default_stream.store(which, std::memory_order_relaxed);
}
inline DefaultStream default_stream_kind() noexcept {
    return detail::default_stream.load(std::memory_order_relaxed);
}

/// A stream owned elsewhere, or a default stream. A small value.
class StreamRef {
  public:
    /// `handle` is a CUstream as an integer: 0 and 1 are the legacy default stream, 2 is the calling thread's.
    StreamRef(std::uint64_t handle, Device device) noexcept
        : handle_(handle == 0 ? 1 : handle), device_(device) {}

    static StreamRef legacy_default(Device device = Device::current()) noexcept { return {1, device}; }
    static StreamRef per_thread_default(Device device = Device::current()) noexcept { return {2, device}; }

    /// The default stream that set_default_stream selected.
    static StreamRef device_default(Device device = Device::current()) noexcept {
        return {default_stream_kind() == DefaultStream::legacy ? 1U : 2U, device};
    }

    std::uint64_t handle() const noexcept { return handle_; }
    CUstream_st* native() const noexcept { return reinterpret_cast<CUstream_st*>(handle_); }
    Device device() const noexcept { return device_; }
    CUctx_st* context() const { return device_.context(); }
    bool operator==(const StreamRef&) const = default;

    /// Waits on the host for everything enqueued so far, and releases what was kept for it. Throws: CudaError.
    void synchronize() const;
    /// True if everything enqueued so far has finished. Throws: CudaError.
    bool query() const;
    /// Call this before a driver call that waits for the stream and that a signal cannot interrupt. If the calling
    /// thread's waits can be interrupted (wait_watch.hpp), it waits here instead. `what` describes the wait in errors.
    /// The context must be current. Throws: WaitInterrupted.
    void finish_before_blocking_call(const char* what) const;
    /// Makes later work on this stream wait for `event`; the host does not wait. Throws: CudaError.
    void wait(EventRef event) const;

  private:
    std::uint64_t handle_;
    Device device_;
};

/// Describes `stream` as the producer's stream of an array that is used on the device `home`.
inline ProducerStream producer_stream(StreamRef stream, Device home,
                                      StreamSource source = StreamSource::interface) noexcept {
    return {stream.handle(), stream.device() == home ? -1 : stream.device().ordinal(), source};
}

/// An event owned elsewhere. A small value. Any thread may use it: its functions make the device's context current.
class EventRef {
  public:
    EventRef(CUevent_st* native, Device device) noexcept : native_(native), device_(device) {}
    CUevent_st* native() const noexcept { return native_; }
    Device device() const noexcept { return device_; }
    std::uint64_t handle() const noexcept { return reinterpret_cast<std::uint64_t>(native_); }

    /// Marks the work enqueued so far on `stream`, a stream of the event's device. Throws: CudaError.
    void record(StreamRef stream) const;
    /// True if the marked work has finished, or if the event was never recorded. Throws: CudaError.
    bool query() const;
    /// Waits on the host for the marked work. Throws: CudaError.
    void synchronize() const;

  private:
    CUevent_st* native_;
    Device device_;
};

/// Waits on the host for all streams of `device`. Throws: CudaError.
void synchronize(Device device = Device::current());

/// Call this before the host uses memory that may be managed. If the host may not access the managed memory of `device`
/// while kernels run, waits for all devices in use. Throws: CudaError, also during a capture.
void wait_for_managed_memory(Device device);

}  // namespace bascule
