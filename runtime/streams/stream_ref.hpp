// Streams and events that are owned elsewhere, as small values.
#pragma once

#include <atomic>
#include <cstdint>

#include <bascule/runtime/driver/device.hpp>

struct CUevent_st;
struct CUstream_st;

namespace bascule {

class EventRef;

/// Which of the two default streams is used where no stream is named.
enum class DefaultStream : std::uint8_t { legacy, per_thread };

namespace detail {
inline std::atomic<DefaultStream> default_stream{DefaultStream::legacy};
}

/// For the whole process, from now on; legacy at first.
inline void set_default_stream(DefaultStream which) noexcept {
    detail::default_stream.store(which, std::memory_order_relaxed);
}
inline DefaultStream default_stream_kind() noexcept {
    return detail::default_stream.load(std::memory_order_relaxed);
}

/// A stream that is owned elsewhere, or one of the default streams. A small value.
class StreamRef {
  public:
    /// `handle` is a CUstream as an integer; 0 and 1 are the legacy default stream, 2 the calling thread's.
    StreamRef(std::uint64_t handle, Device device) noexcept
        : handle_(handle == 0 ? 1 : handle), device_(device) {}

    static StreamRef legacy_default(Device device = Device::current()) noexcept { return {1, device}; }
    static StreamRef per_thread_default(Device device = Device::current()) noexcept { return {2, device}; }

    /// The one that set_default_stream has chosen.
    static StreamRef device_default(Device device = Device::current()) noexcept {
        return {default_stream_kind() == DefaultStream::legacy ? 1U : 2U, device};
    }

    std::uint64_t handle() const noexcept { return handle_; }
    CUstream_st* native() const noexcept { return reinterpret_cast<CUstream_st*>(handle_); }
    Device device() const noexcept { return device_; }
    CUctx_st* context() const { return device_.context(); }
    bool operator==(const StreamRef&) const = default;

    /// The host waits for everything enqueued so far, and releases what was kept for it. Throws: CudaError.
    void synchronize() const;
    /// True when everything enqueued so far has finished. Throws: CudaError.
    bool query() const;
    /// Before a call in which the driver waits for the stream, where no signal can end the wait: where the calling thread's waits
    /// can be ended (wait_watch.hpp), it waits here instead. `what` is waited for. The context is current. Throws:
    /// WaitInterrupted.
    void finish_before_blocking_call(const char* what) const;
    /// Later work here waits for `event`; the host does not. Throws: CudaError.
    void wait(EventRef event) const;

  private:
    std::uint64_t handle_;
    Device device_;
};

/// An event that is owned elsewhere. A small value. The driver is asked about it with its device's context current, in
/// any thread.
class EventRef {
  public:
    EventRef(CUevent_st* native, Device device) noexcept : native_(native), device_(device) {}
    CUevent_st* native() const noexcept { return native_; }
    Device device() const noexcept { return device_; }
    std::uint64_t handle() const noexcept { return reinterpret_cast<std::uint64_t>(native_); }

    /// Marks the work enqueued on `stream`, one of its device, so far. Throws: CudaError.
    void record(StreamRef stream) const;
    /// True when the work it marks has finished, and when it was never recorded. Throws: CudaError.
    bool query() const;
    /// The host waits for the work it marks. Throws: CudaError.
    void synchronize() const;

  private:
    CUevent_st* native_;
    Device device_;
};

/// The host waits until every stream of `device` is finished. Throws: CudaError.
void synchronize(Device device = Device::current());

/// Before the host uses memory that may be managed. Where `device` does not share it with the host while kernels
/// run, the host waits for all devices that were used. Throws: CudaError, also during a capture.
void wait_for_managed_memory(Device device);

}  // namespace bascule
