// Keeps the owners of launched memory until the kernels that may touch it have finished.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

#include <bascule/runtime/lifetime/thread_memory.hpp>
#include <bascule/runtime/streams/owner.hpp>
#include <bascule/runtime/streams/stream_ref.hpp>

namespace bascule {

/// What the caller knows about the stream of an operation, which need not be found out again.
enum class StreamFacts : std::uint8_t {
    none,
    in_context,    ///< its context is current
    not_captured,  ///< and the driver has just said that it is not being captured
};

/// Takes the owners of an operation just enqueued on `stream`. One marker event is recorded for every 64 operations, and
/// whenever their owners hold 64 MiB; on a stream that other code owns, and may destroy, for each operation. What finished
/// before the oldest markers is released here, by the calling thread; before the driver's queue is full the oldest marker is
/// waited for.
/// What is captured belongs to its graph, as does the code that the operation uses: ours, or a foreign one
/// (<bascule/runtime/lifetime/captured_owners.hpp>).
/// Never throws: when the driver refuses, it waits for the stream and releases. `memory` is the calling thread's.
/// Without owners an operation that uses code is counted all the same: keep_until_all_done needs to know of it.
/// Returns false if a signal ended the wait; the owners were taken all the same.
bool keep_until_done(StreamRef stream, const Owners& owners, ThreadMemory& memory = thread_memory,
                     const CodeRef* code = nullptr, StreamFacts facts = StreamFacts::none) noexcept;

/// Keeps `code` until the operations have finished that were handed over so far, on whatever streams. Waits for nothing,
/// and asks the driver nothing. Throws where there is no memory.
void keep_until_all_done(const std::shared_ptr<const void>& code);

/// The owners of the operation that this scope enqueues: taken when it ends, also by an exception. Borrows the list.
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

    /// They are taken before this scope ends. Throws: WaitInterrupted.
    void keep_now(StreamFacts facts) {
        if (!keep_until_done(stream_, hand_over(), *memory_, code_, facts)) [[unlikely]]
            fail_interrupted();
    }
    /// The host has waited for the operation: they are released now.
    void finished() noexcept { release(hand_over()); }
    /// The caller takes them.
    const Owners& hand_over() noexcept { return *std::exchange(owners_, nullptr); }

  private:
    [[noreturn]] static void fail_interrupted();

    StreamRef stream_;
    const Owners* owners_;
    ThreadMemory* memory_;  // of the thread in which this lives
    const CodeRef* code_;   // that the operation uses
};

/// Releases what was kept for `stream` before `mark`: the stream was synchronised since.
void release_finished(StreamRef stream, KeptMark mark) noexcept;
/// Releases what was kept for every stream of `device` before `mark`: the device was synchronised since.
void release_finished(Device device, KeptMark mark) noexcept;
/// Waits for the work of `device` for which something is kept, stream by stream, and releases that. Unlike a wait for the
/// whole device it invalidates no capture; what a stream that is being captured has kept stays. Not for work on a stream that
/// another library may have destroyed: of that, what came before a marker is waited for. Throws: WaitInterrupted.
void wait_and_release_kept(Device device);
/// Owners held now, for tests.
std::size_t owners_held() noexcept;

}  // namespace bascule
