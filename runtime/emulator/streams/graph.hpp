// Streams and events as a graph of operations: what must come before what.
#pragma once

#include <functional>
#include <memory>
#include <optional>
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
    /// Marks the end of `stream`; an earlier mark is forgotten.
    void record(Event& event, Stream& stream);
    /// Later work on `stream` runs after what `event` marks now; nothing where it was never recorded.
    void wait(Stream& stream, Event& event);

    void synchronize(Stream& stream);
    void synchronize(Event& event);
    void synchronize_all();
    /// Everything pending has run. Unlike after a synchronisation, nobody may rely on it: frees and the like
    /// wait more than they promise.
    void drain();
    /// True when everything has run, false while another thread runs it. Where nothing runs by itself this
    /// runs what is pending, so that polling ends.
    bool query(Stream& stream);
    bool query(Event& event);

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
    void arrive(Stream& stream);
    void host_learns(Stream& stream);
    void run_all(Scheduler::Lock& lock);
    Nodes unfinished(Stream& stream);
    void append(Stream& stream, const Nodes& after, std::function<void()> work);
    void forget_done_orphans();

    Scheduler& scheduler_;
    Stream legacy_{.blocking = true, .legacy = true, .tail = nullptr, .timeline = {}};
    std::vector<Stream*> streams_;
    std::vector<Orphan> orphans_;
    races::VectorClock gone_,
        gone_blocking_;  // what streams that are gone have known: all, and blocking ones
    races::Detector& detector_ = races::Detector::get();
};

}  // namespace emulated::streams
