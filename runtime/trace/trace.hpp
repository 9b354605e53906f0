// Starting and ending what watches the calls of a program: a trace, and ranges for a profiler.
#pragma once

#include <cstddef>

#include <bascule/runtime/trace/recorder.hpp>
#include <bascule/runtime/trace/traced_call.hpp>

namespace bascule {

/// Begins to record the calls of all threads, at most `limit` of them. A child that is forked meanwhile records nothing.
/// Throws: Error while another trace is recorded.
void start_trace(std::size_t limit);
/// Ends it, after it has waited for the work that was recorded. Never throws for a device that is lost: what it was
/// doing has no times then. Throws: Error where no trace is recorded.
RecordedTrace stop_trace();

/// While on, each traced call is a range, such as "bascule: launch scale", for the functions that were given last, which
/// must live until the process ends. Thread-safe.
void emit_ranges(const RangeFunctions& functions);
void stop_ranges() noexcept;

}  // namespace bascule
