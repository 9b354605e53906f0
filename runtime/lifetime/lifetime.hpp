// Keeps the owners of launched memory until the kernels that may touch it have finished.
#pragma once

#include <cstddef>
#include <utility>

#include <bascule/runtime/lifetime/thread_memory.hpp>
#include <bascule/runtime/streams/owner.hpp>
#include <bascule/runtime/streams/stream_ref.hpp>

namespace bascule {

/// What the caller already knows about an operation's stream, to save driver calls.
enum class StreamFacts : std::uint8_t {
    none,
    in_context,    ///< the stream's context is current
    not_captured,  ///< as above, and the driver has just reported that the stream is not capturing
};

/// Takes the owners of an operation that was just enqueued on `stream`. Records a marker event after 64 operations or
/// 64 MiB of owned memory. On a stream that other code owns and may destroy, records one after each operation. The
/// calling thread then releases the owners of operations whose markers have completed. Before the driver's queue of the
/// stream is full, waits for the oldest marker. Owners of a captured operation, and the code that it uses, belong to
/// the graph: Bascule's, or a foreign one (<bascule/runtime/lifetime/captured_owners.hpp>). Never throws: if the driver
/// refuses, waits for the stream and releases the owners. `memory` belongs to the calling thread. An operation without
/// owners that uses code is also counted, for keep_until_all_done. Returns false if a signal ended a wait; the owners
/// are kept nevertheless.
bool keep_until_done(StreamRef stream, const Owners& owners, ThreadMemory& memory = thread_memory,
                     const CodeRef* code = nullptr, StreamFacts facts = StreamFacts::none) noexcept;

/// Keeps `code` until all operations passed to keep_until_done so far, on all streams, have finished. Does not wait and
/// does not call the driver. Throws std::bad_alloc.
void keep_until_all_done(const std::shared_ptr<const void>& code);

/// Keeps the owners of an operation that is enqueued in its scope: passes them to keep_until_done when the scope ends,
/// also by an exception. Borrows the list.
class OwnersKept {
  public:
    OwnersKept(StreamRef stream, const Owners& owners, ThreadMemory& memory = thread_memory,
               const CodeRef* code = nullptr) noexcept
        : stream_(stream), owners_(&owners), memory_(&memory), code_(code) {}
    OwnersKept(StreamRef, Owners&&) = delete;
    ~OwnersKept() {
        if (owners_ != nullptr) keep_until_done(stream_, *owners_, *memory_, code_);
    }
    OwnersKept(OwnersKept&&) = delete;

    /// Passes the owners on before the scope ends. Throws: WaitInterrupted.
    void keep_now(StreamFacts facts) {
        if (!keep_until_done(stream_, transfer(), *memory_, code_, facts)) [[unlikely]]
            fail_interrupted();
    }
    /// Releases the owners, because the host has waited for the operation.
    void finished() noexcept { release(transfer()); }
    /// Returns the owners to the caller, which takes them.
    const Owners& transfer() noexcept { return *std::exchange(owners_, nullptr); }

  private:
    [[noreturn]] static void fail_interrupted();

    StreamRef stream_;
    const Owners* owners_;
    ThreadMemory* memory_;  // of the current thread
    const CodeRef* code_;   // used by the operation
};

/// Releases what was kept for `stream` up to `mark`. The caller has synchronized the stream since `mark`.
void release_finished(StreamRef stream, KeptMark mark) noexcept;
/// Releases what was kept for all streams of `device` up to `mark`. The caller has synchronized the device since
/// `mark`.
void release_finished(Device device, KeptMark mark) noexcept;
/// Waits, stream by stream, for the work of `device` that owners are kept for, and releases the owners. Unlike a wait
/// for the device, this invalidates no capture. What a capturing stream has kept stays. On streams that another library
/// may have destroyed, waits only for markers. Throws: WaitInterrupted.
void wait_and_release_kept(Device device);
/// The number of owners held. For tests.
std::size_t owners_held() noexcept;

/// Enqueues `function(data)`. The driver calls it in a thread of its own when the stream's earlier work is done, and later
/// work waits for it. The function must not call CUDA. In a capture it becomes a node of the graph and runs at each launch.
/// `owners` are taken even if this throws. The function is not called after a device error. Throws: CudaError.
void launch_host_function(StreamRef stream, void (*function)(void*), void* data, const Owners& owners = {});

}  // namespace bascule
