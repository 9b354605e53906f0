// Operations on streams as a graph: what must come before what, and when each one runs.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

namespace emulated::streams {

using Clock = std::chrono::steady_clock;

/// When operations run.
enum class Policy : std::uint8_t {
    eager,  ///< in the call that issues them
    lazy,   ///< when a synchronising call or a query forces them, and nothing more than that needs
};

/// One operation. It runs after everything in `after`, and keeps nothing alive once it is done.
struct Node {
    enum class State : std::uint8_t { pending, running, done };
    std::vector<std::shared_ptr<Node>> after;
    std::function<void()> work;  ///< empty for a mark or a join; never throws
    State state = State::pending;
    Clock::time_point finished;
};

/// Runs nodes, whichever context they are of, so that edges may cross contexts. Thread-safe. No lock is held
/// while a node works: other threads issue, record and query meanwhile.
class Scheduler {
  public:
    explicit Scheduler(Policy policy) : policy_(policy) {}
    Scheduler(const Scheduler&) = delete;
    Scheduler& operator=(const Scheduler&) = delete;

    Policy policy() const noexcept { return policy_; }

    /// Runs `work` while no node runs, and lets none start: frees, for example.
    template <class Work>
    auto exclusively(const Work& work) {
        std::unique_lock lock(mutex_);
        ++exclusive_;
        changed_.wait(lock, [&] { return running_ == 0; });
        --exclusive_;
        changed_.notify_all();
        return work();
    }

    /// True in a thread that is running a node: host functions may not call the driver.
    static bool inside() noexcept;

  private:
    friend class Graph;
    using Lock = std::unique_lock<std::mutex>;

    /// Returns once `node` is done: runs it and what it comes after, and waits for what other threads run.
    void force(Lock& lock, const std::shared_ptr<Node>& node);
    void run(Lock& lock, Node& node);

    const Policy policy_;
    std::mutex mutex_;
    std::condition_variable changed_;  // a node is done, or an exclusive caller is
    int running_ = 0;
    int exclusive_ = 0;
};

/// A stream's end: the newest operation on it. Belongs to one Graph.
struct Stream {
    bool blocking = true;        ///< ordered with the legacy default stream
    bool legacy = false;         ///< the legacy default stream itself
    std::shared_ptr<Node> tail;  ///< null when nothing is known to be pending
};

/// What an event marks.
struct Event {
    bool recorded = false;
    std::shared_ptr<Node> node;  ///< the operation it marks; null when that is known to have finished
    Clock::time_point finished;  ///< valid when `node` is null
};

/// The streams of one context, and how their operations follow each other. Thread-safe; streams and events
/// are changed by it alone, under the scheduler's lock.
class Graph {
  public:
    explicit Graph(Scheduler& scheduler) : scheduler_(scheduler) {}

    /// The legacy default stream: it waits for every blocking stream, and they for it.
    Stream& legacy() noexcept { return legacy_; }
    void add(Stream& stream);
    /// Runs what is pending on it first.
    void remove(Stream& stream);

    /// Puts `work` at the end of `stream`.
    void submit(Stream& stream, std::function<void()> work);
    /// Marks the end of `stream`; an earlier mark is forgotten.
    void record(Event& event, Stream& stream);
    /// Later work on `stream` runs after what `event` marks now; nothing where it was never recorded.
    void wait(Stream& stream, Event& event);

    void synchronize(Stream& stream);
    void synchronize(Event& event);
    void synchronize_all();
    /// True when everything has run, false while another thread runs it. Under `lazy` this runs what is
    /// pending, so that polling ends.
    bool query(Stream& stream);
    bool query(Event& event);

    /// Milliseconds between two events whose work is done.
    static float milliseconds(const Event& start, const Event& end) noexcept;

  private:
    using Nodes = std::vector<std::shared_ptr<Node>>;

    Nodes unfinished_before(Stream& stream);
    std::shared_ptr<Node> append(Stream& stream, Nodes after, std::function<void()> work);
    bool poll(Scheduler::Lock& lock, const std::shared_ptr<Node>& node);

    Scheduler& scheduler_;
    Stream legacy_{.blocking = true, .legacy = true, .tail = nullptr};
    std::vector<Stream*> streams_;
};

}  // namespace emulated::streams
