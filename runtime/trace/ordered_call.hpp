// One driver call that enqueues work, with the same waits as a launch.
#pragma once

#include <span>

#include <bascule/runtime/driver/driver.hpp>
#include <bascule/runtime/streams/stream_capture.hpp>
#include <bascule/runtime/trace/recorder.hpp>

namespace bascule {

/// Calls `enqueue(api)`, which enqueues `bytes` bytes of work on `stream` and returns the driver's result. The stream's
/// context must be current. The work waits for the work enqueued so far on the producers, which then wait for it.
/// `doing` is for error messages. Throws: CudaError.
template <class Enqueue>
void enqueue_in_order(CallKind kind, std::size_t bytes, StreamRef stream, std::span<const Producer> producers,
                      const char* doing, const Enqueue& enqueue) {
    const Driver& driver = Driver::get();
    TracedCall call(kind, bytes);
    const ProducersToOrder ordered(stream, producers);
    wait_for_producers(stream, ordered.get());
    call.begin_operation(stream);
    driver.check(enqueue(driver.api()), stream.native(), doing);
    call.end_operation();
    order_producers_after(stream, ordered.get());
}

}  // namespace bascule
