// Starting and ending what watches the calls of a program: a trace, and ranges for a profiler.
#pragma once

#include <cstddef>
#include <filesystem>

#include <bascule/runtime/trace/recorder.hpp>
#include <bascule/runtime/trace/trace_events.hpp>
#include <bascule/runtime/trace/traced_call.hpp>

namespace bascule {

/// Records what all threads of the program call, and when its work runs on the device, until `stop` or the end of the
/// scope; for https://ui.perfetto.dev and chrome://tracing:
///
///     bascule::Trace trace("run.json");
///     launch(stream, config, x, 2, 1000);
///     trace.stop();
///
/// A process records one trace at a time. Not copied; one thread stops and reads it. A child that is forked meanwhile
/// records nothing. On a GPU the device's times come from an event before and one after each operation, which takes some
/// microseconds; on the emulated device they are a CPU's, which the file says.
class Trace {
  public:
    static constexpr std::size_t usual_limit = 1'000'000;
    /// Records at most `limit` calls, some 500 bytes each; later ones are counted. `stop` writes `file`, unless that is
    /// empty. Throws: Error while another trace is recorded.
    explicit Trace(std::filesystem::path file = {}, std::size_t limit = usual_limit);
    /// Stops; where the file cannot be written, standard error says why.
    ~Trace();
    Trace(Trace&&) = delete;

    /// Ends the recording, waits for the work that was recorded, and writes the file. The second call does nothing.
    /// Throws: Error where the file cannot be written.
    void stop();
    /// What was recorded; nothing before `stop`.
    const RecordedTrace& recorded() const noexcept { return recorded_; }
    /// Writes it to another file. Throws: Error where that cannot be written.
    void save(const std::filesystem::path& file) const;

  private:
    std::filesystem::path file_;
    bool recording_ = true;
    RecordedTrace recorded_;
    TracedProgram program_;
};

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
