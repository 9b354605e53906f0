// Operations on streams as a graph: what must come before what, and when each one runs.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

namespace emulated::streams {

using Clock = std::chrono::steady_clock;

/// One operation. Runs after everything in `after`; keeps nothing alive once it is done.
struct Node {
    std::vector<std::shared_ptr<Node>> after;
    std::function<void()> work;
    bool done = false;
    Clock::time_point finished;
};

/// A stream's end: the newest operation on it. Belongs to one Graph.
struct Stream {
    bool blocking = true;  ///< ordered with the legacy default stream
    bool legacy = false;   ///< the legacy default stream itself
    int priority = 0;
    unsigned flags = 0;
    std::shared_ptr<Node> tail;  ///< null when nothing is pending
};

/// What an event marks. Belongs to one Graph.
struct Event {
    bool timing = true;
    bool recorded = false;
    std::shared_ptr<Node> node;  ///< the operation it marks; null when that has finished
    Clock::time_point finished;  ///< valid when `node` is null
};

/// When operations run.
enum class Policy : std::uint8_t {
    eager,  ///< in the call that issues them
    lazy,   ///< when a synchronising call or a query forces them, and nothing more than that needs
};

/// The operations of one context. Thread-safe: one operation runs at a time, in the thread that forces it.
class Graph {
  public:
    explicit Graph(Policy policy) : policy_(policy) {}

    /// The legacy default stream, and whatever other streams are ordered with it.
    Stream& legacy() noexcept { return legacy_; }
    void add(Stream& stream);
    /// Runs what is pending on it first.
    void remove(Stream& stream);

    /// Puts `work` at the end of `stream`.
    void submit(Stream& stream, std::function<void()> work);
    /// Marks the end of `stream`; an earlier mark is forgotten.
    void record(Event& event, Stream& stream);
    /// Later work on `stream` runs after what `event` marks now.
    void wait(Stream& stream, const Event& event);

    void synchronize(Stream& stream);
    void synchronize(Event& event);
    void synchronize_all();
    /// True when everything has run. Under `lazy` this runs it, so that polling ends.
    bool query(Stream& stream);
    bool query(Event& event);

    /// Runs `work` while no operation runs: frees, for example.
    template <class Work>
    auto exclusively(const Work& work) {
        const std::lock_guard lock(mutex_);
        return work();
    }

  private:
    std::vector<std::shared_ptr<Node>> predecessors(const Stream& stream) const;
    void append(Stream& stream, std::function<void()> work);
    static void force(const std::shared_ptr<Node>& node);
    void force_tail(Stream& stream);

    Policy policy_;
    std::recursive_mutex mutex_;  // an operation may free memory or record: host functions do
    Stream legacy_{.blocking = true, .legacy = true, .priority = 0, .flags = 0, .tail = nullptr};
    std::vector<Stream*> streams_;
};

}  // namespace emulated::streams
