// The waits before and after a launch. Nothing is stored per stream handle, because handles are reused, and nothing is
// assumed about stream flags: only a producer that is the launch's own stream needs no wait.
#include <algorithm>

#include <fmt/format.h>

#include <bascule/runtime/driver/driver.hpp>
#include <bascule/runtime/streams/event.hpp>
#include <bascule/runtime/streams/observer.hpp>
#include <bascule/runtime/streams/ordering.hpp>

namespace bascule {
namespace {

/// Throws: CudaError that names the producer.
[[gnu::cold, gnu::noinline]] void fail(DriverResult result, const char* doing, const Producer& producer) {
    Driver::get().check(result,
                        fmt::format("{} {}, which argument {} names,", doing,
                                    doubtful_name_of_stream(producer.stream.handle), producer.argument + 1));
}

/// Records `event`, which belongs to the producer's context.
void mark(const Driver& driver, const Producer& producer, StreamRef theirs, EventRef event) {
    const DriverResult recorded = driver.api().cuEventRecord(event.native(), theirs.native());
    if (recorded != CUDA_SUCCESS) [[unlikely]]
        fail(recorded, "marking", producer);
}

[[gnu::always_inline]] inline void wait_for(const Driver& driver, StreamRef stream,
                                            const Producer& producer) {
    const StreamRef theirs = stream_of(producer, stream);
    const PooledEvent event(theirs.device());
    if (same_device(producer, stream)) [[likely]] {
        mark(driver, producer, theirs, event.ref());
    } else {
        const ContextGuard context(theirs.context());  // the default streams are those of the current context
        mark(driver, producer, theirs, event.ref());
    }
    const DriverResult waits =
        driver.api().cuStreamWaitEvent(stream.native(), event.ref().native(), CU_EVENT_WAIT_DEFAULT);
    if (waits != CUDA_SUCCESS) [[unlikely]]
        fail(waits, "waiting for", producer);
}

void make_wait(const Driver& driver, StreamRef theirs, EventRef fence, const Producer& producer) {
    const DriverResult waits =
        driver.api().cuStreamWaitEvent(theirs.native(), fence.native(), CU_EVENT_WAIT_DEFAULT);
    if (waits != CUDA_SUCCESS) [[unlikely]]
        fail(waits, "delaying", producer);
}

[[gnu::cold, gnu::noinline]] void wait_for_traced(StreamRef stream, std::span<const Producer> producers) {
    for (const Producer& producer : producers) {
        if (!needs_wait(producer, stream)) continue;
        const ShownCall call(WaitingCall::wait,
                             [&] { return "wait for " + name_of_stream(producer.stream.handle); });
        wait_for(Driver::get(), stream, producer);
        tell_observers<&StreamObserver::stream_waits>(stream, stream_of(producer, stream));
    }
}

/// Tells the observers that the producers' later work waits for the work enqueued so far on `stream`.
[[gnu::cold, gnu::noinline]] void note_order(StreamRef stream, std::span<const Producer> producers) {
    for (const Producer& producer : producers) {
        if (needs_wait(producer, stream))
            tell_observers<&StreamObserver::stream_waits>(stream_of(producer, stream), stream);
    }
}

}  // namespace

void wait_for_producers(StreamRef stream, std::span<const Producer> producers) {
    if (watches_anything()) [[unlikely]]
        return wait_for_traced(stream, producers);
    const Driver& driver = Driver::get();
    for (const Producer& producer : producers) {
        if (needs_wait(producer, stream)) wait_for(driver, stream, producer);
    }
}

void order_producers_after(StreamRef stream, std::span<const Producer> producers) {
    const auto foreign = [&](const Producer& producer) { return needs_wait(producer, stream); };
    auto next = std::ranges::find_if(producers, foreign);
    if (next == producers.end()) return;
    const Driver& driver = Driver::get();
    try {
        const PooledEvent event(stream.device());
        driver.check(driver.api().cuEventRecord(event.ref().native(), stream.native()), stream.native(),
                     "marking the end of the launch");
        for (; next != producers.end(); next = std::ranges::find_if(next + 1, producers.end(), foreign)) {
            if (same_device(*next, stream)) [[likely]] {
                make_wait(driver, StreamRef(next->stream.handle, stream.device()), event.ref(), *next);
            } else {
                const StreamRef theirs = stream_of(*next, stream);
                const ContextGuard context(theirs.context());
                make_wait(driver, theirs, event.ref(), *next);
            }
        }
    } catch (...) {
        // The producers may overwrite what the kernel reads, so wait for the kernel before returning. If this fails
        // too, the context is lost and nothing runs any more.
        driver.api().cuStreamSynchronize(stream.native());
        throw;
    }
    if (watches_anything()) [[unlikely]]
        note_order(stream, producers);
}

}  // namespace bascule
