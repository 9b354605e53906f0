#include <algorithm>
#include <new>
#include <pthread.h>
#include <tuple>
#include <unistd.h>
#include <utility>

#include <bascule/interface/errors/error.hpp>
#include <bascule/jit/process/never_destroyed.hpp>
#include <bascule/runtime/driver/driver.hpp>
#include <bascule/runtime/streams/stream_capture.hpp>
#include <bascule/runtime/trace/device_times.hpp>
#include <bascule/runtime/trace/recorder.hpp>

namespace bascule {
namespace {

std::uint64_t thread_number() noexcept { return static_cast<std::uint64_t>(gettid()); }

/// The last operation of one stream, and what the next one waits for.
struct Row {
    std::uint64_t newest = 0;            // the newest operation
    std::vector<std::uint64_t> waits{};  // operations of other streams that the next one here waits for
};

/// Identifies a stream: device, handle, and thread. Handle 2 is a different stream in each thread.
using RowKey = std::tuple<int, std::uint64_t, std::uint64_t>;

RowKey key_of(StreamRef stream) {
    const std::uint64_t thread = stream.handle() == 2 ? thread_number() : 0;
    return {stream.device().ordinal(), stream.handle(), thread};
}

std::mutex recording_mutex;  // guards `current`
std::shared_ptr<trace::Recording>& current() { return never_destroyed<std::shared_ptr<trace::Recording>>(); }

std::shared_ptr<trace::Recording> current_recording() {
    if (!watches(Watch::record)) return nullptr;
    const std::lock_guard lock(recording_mutex);
    return current();
}

/// Turns recording off in a forked child. The trace belongs to the parent, and threads of the parent may have held its locks.
void stop_in_child() noexcept {
    set_watch(Watch::record, false);
    static_cast<void>(new (std::nothrow) std::shared_ptr<trace::Recording>(std::move(current())));
    recording_mutex.unlock();
}

}  // namespace

/// Calls that are still running when the trace ends keep it alive.
struct trace::Recording {
    explicit Recording(std::size_t most) : limit(most) { trace.recorded.begin = trace_now(); }

    /// The newest operation on a stream, or 0.
    std::uint64_t newest_on(StreamRef stream) const {
        const auto row = rows.find(key_of(stream));
        return row == rows.end() ? 0 : row->second.newest;
    }
    /// Does nothing if `operation` is 0, is the newest one on `waiting`, or was added before.
    void add_wait(StreamRef waiting, std::uint64_t operation) {
        Row& row = rows[key_of(waiting)];
        const bool known = std::find(row.waits.begin(), row.waits.end(), operation) != row.waits.end();
        if (operation != 0 && operation != row.newest && !known) row.waits.push_back(operation);
    }
    /// Adds a call that has ended.
    void add(TraceRecord record) {
        const std::lock_guard lock(mutex);
        if (stopped) return;
        if (trace.records.size() >= limit) {
            ++trace.dropped;
        } else {
            trace.records.push_back(std::move(record));
        }
    }

    const std::size_t limit;
    std::mutex mutex;  // guards the members below; `times` has its own lock once made
    bool stopped = false;
    RecordedTrace trace;
    std::uint64_t newest = 0;  // number of the newest operation
    std::map<RowKey, Row> rows;
    std::unordered_map<std::uint64_t, std::uint64_t> events;  // from the program's events to operations
    std::unique_ptr<DeviceTimes> times;
};

const char* to_string(CallKind kind) noexcept {
    static constexpr const char* names[] = {"read",           "compile",      "load",       "launch",
                                            "copy to device", "copy to host", "copy",       "fill",
                                            "graph launch",   "wait",         "synchronize"};
    return names[static_cast<std::size_t>(kind)];
}

void trace::begin_recording(std::size_t limit) {
    static const int handlers =
        pthread_atfork([] { recording_mutex.lock(); }, [] { recording_mutex.unlock(); }, &stop_in_child);
    static_cast<void>(handlers);
    const std::lock_guard lock(recording_mutex);
    if (current() != nullptr) {
        throw Error(
            "a trace is being recorded already, and a process records one at a time: leave that `with` block "
            "first.");
    }
    current() = std::make_shared<trace::Recording>(limit);
    set_watch(Watch::record, true);
}

RecordedTrace stop_trace() {
    std::shared_ptr<trace::Recording> recording;
    {
        const std::lock_guard lock(recording_mutex);
        recording = std::exchange(current(), nullptr);
        set_watch(Watch::record, false);
    }
    if (recording == nullptr) throw Error("no trace is being recorded.");
    {
        const std::lock_guard lock(recording->mutex);
        recording->stopped = true;
        recording->trace.recorded.end = trace_now();
    }
    if (recording->times != nullptr) {
        const auto known = recording->times->finish();
        for (TraceRecord& record : recording->trace.records) {
            if (const auto ran = known.find(record.operation); ran != known.end()) record.ran = ran->second;
        }
    }
    return std::move(recording->trace);
}

void TracedCall::begin(CallKind kind, std::string name) {
    watched_ = true;
    if (watches(Watch::ranges)) {
        range_ = trace::range_functions.load(std::memory_order_acquire);
        if (range_ != nullptr) range_->push(("bascule: " + name).c_str());
    }
    recording_ = current_recording();
    if (recording_ == nullptr) return;
    record_ = std::make_unique<TraceRecord>();
    record_->kind = kind;
    record_->name = std::move(name);
    record_->thread = thread_number();
    record_->called.begin = trace_now();
}

void TracedCall::begin_recorded_operation(StreamRef stream) {
    issuing_ = true;
    trace::Recording& recording = *recording_;
    TraceRecord& record = *record_;
    record.stream = stream;
    record.captured = may_be_captured(stream);  // if unknown, events cannot be recorded either
    if (record.captured) return;
    {
        const std::lock_guard lock(recording.mutex);
        if (recording.stopped || recording.trace.records.size() >= recording.limit) return;
        if (recording.times == nullptr) {
            recording.times = std::make_unique<DeviceTimes>(Driver::get().emulated() ? TimesFrom::emulator
                                                                                     : TimesFrom::events);
        }
        record.operation = ++recording.newest;
        Row& row = recording.rows[key_of(stream)];
        row.newest = record.operation;
        record.after = std::exchange(row.waits, {});
    }
    recording.times->begin(record.operation, stream);
}

void TracedCall::end_recorded_operation() {
    issuing_ = false;
    if (record_->operation != 0) recording_->times->end(record_->operation, *record_->stream);
}

void TracedCall::end() noexcept {
    if (record_ != nullptr) {
        record_->called.end = trace_now();
        if (issuing_ && record_->operation != 0)
            recording_->times->cancel(std::exchange(record_->operation, 0));
        try {
            recording_->add(std::move(*record_));
        } catch (...) {  // out of memory: this call is missing from the trace
        }
    }
    if (range_ != nullptr) range_->pop();
}

namespace trace {

void note_wait(StreamRef waiting, StreamRef awaited) {
    const auto recording = current_recording();
    if (recording == nullptr) return;
    const std::lock_guard lock(recording->mutex);
    recording->add_wait(waiting, recording->newest_on(awaited));
}

void note_record(EventRef event, StreamRef stream) {
    const auto recording = current_recording();
    if (recording == nullptr) return;
    const std::lock_guard lock(recording->mutex);
    recording->events[event.handle()] = recording->newest_on(stream);
}

void note_wait(StreamRef waiting, EventRef event) {
    const auto recording = current_recording();
    if (recording == nullptr) return;
    const std::lock_guard lock(recording->mutex);
    const auto marked = recording->events.find(event.handle());
    if (marked != recording->events.end()) recording->add_wait(waiting, marked->second);
}

}  // namespace trace
}  // namespace bascule
