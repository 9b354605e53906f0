#include <utility>

#include <bascule/jit/cache/cache.hpp>
#include <bascule/runtime/streams/observer.hpp>
#include <bascule/runtime/trace/trace.hpp>

namespace bascule {
namespace {

Cache::Lookup traced_lookup(Cache& cache, const Program& program) {
    TracedCall call(CallKind::compile, [&] { return "compile " + program.source.name; });
    Cache::Lookup lookup = cache.find_or_compile(program);
    if (TraceRecord* record = call.record()) record->origin = lookup.origin;
    return lookup;
}

/// The parts below that make calls of their own, for good: it costs each of them a test.
void observe_calls() {
    static constexpr StreamObserver observer{
        .stream_waits = &trace::note_wait,
        .event_awaited = &trace::note_wait,
        .event_recorded = &trace::note_record,
        .begin_call = [](WaitingCall call, std::string name) -> void* {
            const CallKind kind = call == WaitingCall::wait ? CallKind::wait : CallKind::synchronize;
            return new TracedCall(kind, [&] { return std::move(name); });
        },
        .end_call = [](void* begun) noexcept { delete static_cast<TracedCall*>(begun); },
    };
    set_stream_observer(ObservingPart::trace, observer);
    Cache::set_observer(&traced_lookup);
}

}  // namespace

void start_trace(std::size_t limit) {
    observe_calls();
    trace::begin_recording(limit);
}

RecordedTrace stop_trace() { return trace::end_recording(); }

void emit_ranges(const RangeFunctions& functions) {
    observe_calls();
    trace::set_range_functions(functions);
    set_watch(Watch::ranges, true);
}

void stop_ranges() noexcept { set_watch(Watch::ranges, false); }

}  // namespace bascule
