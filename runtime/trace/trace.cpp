#include <cerrno>
#include <cstdio>
#include <exception>
#include <fstream>
#include <utility>

#include <fmt/format.h>

#include <bascule/interface/errors/error.hpp>
#include <bascule/jit/lookup/cache.hpp>
#include <bascule/jit/program/program.hpp>
#include <bascule/runtime/trace/trace.hpp>
#include <bascule/runtime/trace/trace_events.hpp>

namespace bascule {
namespace {

Cache::Lookup traced_lookup(Cache& cache, const Program& program) {
    TracedCall call(CallKind::compile, [&] { return "compile " + program.source.name; });
    Cache::Lookup lookup = cache.look_up(program);
    if (TraceRecord* record = call.record()) record->origin = lookup.origin;
    return lookup;
}

/// Makes streams, events and the cache report to the trace, permanently. This costs each of their calls one test.
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

Trace::Trace(std::string file, std::size_t limit)
    : file_(std::move(file)), program_(std::make_unique<TracedProgram>(TracedProgram::current())) {
    start_trace(limit);
}

Trace::~Trace() {
    try {
        stop();
    } catch (const std::exception& error) {
        std::fprintf(stderr, "bascule: %s\n", error.what());
    }
}

void Trace::stop() {
    if (!std::exchange(recording_, false)) return;
    program_->threads.merge(TracedProgram::current().threads);
    recorded_ = stop_trace();
    if (!file_.empty()) save(file_);
}

void Trace::save(const std::string& file) const {
    errno = 0;
    std::ofstream out(file);
    write_trace_events(out, recorded_, *program_);
    out.close();
    if (out) return;
    throw Error(fmt::format("the trace could not be written to {}: {}.", file,
                            std::generic_category().message(errno != 0 ? errno : EIO)));
}

void emit_ranges(const RangeFunctions& functions) {
    observe_calls();
    trace::range_functions.store(&functions, std::memory_order_release);
    set_watch(Watch::ranges, true);
}

void stop_ranges() noexcept { set_watch(Watch::ranges, false); }

}  // namespace bascule
