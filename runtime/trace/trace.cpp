#include <bascule/jit/cache/cache.hpp>
#include <bascule/runtime/trace/trace.hpp>

namespace bascule {
namespace {

Cache::Lookup traced_lookup(Cache& cache, const Program& program) {
    TracedCall call(CallKind::compile, [&] { return "compile " + program.source.name; });
    Cache::Lookup lookup = cache.find_or_compile(program);
    if (TraceRecord* record = call.record()) record->origin = lookup.origin;
    return lookup;
}

}  // namespace

void start_trace(std::size_t limit) {
    Cache::set_observer(&traced_lookup);  // for good: it costs a test
    trace::begin_recording(limit);
}

RecordedTrace stop_trace() { return trace::end_recording(); }

void emit_ranges(const RangeFunctions& functions) {
    Cache::set_observer(&traced_lookup);
    trace::set_range_functions(functions);
    set_watch(Watch::ranges, true);
}

void stop_ranges() noexcept { set_watch(Watch::ranges, false); }

}  // namespace bascule
