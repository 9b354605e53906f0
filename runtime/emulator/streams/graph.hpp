// Streams and events as a graph of operations: what must come before what.
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

/// A stream's end: the newest operation on it. Belongs to one Graph.
struct Stream {
    bool blocking = true;        ///< ordered with the legacy default stream
    bool legacy = false;         ///< the legacy default stream itself
    std::shared_ptr<Node> tail;  ///< null when nothing is known to be pending
    races::Timeline timeline;    ///< kept while races are looked for
};

/// What an event marks.
struct Event {
    bool recorded = false;
    std::shared_ptr<Node> node;  ///< the operation it marks; null when that is known to have finished
    Clock::time_point finished;  ///< valid when `node` is null
    races::VectorClock known;    ///< what comes before the mark, while races are looked for
};

/// What an operation does; it may be done many times.
using SharedWork = std::shared_ptr<const std::function<void()>>;

/// One operation of a graph that is launched.
struct Step {
    SharedWork work;                 ///< null of one that only waits or marks
    std::vector<std::size_t> after;  ///< earlier steps; none: it comes after what is before the graph
    std::size_t lane = 0;            ///< steps of one lane follow each other
    bool last = true;                ///< no step comes after it
    races::Announcement announced;   ///< where it was captured
    std::shared_ptr<Event> waits_for = nullptr;  ///< what this marks at the launch comes before it
    std::shared_ptr<Event> records = nullptr;    ///< marks what the step comes after
};

/// The streams that a captured graph's operations run on, kept from launch to launch. No client sees them.
class Lanes {
  public:
    /// Stays where it is when others follow.
    Stream& operator[](std::size_t lane) {
        while (streams_.size() <= lane) streams_.push_back(hidden());
        return streams_[lane];
    }
    /// Ends with the newest launch, which the next one comes after.
    Stream whole = hidden();

  private:
    static Stream hidden() { return {.blocking = false, .legacy = false, .tail = {}, .timeline = {}}; }

    std::deque<Stream> streams_;
};

/// The streams of one context, and how their operations follow each other. Thread-safe; streams and events
/// are changed by it alone, under the scheduler's lock.
class Graph {
  public:
    explicit Graph(Scheduler& scheduler) : scheduler_(scheduler) {}

    /// The legacy default stream: it waits for every blocking stream, and they for it.
    Stream& legacy() noexcept { return legacy_; }
    void add(Stream& stream);
    /// At once: what is pending on it still runs, and is waited for where the stream would have been.
    void remove(Stream& stream);

    /// Puts `work`, which does not throw, at the end of `stream`.
    void submit(Stream& stream, std::function<void()> work);
    /// Puts all of a graph at the end of `stream`, behind its earlier launches: an operation a step.
    void launch(Stream& stream, std::span<const Step> steps, Lanes& lanes);
    /// Marks the end of `stream`; an earlier mark is forgotten.
    void record(Event& event, Stream& stream);
    /// Marks everything that is enqueued now, on all streams.
    void record_all(Event& event);
    /// Later work on `stream` runs after what `event` marks now; nothing where it was never recorded.
    void wait(Stream& stream, Event& event);

    void synchronize(Stream& stream);
    void synchronize(Event& event);
    void synchronize_all();
    /// Everything pending has run. Unlike after a synchronisation, callers may not rely on it: frees and the like
    /// wait more than they promise.
    void drain();
    /// True when everything has run, false while another thread runs it. Where nothing runs by itself this
    /// runs what is pending, so that polling ends.
    bool query(Stream& stream);
    bool query(Event& event);

    /// Something has not run, or not to its end.
    bool busy();

    bool recorded(const Event& event);
    /// Milliseconds between two events; nothing when what they mark is not known to be done (see query).
    std::optional<float> milliseconds(const Event& start, const Event& end);

  private:
    /// What a stream that is gone has left.
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
    // What streams that are gone have known: all, and blocking ones.
    races::VectorClock gone_, gone_blocking_;
    races::Detector& detector_ = races::Detector::get();
};

}  // namespace emulated::streams
