// Owned streams, their priorities, and the device of a stream. Streams whose handle only Bascule knows are hidden.
#pragma once

#include <memory>
#include <vector>

#include <bascule/runtime/streams/stream_ref.hpp>

namespace bascule {

/// A non-blocking stream (CU_STREAM_NON_BLOCKING) owned by this object. Thread-safe: any thread may use it; destroy it in one.
class Stream {
  public:
    /// Lower numbers mean higher priority; 0 is the default. Throws: ArgumentError for a priority that the device does
    /// not support; CudaError.
    explicit Stream(Device device = Device::current(), int priority = 0);
    /// Never throws, even if the driver is already gone. Pending work finishes. The CUDA stream is destroyed after the
    /// memory that is freed in its order.
    ~Stream();
    Stream(Stream&& other) noexcept;
    Stream& operator=(Stream&& other) noexcept;
    Stream(int) = delete;  // 0, 1 and 2 are handles, not devices: use StreamRef(handle, device)

    /// See StreamRef::synchronize.
    void synchronize() const { ref().synchronize(); }
    /// Makes later work on this stream wait for the work enqueued so far on `other`; the host does not wait. Throws:
    /// CudaError.
    void wait(StreamRef other) const;

    operator StreamRef() const noexcept { return {handle_, device_}; }
    StreamRef ref() const noexcept { return *this; }

  private:
    std::uint64_t handle_ = 0;
    Device device_;
    std::shared_ptr<void> owner_;  // destroys the stream
};

/// Returns an owner that keeps the CUDA stream alive if a Stream owns it; otherwise null.
std::shared_ptr<void> owner_of(StreamRef stream);

/// A stream made by Bascule. It lives at least as long as this object.
struct LivingStream {
    StreamRef stream;
    std::shared_ptr<void> owner;
};
/// Returns all existing streams made by Bascule, on all devices. Throws std::bad_alloc.
std::vector<LivingStream> living_streams();

/// The stream priorities that a device supports.
struct PriorityRange {
    int least_urgent = 0;
    int most_urgent = 0;  ///< the smaller number
};
PriorityRange priorities_of(Device device);  ///< Throws: CudaError.

/// Throws: CudaError for an invalid handle.
int priority_of(StreamRef stream);

/// Handles 1 and 2 are default streams of the current context, while Bascule uses those of primary contexts. Throws:
/// ArgumentError if `current` is not a primary context, for example a green context.
void require_primary_defaults(CUctx_st* current);
/// The same for the thread's current context.
void require_primary_defaults();

/// The device of a stream; `assumed` for the default streams, which every device has. Throws: ArgumentError for a
/// stream of a context that is not a primary one; CudaError for an invalid handle.
Device device_of_stream(std::uint64_t handle, Device assumed);

/// Marks a stream as hidden. Other code cannot capture it, so operations on it need not query the driver. The caller
/// must call `give_out_handle` before other code gets the handle. Streams of C++ programs are not hidden, because their
/// handles are public. Throws std::bad_alloc.
void hide_stream(StreamRef stream);
/// Records that other code has the handle and may capture the stream. From now on, each operation with owners queries
/// the driver. Does nothing if the stream is not hidden.
void give_out_handle(StreamRef stream) noexcept;

/// False for hidden streams and for the legacy default stream, which cannot be captured.
bool may_be_captured_by_others(StreamRef stream) noexcept;

/// Counts streams that were given out. Cached facts about hidden streams are valid until it changes.
inline std::atomic<std::uint64_t> streams_shown{0};

}  // namespace bascule
