// Records what the program calls, and when its work runs on the device. Profilers see the same calls as ranges.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include <bascule/interface/arguments/launch_config.hpp>
#include <bascule/jit/lookup/cache.hpp>
#include <bascule/runtime/streams/observer.hpp>
#include <bascule/runtime/streams/stream_ref.hpp>
#include <bascule/runtime/trace/launch_site.hpp>
#include <bascule/runtime/trace/trace_clock.hpp>

namespace bascule {

/// The kinds of calls.
enum class CallKind : std::uint8_t {
    read,  ///< of a launch's arguments
    compile,
    load,
    launch,
    copy_to_device,
    copy_to_host,
    copy,
    fill,
    graph_launch,
    wait,        ///< one stream waits for another
    synchronize  ///< the host waits
};

const char* to_string(CallKind kind) noexcept;  ///< "copy to device"

/// One call, and its operation on the device if there is one. A value type.
struct TraceRecord {
    CallKind kind = CallKind::launch;
    std::string name;          ///< "launch scale"
    std::uint64_t thread = 0;  ///< the system's thread id
    TraceSpan called;
    std::string subject{};                 ///< a launch's signature; a compilation's file
    std::optional<LaunchConfig> config{};  ///< of a launch
    std::optional<std::uint64_t> bytes{};  ///< of a copy or fill
    std::optional<Origin> origin{};        ///< of a compilation
    LaunchSite site{};                     ///< of a launch
    bool captured = false;                 ///< it became part of a graph, so nothing ran
    std::optional<StreamRef> stream{};     ///< the stream of the operation
    std::uint64_t operation = 0;           ///< the operation's number, from 1; 0: nothing runs on the device
    std::vector<std::uint64_t> after{};    ///< operations of other streams that it waited for
    std::optional<TraceSpan> ran{};        ///< on the device; empty if unknown
};

/// A finished recording.
struct RecordedTrace {
    TraceSpan recorded;                ///< from start to stop
    std::vector<TraceRecord> records;  ///< in the order in which the calls ended
    std::uint64_t dropped = 0;         ///< calls beyond the limit
};

/// A profiler's ranges, which nest on each thread. The functions must not throw. They may take the GIL, so the caller
/// must hold no lock.
struct RangeFunctions {
    void (*push)(const char* name) noexcept;
    void (*pop)() noexcept;
};

namespace trace {

struct Recording;

/// The functions in use while Watch::ranges is on.
inline std::atomic<const RangeFunctions*> range_functions{nullptr};

/// Like start_trace (trace.hpp), but without making the cache report its compilations.
void begin_recording(std::size_t limit);

/// Later work on `waiting` waits for the work enqueued so far on `awaited`.
void note_wait(StreamRef waiting, StreamRef awaited);
/// `event` marks the work enqueued so far on `stream`; later work on `waiting` waits for the work that `event` marks.
void note_record(EventRef event, StreamRef stream);
void note_wait(StreamRef waiting, EventRef event);

}  // namespace trace

/// Ends the recording after waiting for the recorded work. Does not throw if the device is lost: unfinished work then
/// has no times. Throws: Error if no trace is being recorded.
RecordedTrace stop_trace();

/// Traces a call from construction to the end of the scope. Costs one test while nothing is recorded.
class TracedCall {
  public:
    /// `describe` returns the call's name. It is called only if the call is recorded or shown.
    template <class Describe>
    TracedCall(CallKind kind, const Describe& describe) {
        if (watches(Watch::record) || watches(Watch::ranges)) [[unlikely]]
            begin(kind, describe());
    }
    /// A copy or fill of `bytes` bytes.
    TracedCall(CallKind kind, std::uint64_t bytes) : TracedCall(kind, [&] { return to_string(kind); }) {
        if (record_ != nullptr) record_->bytes = bytes;
    }
    ~TracedCall() {
        if (watched_) [[unlikely]]
            end();
    }
    TracedCall(TracedCall&&) = delete;

    /// Null unless a trace is being recorded.
    TraceRecord* record() noexcept { return record_.get(); }
    /// Called before and after this thread's driver call that enqueues the work on `stream`, whose context must be current.
    void begin_operation(StreamRef stream) {
        if (record_ != nullptr) begin_recorded_operation(stream);
    }
    void end_operation() {
        if (record_ != nullptr) end_recorded_operation();
    }

  private:
    void begin(CallKind kind, std::string name);
    void end() noexcept;
    void begin_recorded_operation(StreamRef stream);
    void end_recorded_operation();

    bool watched_ = false;
    bool issuing_ =
        false;  // between begin_operation and end_operation; if still set at the end, the driver call failed
    std::shared_ptr<trace::Recording> recording_;
    std::unique_ptr<TraceRecord> record_;    // of `recording_`
    const RangeFunctions* range_ = nullptr;  // non-null while a range is open
};

}  // namespace bascule
