// Orders operations on streams. Semantics: CUDA driver API documentation, "Stream synchronization behavior" (legacy default
// stream) and the event functions.
#include "streams/graph.hpp"

#include <algorithm>
#include <utility>

#include "streams/driver_lock.hpp"
#include "streams/timers.hpp"

namespace emulated::streams {
namespace {

/// Replaces a finished node by its time, so that events keep no nodes alive.
void settle(Event& event) noexcept {
    if (event.node == nullptr || !is_done(event.node)) return;
    event.finished = event.node->finished;
    event.node = nullptr;
}

}  // namespace

void Graph::add(Stream& stream) {
    const auto lock = scheduler_.lock();
    streams_.push_back(&stream);
}

void Graph::remove(Stream& stream) {
    const auto lock = scheduler_.lock();
    std::erase(streams_, &stream);
    forget_done_orphans();
    gone_.learn(stream.timeline.known);
    if (stream.blocking) gone_blocking_.learn(stream.timeline.known);
    if (!is_done(stream.tail)) orphans_.push_back({stream.tail, stream.blocking});
    stream.tail = nullptr;
}

void Graph::forget_done_orphans() {
    std::erase_if(orphans_, [](const Orphan& orphan) { return is_done(orphan.node); });
}

/// The unfinished operations that precede the next operation on `stream`.
Nodes Graph::before_next(Stream& stream) {
    Nodes before;
    const auto add = [&](const std::shared_ptr<Node>& tail) {
        if (!is_done(tail)) before.push_back(tail);
    };
    add(stream.tail);
    if (stream.legacy) {
        for (const Stream* other : streams_) {
            if (other->blocking) add(other->tail);
        }
        for (const Orphan& orphan : orphans_) {
            if (orphan.blocking) add(orphan.node);
        }
    } else if (stream.blocking) {
        add(legacy_.tail);
    }
    return before;
}

/// The operations that a host wait for `stream` waits for: its own, and for the legacy default stream also those of the
/// blocking streams, with which it is always ordered.
Nodes Graph::unfinished(Stream& stream) {
    if (stream.legacy) return before_next(stream);
    return is_done(stream.tail) ? Nodes{} : Nodes{stream.tail};
}

/// Adds what precedes the next operation on `stream` to its clock. Unlike before_next, includes finished operations.
void Graph::arrive(Stream& stream) {
    if (!detector_.on()) return;
    races::VectorClock& known = stream.timeline.known;
    if (stream.legacy) {
        for (const Stream* other : streams_) {
            if (other->blocking) detector_.join(known, other->timeline.known);
        }
        detector_.join(known, gone_blocking_);
    } else if (stream.blocking) {
        detector_.join(known, legacy_.timeline.known);
    }
}

/// Tells the search for races that the host has waited for the stream.
void Graph::host_learns(Stream& stream) {
    if (!detector_.on()) return;
    if (stream.legacy) arrive(stream);
    detector_.host_learns(stream.timeline.known);
}

void Graph::append(Stream& stream, const Nodes& after, std::function<void()> work) {
    if (auto node = scheduler_.add(after, std::move(work))) stream.tail = std::move(node);
}

/// Wraps `work` so that its accesses are logged as those of the stream's next operation.
std::function<void()> Graph::watched(Stream& stream, std::function<void()> work) {
    return [operation = detector_.begin(stream.timeline), run = std::move(work)] {
        const races::Running running(operation);
        run();
    };
}

void Graph::submit(Stream& stream, std::function<void()> work) {
    if (const std::uint64_t number = std::exchange(Timers::next(), 0); number != 0)
        work = Timers::get().timed(number, std::move(work));
    auto lock = scheduler_.lock_with_room();
    if (detector_.on()) {
        arrive(stream);
        work = watched(stream, std::move(work));
    }
    append(stream, before_next(stream), std::move(work));
    const std::shared_ptr<Node> node = stream.tail;
    scheduler_.issued(lock, node);
}

/// Nothing runs before all steps are issued, so that other threads see the whole graph on the stream or nothing of it.
void Graph::launch(Stream& stream, std::span<const Step> steps, Lanes& lanes) {
    const std::uint64_t timer = std::exchange(Timers::next(), 0);
    auto lock = scheduler_.lock_with_room();
    Nodes before = before_next(stream);
    if (!is_done(lanes.whole.tail)) before.push_back(lanes.whole.tail);
    Nodes nodes;
    Nodes last;
    const bool watching = detector_.on();
    std::vector<races::VectorClock> known;  // after each step
    const races::Announcement launched = races::Detector::take_announcement();
    races::VectorClock& ours = stream.timeline.known;
    arrive(stream);
    if (watching) detector_.join(ours, lanes.whole.timeline.known);
    for (const Step& step : steps) {
        Stream& lane = lanes[step.lane];
        Nodes after = step.after.empty() ? before : Nodes{};
        for (const std::size_t index : step.after) after.push_back(nodes[index]);
        if (step.waits_for != nullptr) after.push_back(step.waits_for->node);
        std::function<void()> work;
        if (step.work != nullptr) work = [work = step.work] { (*work)(); };
        if (timer != 0 && work != nullptr) work = Timers::get().timed(timer, std::move(work));
        if (watching) {
            if (step.after.empty()) detector_.join(lane.timeline.known, ours);
            for (const std::size_t index : step.after) detector_.join(lane.timeline.known, known[index]);
            if (step.waits_for != nullptr) detector_.join(lane.timeline.known, step.waits_for->known);
            if (work != nullptr) {
                races::Detector::announce(step.announced.in_a_graph(launched));
                work = watched(lane, std::move(work));
            }
            known.push_back(lane.timeline.known);
        }
        append(lane, after, std::move(work));
        nodes.push_back(lane.tail);
        if (step.records != nullptr) {
            mark_now(*step.records, lane);
            if (!is_done(lane.tail)) step.records->node = lane.tail;
        }
        if (step.last) last.push_back(nodes.back());
    }
    if (last.empty()) return;
    if (watching) {
        for (const races::VectorClock& each : known) detector_.join(ours, each);
        lanes.whole.timeline.known = ours;
    }
    append(stream, last, nullptr);
    lanes.whole.tail = stream.tail;
    const std::shared_ptr<Node> node = stream.tail;
    scheduler_.issued(lock, node);
}

/// Records the event as already complete.
void Graph::mark_now(Event& event, const Stream& stream) {
    event.recorded = true;
    event.node = nullptr;
    event.finished = device_time();
    if (detector_.on()) event.known = stream.timeline.known;
}

void Graph::record(Event& event, Stream& stream) {
    const auto lock = scheduler_.lock();
    arrive(stream);
    mark_now(event, stream);
    const Nodes before = before_next(stream);
    if (before.empty()) return;
    append(stream, before, nullptr);
    event.node = stream.tail;
}

void Graph::record_all(Event& event) {
    const auto lock = scheduler_.lock();
    Stream all{.blocking = false, .legacy = false, .tail = {}, .timeline = {}};
    if (detector_.on()) {
        for (const Stream* stream : streams_) detector_.join(all.timeline.known, stream->timeline.known);
        detector_.join(all.timeline.known, legacy_.timeline.known);
        detector_.join(all.timeline.known, gone_);
    }
    mark_now(event, all);
    append(all, all_unfinished(), nullptr);
    event.node = all.tail;
}

void Graph::wait(Stream& stream, Event& event) {
    const auto lock = scheduler_.lock();
    settle(event);
    arrive(stream);
    if (detector_.on()) detector_.join(stream.timeline.known, event.known);
    // In the legacy default stream a wait is an operation: it orders the blocking streams even if there is nothing to
    // wait for.
    if (event.node == nullptr && !stream.legacy) return;
    Nodes before = before_next(stream);
    before.push_back(event.node);
    append(stream, before, nullptr);
}

void Graph::synchronize(Stream& stream) {
    const DriverUnlocked waiting;
    auto lock = scheduler_.lock();
    for (const auto& node : unfinished(stream)) scheduler_.force(lock, node);
    host_learns(stream);
}

void Graph::synchronize(Event& event) {
    const DriverUnlocked waiting;
    auto lock = scheduler_.lock();
    const races::VectorClock known = event.known;
    if (const auto node = event.node) scheduler_.force(lock, node);
    settle(event);
    if (detector_.on()) detector_.host_learns(known);
}

void Graph::drain() {
    const DriverUnlocked waiting;
    auto lock = scheduler_.lock();
    run_all(lock);
}

void Graph::synchronize_all() {
    const DriverUnlocked waiting;
    auto lock = scheduler_.lock();
    run_all(lock);
    if (!detector_.on()) return;
    detector_.host_learns(legacy_.timeline.known);
    for (const Stream* stream : streams_) detector_.host_learns(stream->timeline.known);
    detector_.host_learns(gone_);
}

Nodes Graph::all_unfinished() {
    forget_done_orphans();
    Nodes nodes = before_next(legacy_);
    for (const Stream* stream : streams_) {
        if (!is_done(stream->tail)) nodes.push_back(stream->tail);
    }
    for (const Orphan& orphan : orphans_) nodes.push_back(orphan.node);
    return nodes;
}

void Graph::run_all(Scheduler::Lock& lock) {
    for (const auto& node : all_unfinished()) scheduler_.force(lock, node);
    forget_done_orphans();
}

bool Graph::busy() {
    const auto lock = scheduler_.lock();
    return !all_unfinished().empty();
}

bool Graph::query(Stream& stream) {
    auto lock = scheduler_.lock();
    for (const auto& node : unfinished(stream)) {
        if (!scheduler_.poll(lock, node)) return false;
    }
    host_learns(stream);
    return true;
}

bool Graph::query(Event& event) {
    auto lock = scheduler_.lock();
    const races::VectorClock known = event.known;
    if (const auto node = event.node; node != nullptr && !scheduler_.poll(lock, node)) return false;
    settle(event);
    if (detector_.on()) detector_.host_learns(known);
    return true;
}

bool Graph::recorded(const Event& event) {
    const auto lock = scheduler_.lock();
    return event.recorded;
}

std::optional<float> Graph::milliseconds(const Event& start, const Event& end) {
    const auto lock = scheduler_.lock();
    if (!is_done(start.node) || !is_done(end.node)) return std::nullopt;
    const auto time_of = [](const Event& event) {
        return event.node ? event.node->finished : event.finished;
    };
    // "with a resolution of around 0.5 microseconds", then converted to float.
    using HalfMicroseconds = std::chrono::duration<std::int64_t, std::ratio<1, 2'000'000>>;
    const auto ticks = [&](const Event& event) {
        return std::chrono::round<HalfMicroseconds>(time_of(event).time_since_epoch());
    };
    return std::chrono::duration<float, std::milli>(ticks(end) - ticks(start)).count();
}

}  // namespace emulated::streams
