// Streams and events as a graph of operations and their order.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "races/detector.hpp"
#include "streams/scheduler.hpp"

namespace emulated::streams {

/// The state of a stream. Belongs to one Graph.
struct Stream {
    bool blocking = true;        ///< ordered with the legacy default stream
    bool legacy = false;         ///< the legacy default stream itself
    std::shared_ptr<Node> tail;  ///< the newest operation; null if none is known to be pending
    races::Timeline timeline;    ///< maintained during a search for races
};

/// The state of an event.
struct Event {
    bool recorded = false;
    std::shared_ptr<Node> node;  ///< the recorded operation; null if it is known to have finished
    Clock::time_point finished;  ///< valid when `node` is null
    races::VectorClock known;    ///< what precedes the record, during a search for races
};

/// The work of an operation; it may run many times.
using SharedWork = std::shared_ptr<const std::function<void()>>;

/// One operation of a graph launch.
struct Step {
    SharedWork work;                 ///< null for a step that only waits or records
    std::vector<std::size_t> after;  ///< earlier steps; if empty, it follows the work before the graph
    std::size_t lane = 0;            ///< steps of the same lane run in order
    bool last = true;                ///< no step follows it
    races::Announcement announced;   ///< from its capture
    std::shared_ptr<Event> waits_for = nullptr;  ///< it waits for this event's record as of the launch
    std::shared_ptr<Event> records = nullptr;    ///< this event is recorded after the step
};

/// The hidden streams on which the operations of an executable graph run, reused by later launches.
class Lanes {
  public:
    /// References stay valid when lanes are added.
    Stream& operator[](std::size_t lane) {
        while (streams_.size() <= lane) streams_.push_back(hidden());
        return streams_[lane];
    }
    /// Ends with the newest launch; the next launch follows it.
    Stream whole = hidden();

  private:
    static Stream hidden() { return {.blocking = false, .legacy = false, .tail = {}, .timeline = {}}; }

    std::deque<Stream> streams_;
};

/// The streams of one context and the order of their operations. Thread-safe; streams and events are changed only here,
/// under the scheduler's lock.
class Graph {
  public:
    explicit Graph(Scheduler& scheduler) : scheduler_(scheduler) {}

    /// The legacy default stream, which is ordered with all blocking streams.
    Stream& legacy() noexcept { return legacy_; }
    void add(Stream& stream);
    /// Removes the stream at once. Its pending operations still run, and are waited for as before.
    void remove(Stream& stream);

    /// Enqueues `work` on `stream`. `work` must not throw.
    void submit(Stream& stream, std::function<void()> work);
    /// Enqueues all steps of a graph on `stream`, after earlier launches of the graph.
    void launch(Stream& stream, std::span<const Step> steps, Lanes& lanes);
    /// Records the event on `stream`, in place of an earlier record.
    void record(Event& event, Stream& stream);
    /// Records the event after everything that is enqueued now, on all streams.
    void record_all(Event& event);
    /// Makes later work on `stream` wait for the event's present record; does nothing if it was never recorded.
    void wait(Stream& stream, Event& event);

    void synchronize(Stream& stream);
    void synchronize(Event& event);
    void synchronize_all();
    /// Waits until everything pending has run. Unlike a synchronisation, this tells the search for races nothing,
    /// because programs may not rely on the wait: frees, for example, wait longer than documented.
    void drain();
    /// True if everything has run; false while another thread runs it. If no thread runs operations by itself, this runs
    /// what is pending, so that polling ends.
    bool query(Stream& stream);
    bool query(Event& event);

    /// True if an operation is pending or running.
    bool busy();

    bool recorded(const Event& event);
    /// Milliseconds between two events; nothing if one is not known to have completed (see query).
    std::optional<float> milliseconds(const Event& start, const Event& end);

  private:
    /// The last operation of a removed stream.
    struct Orphan {
        std::shared_ptr<Node> node;
        bool blocking = true;
    };

    Nodes before_next(Stream& stream);
    std::function<void()> watched(Stream& stream, std::function<void()> work);
    void arrive(Stream& stream);
    void mark_now(Event& event, const Stream& stream);
    void host_learns(Stream& stream);
    void run_all(Scheduler::Lock& lock);
    Nodes all_unfinished();
    Nodes unfinished(Stream& stream);
    void append(Stream& stream, const Nodes& after, std::function<void()> work);
    void forget_done_orphans();

    Scheduler& scheduler_;
    Stream legacy_{.blocking = true, .legacy = true, .tail = nullptr, .timeline = {}};
    std::vector<Stream*> streams_;
    std::vector<Orphan> orphans_;
    // The clocks of removed streams: of all, and of blocking ones.
    races::VectorClock gone_, gone_blocking_;
    races::Detector& detector_ = races::Detector::get();
};

}  // namespace emulated::streams
