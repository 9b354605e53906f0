// Keeps the owners of launched memory until the kernels that may touch it have finished.
#pragma once

#include <cstddef>
#include <utility>

#include <bascule/runtime/lifetime/owner.hpp>
#include <bascule/runtime/lifetime/thread_memory.hpp>
#include <bascule/runtime/streams/stream_ref.hpp>

namespace bascule {

namespace detail {
bool is_crowded(StreamRef stream) noexcept;
}  // namespace detail

/// Takes the owners of an operation just enqueued on `stream`. One marker event is recorded for every 64
/// operations, and whenever their owners hold 64 MiB; what finished before the oldest markers is released
/// here, by the calling thread; at most 1,024 operations are held, then the oldest marker is waited for.
/// What is captured belongs to its graph: ours, or a foreign one (<bascule/runtime/lifetime/captured_owners.hpp>).
/// Never throws: when the driver refuses, it waits for the stream and releases. `memory` is the calling thread's.
void keep_until_done(StreamRef stream, const Owners& owners, ThreadMemory& memory = thread_memory) noexcept;

/// Whether so many operations are kept for the stream (512) that a launch may have to wait for the driver, whose own
/// queue is bounded. Costs a load while no stream has so many.
inline bool may_be_full(StreamRef stream) noexcept {
    return detail::crowded_queues.load(std::memory_order_relaxed) != 0 && detail::is_crowded(stream);
}

/// The owners of the operation that this scope enqueues: taken when it ends, also by an exception. Borrows the list.
class OwnersKept {
  public:
    OwnersKept(StreamRef stream, const Owners& owners, ThreadMemory& memory = thread_memory) noexcept
        : stream_(stream), owners_(&owners), memory_(&memory) {}
    OwnersKept(StreamRef, Owners&&) = delete;
    ~OwnersKept() {
        if (owners_ != nullptr) keep_until_done(stream_, *owners_, *memory_);
    }
    OwnersKept(const OwnersKept&) = delete;
    OwnersKept& operator=(const OwnersKept&) = delete;

    /// The host has waited for the operation: they are released now.
    void finished() noexcept { release(hand_over()); }
    /// Somebody else takes them.
    const Owners& hand_over() noexcept { return *std::exchange(owners_, nullptr); }

  private:
    StreamRef stream_;
    const Owners* owners_;
    ThreadMemory* memory_;  // of the thread in which this lives
};

/// Releases what was kept for `stream` before `mark`: the stream was synchronised since.
void release_finished(StreamRef stream, KeptMark mark) noexcept;
/// Releases what was kept for every stream of `device` before `mark`: the device was synchronised since.
void release_finished(Device device, KeptMark mark) noexcept;
/// The stream is about to be destroyed: what is kept for it goes on being kept, under no handle, until its
/// work is done.
void retire(StreamRef stream) noexcept;

/// Owners held now, for tests.
std::size_t owners_held() noexcept;

}  // namespace bascule
