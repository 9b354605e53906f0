// Streams: one that owns, one that borrows.
#pragma once

#include <cstdint>
#include <string>

#include <bascule/runtime/driver/device.hpp>

struct CUstream_st;

namespace bascule {

class EventRef;

/// Which of its two default streams a device means where none is named.
enum class DefaultStream : std::uint8_t { legacy, per_thread };

/// For the whole process, from now on; legacy at first.
void set_default_stream(DefaultStream which) noexcept;
DefaultStream default_stream_kind() noexcept;

/// A stream that somebody else keeps alive, or one of the default streams. A small value.
class StreamRef {
  public:
    /// `handle` is a CUstream as an integer; 0 and 1 are the legacy default stream, 2 the calling thread's.
    StreamRef(std::uint64_t handle, Device device) noexcept
        : handle_(handle == 0 ? 1 : handle), device_(device) {}

    static StreamRef legacy_default(Device device = Device::current()) noexcept { return {1, device}; }
    static StreamRef per_thread_default(Device device = Device::current()) noexcept { return {2, device}; }

    /// The one of these that set_default_stream says.
    static StreamRef device_default(Device device = Device::current()) noexcept {
        return {default_stream_kind() == DefaultStream::legacy ? 1U : 2U, device};
    }

    std::uint64_t handle() const noexcept { return handle_; }
    CUstream_st* native() const noexcept { return reinterpret_cast<CUstream_st*>(handle_); }
    Device device() const noexcept { return device_; }
    CUctx_st* context() const noexcept { return device_.context(); }
    bool operator==(const StreamRef&) const = default;

    /// The host waits for everything enqueued so far, and releases what was kept for it. Throws: CudaError.
    void synchronize() const;
    /// True when everything enqueued so far has finished. Throws: CudaError.
    bool query() const;
    /// Later work here waits for `event`; the host does not. Throws: CudaError.
    void wait(EventRef event) const;

  private:
    std::uint64_t handle_;
    Device device_;
};

/// A non-blocking stream (CU_STREAM_NON_BLOCKING) that this object owns. Thread-safe: any thread may use it;
/// destroy it on one.
class Stream {
  public:
    /// Lower numbers are more urgent; 0 is the default priority. Throws: ArgumentError for a priority that
    /// the device does not have; CudaError.
    explicit Stream(Device device = Device::current(), int priority = 0);
    /// Never throws; a driver that is already gone is not an error. Work still pending finishes.
    ~Stream();
    Stream(Stream&& other) noexcept;
    Stream& operator=(Stream&& other) noexcept;
    Stream(const Stream&) = delete;
    Stream& operator=(const Stream&) = delete;
    Stream(int) = delete;  // 0, 1 and 2 are handles, not devices: say StreamRef(handle, device)

    operator StreamRef() const noexcept { return {handle_, device_}; }
    StreamRef ref() const noexcept { return *this; }

  private:
    std::uint64_t handle_ = 0;
    Device device_;
};

/// The priorities that streams of a device can have.
struct PriorityRange {
    int least_urgent = 0;
    int most_urgent = 0;  ///< the smaller number
};
PriorityRange priorities_of(Device device);  ///< Throws: CudaError.

/// Throws: CudaError for a handle that is no stream.
int priority_of(StreamRef stream);

/// How messages call a stream: "the legacy default stream", "the per-thread default stream", "stream
/// 0x55d0c8".
std::string name_of_stream(std::uint64_t handle);
/// The same for messages about a call that the driver refused: a handle may be gone.
std::string doubtful_name_of_stream(std::uint64_t handle);

/// The device whose stream the handle is, where that can be another one than `assumed`: a machine with
/// several devices, and no default stream, which every device has. Throws: CudaError for a handle that is no
/// stream.
Device device_of_stream(std::uint64_t handle, Device assumed);

/// The device waits for nothing more: every stream of `device` is finished. Throws: CudaError.
void synchronize(Device device = Device::current());

}  // namespace bascule
