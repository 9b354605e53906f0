// Records what the program calls and when its work runs on the device.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <bascule/interface/arguments/launch_config.hpp>
#include <bascule/jit/cache/cache.hpp>
#include <bascule/runtime/streams/stream_ref.hpp>
#include <bascule/runtime/streams/watches.hpp>
#include <bascule/runtime/trace/launch_site.hpp>
#include <bascule/runtime/trace/trace_clock.hpp>

namespace bascule {

/// What a call does.
enum class CallKind : std::uint8_t {
    read,  ///< a launch's arguments
    compile,
    load,
    launch,
    copy_to_device,
    copy_to_host,
    copy,
    fill,
    graph_launch,
    wait,        ///< a stream is told to wait for another
    synchronize  ///< the host waits
};

const char* to_string(CallKind kind) noexcept;  ///< "copy to device"

/// One call, and the device's part of it where there is one. A value.
struct TraceRecord {
    CallKind kind = CallKind::launch;
    std::string name;          ///< "launch scale"
    std::uint64_t thread = 0;  ///< the system's number of it
    TraceSpan called;
    std::string subject{};                 ///< a launch's signature; a compile's file
    std::optional<LaunchConfig> config{};  ///< of a launch
    std::optional<std::uint64_t> bytes{};  ///< of a copy or fill
    std::optional<Origin> origin{};        ///< of a compile
    LaunchSite site{};                     ///< of a launch
    bool captured = false;                 ///< became part of a graph: nothing ran
    std::optional<StreamRef> stream{};     ///< of what the device does
    std::uint64_t operation = 0;           ///< its number, from 1; 0: the device does nothing
    std::vector<std::uint64_t> after{};    ///< operations of other streams that it waited for
    std::optional<TraceSpan> ran{};        ///< on the device; none where that is not known
};

/// What was recorded.
struct RecordedTrace {
    TraceSpan recorded;                ///< from start to stop
    std::vector<TraceRecord> records;  ///< in the order in which the calls ended
    std::uint64_t dropped = 0;         ///< calls beyond the limit
};

/// What calls tell the trace: TracedCall (traced_call.hpp) does.
namespace trace {

struct Recording;

/// Null where none is recorded.
std::shared_ptr<Recording> current_recording();
/// As start_trace and stop_trace (trace.hpp), but that compiles may not be recorded.
void begin_recording(std::size_t limit);
RecordedTrace end_recording();

/// The call has ended.
void add(Recording& recording, TraceRecord record);
/// The next driver call of this thread does the device's part of `record`, on `stream`, whose context is current.
void begin_operation(Recording& recording, TraceRecord& record, StreamRef stream);
/// That driver call has returned.
void end_operation(Recording& recording, const TraceRecord& record);
/// That driver call was not made, or failed.
void cancel_operation(Recording& recording, TraceRecord& record) noexcept;

/// Later work on `waiting` comes after what `awaited` has now.
void note_wait(StreamRef waiting, StreamRef awaited);
/// The same by an event of the program's own.
void note_record(EventRef event, StreamRef stream);
void note_wait(StreamRef waiting, EventRef event);

}  // namespace trace
}  // namespace bascule
