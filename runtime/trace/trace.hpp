// Starts and stops what watches a program's calls: traces, and ranges for a profiler.
#pragma once

#include <cstddef>

#include <bascule/runtime/trace/recorder.hpp>

namespace bascule {

struct TracedProgram;  // trace_events.hpp

/// Records the calls of all threads, and when their work runs on the device, until `stop` or the end of the scope. For
/// https://ui.perfetto.dev and chrome://tracing:
///
///     bascule::Trace trace("run.json");
///     launch(stream, config, x, 2, 1000);
///     trace.stop();
///
/// A process records one trace at a time. Not copyable; one thread stops and reads it. A forked child records nothing.
/// On a GPU, times come from one event before and one after each operation, which costs some microseconds. On the
/// emulated device they are times of the CPU, and the file says so.
class Trace {
  public:
    static constexpr std::size_t usual_limit = 1'000'000;
    /// Records at most `limit` calls, of some 500 bytes each; later ones are only counted. `stop` writes `file` unless
    /// it is empty. Throws: Error if another trace is being recorded.
    explicit Trace(std::string file = {}, std::size_t limit = usual_limit);
    /// Stops. If the file cannot be written, prints the reason to standard error.
    ~Trace();
    Trace(Trace&&) = delete;

    /// Ends the recording, waits for the recorded work, and writes the file. A second call does nothing. Throws: Error
    /// if the file cannot be written.
    void stop();
    /// The recording; empty before `stop`.
    const RecordedTrace& recorded() const noexcept { return recorded_; }
    /// Writes the recording to another file. Throws: Error if that fails.
    void save(const std::string& file) const;

  private:
    std::string file_;
    bool recording_ = true;
    RecordedTrace recorded_;
    std::unique_ptr<TracedProgram> program_;
};

/// Starts recording the calls of all threads, at most `limit` of them. A forked child records nothing. Throws: Error if
/// another trace is being recorded.
void start_trace(std::size_t limit);

/// Emits a range such as "bascule: launch scale" for each traced call, through the functions that were passed last.
/// They must have static storage. Thread-safe.
void emit_ranges(const RangeFunctions& functions);
void stop_ranges() noexcept;

}  // namespace bascule
