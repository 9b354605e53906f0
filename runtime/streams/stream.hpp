// Streams that an object owns; priorities, and the device of a stream.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include <bascule/runtime/streams/stream_ref.hpp>

namespace bascule {

/// A non-blocking stream (CU_STREAM_NON_BLOCKING) that this object owns. Thread-safe: any thread may use it;
/// destroy it on one.
class Stream {
  public:
    /// Lower numbers are more urgent; 0 is the default priority. Throws: ArgumentError for a priority that
    /// the device does not have; CudaError.
    explicit Stream(Device device = Device::current(), int priority = 0);
    /// Never throws; a driver that is already gone is not an error. Work still pending finishes. The driver's stream
    /// lives until the memory that is freed in its order is.
    ~Stream();
    Stream(Stream&& other) noexcept;
    Stream& operator=(Stream&& other) noexcept;
    Stream(int) = delete;  // 0, 1 and 2 are handles, not devices: say StreamRef(handle, device)

    /// As StreamRef's.
    void synchronize() const { ref().synchronize(); }
    /// Later work here waits for what `other` has now; the host does not. Throws: CudaError.
    void wait(StreamRef other) const;

    operator StreamRef() const noexcept { return {handle_, device_}; }
    StreamRef ref() const noexcept { return *this; }

  private:
    std::uint64_t handle_ = 0;
    Device device_;
    std::shared_ptr<void> owner_;  // destroys the stream
};

/// Keeps the stream from being destroyed, where a Stream owns it; null for all others.
std::shared_ptr<void> owner_of(StreamRef stream);

/// A stream that Bascule made. It lives at least as long as this object.
struct LivingStream {
    StreamRef stream;
    std::shared_ptr<void> owner;
};
/// Returns all streams of Bascule's that live now, on every device. Throws std::bad_alloc.
std::vector<LivingStream> living_streams();

/// The priorities that streams of a device can have.
struct PriorityRange {
    int least_urgent = 0;
    int most_urgent = 0;  ///< the smaller number
};
PriorityRange priorities_of(Device device);  ///< Throws: CudaError.

/// Throws: CudaError for a handle that is not a stream.
int priority_of(StreamRef stream);

/// Handles 1 and 2 mean default streams of the current context, and Bascule's are those of primary ones. Throws:
/// ArgumentError where `current` is a context that is not its device's primary one, such as a green one.
void require_primary_defaults(CUctx_st* current);
/// The same for the thread's current context.
void require_primary_defaults();

/// The device whose stream the handle is; `assumed` for the default streams, which every device has. Throws:
/// ArgumentError for a stream of a context that is not a primary one; CudaError for a handle that is not a
/// stream.
Device device_of_stream(std::uint64_t handle, Device assumed);

}  // namespace bascule
