// One call of the driver that gives the device work, between the waits that a launch has.
#pragma once

#include <span>

#include <bascule/runtime/driver/driver.hpp>
#include <bascule/runtime/streams/capture.hpp>
#include <bascule/runtime/streams/ordering.hpp>
#include <bascule/runtime/trace/traced_call.hpp>

namespace bascule {

/// `enqueue(api)` returns the result of the call, which enqueues `bytes` on `stream`, whose context is current: after what
/// the producers have enqueued, which wait for it in turn. `doing` is for its error. Throws: CudaError.
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
