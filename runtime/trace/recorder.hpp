// Records what the program calls, and when its work runs on the device.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <bascule/interface/arguments/launch_config.hpp>
#include <bascule/jit/lookup/cache.hpp>
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

/// The interface through which calls report to the trace. TracedCall (traced_call.hpp) uses it.
namespace trace {

struct Recording;

/// Null if no trace is recorded.
std::shared_ptr<Recording> current_recording();
/// Like start_trace and stop_trace (trace.hpp), but without making the cache report its compilations.
void begin_recording(std::size_t limit);
RecordedTrace end_recording();

/// Adds a call that has ended.
void add(Recording& recording, TraceRecord record);
/// Called before the driver call of this thread that enqueues the operation of `record` on `stream`, whose context must
/// be current.
void begin_operation(Recording& recording, TraceRecord& record, StreamRef stream);
/// Called when that driver call has returned.
void end_operation(Recording& recording, const TraceRecord& record);
/// Called if that driver call was not made, or if it failed.
void cancel_operation(Recording& recording, TraceRecord& record) noexcept;

/// Later work on `waiting` waits for the work enqueued so far on `awaited`.
void note_wait(StreamRef waiting, StreamRef awaited);
/// `event` marks the work enqueued so far on `stream`; later work on `waiting` waits for the work that `event` marks.
void note_record(EventRef event, StreamRef stream);
void note_wait(StreamRef waiting, EventRef event);

}  // namespace trace
}  // namespace bascule
