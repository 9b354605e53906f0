// Runs operations: each after what it must come after, and when the policy says.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <random>
#include <thread>
#include <vector>

#include "streams/driver_lock.hpp"
#include "streams/schedule.hpp"

namespace emulated::streams {

using Clock = std::chrono::steady_clock;

/// How far the devices' clock is ahead of the host's, in nanoseconds: bascule_emulated_advance_clock.
inline std::atomic<std::int64_t> clock_advance{0};

/// The time that events take.
inline Clock::time_point device_time() noexcept {
    return Clock::now() + std::chrono::nanoseconds(clock_advance.load(std::memory_order_relaxed));
}

/// One operation. The scheduler keeps it until it is done; a thread that waits for it may keep it longer.
struct Node {
    enum class State : std::uint8_t { pending, running, done };
    std::function<void()> work;  ///< empty for a mark or a join, which pass with what they come after
    State state = State::pending;
    Clock::time_point finished;  ///< of a pending one: the latest end among what it came after, so far
    // Between pending ones only; those that are done have left both lists.
    std::vector<Node*> after, before;
    std::list<std::shared_ptr<Node>>::iterator self;
};

using Nodes = std::vector<std::shared_ptr<Node>>;

inline bool is_done(const std::shared_ptr<Node>& node) noexcept {
    return node == nullptr || node->state == Node::State::done;
}

/// Runs nodes, whichever context they are of, so that edges may cross contexts. Thread-safe. No lock is held
/// while a node works: other threads issue, record and query meanwhile.
class Scheduler {
  public:
    using Lock = std::unique_lock<std::mutex>;

    /// `meanwhile` is called now and then, without a lock, by threads that wait for others; it may be null.
    explicit Scheduler(Schedule schedule, void (*meanwhile)() = nullptr)
        : schedule_(schedule), meanwhile_(meanwhile), random_(schedule.seed) {}
    explicit Scheduler(Policy policy) : Scheduler(Schedule{.policy = policy}) {}
    /// Waits for what runs; what is pending never runs.
    ~Scheduler();

    Policy policy() const noexcept { return schedule_.policy; }

    /// Runs `work` while no node runs, and lets none start: frees, for example. Gives way now and then,
    /// because what runs may wait for what has not started yet.
    template <class Work>
    auto exclusively(const Work& work) {
        constexpr std::chrono::milliseconds turn{20};
        const DriverUnlocked waiting;
        Lock lock(mutex_);
        for (;;) {
            ++exclusive_;
            const bool alone = changed_.wait_for(lock, turn, [&] { return running_ == 0; });
            --exclusive_;
            changed_.notify_all();
            wanted_.notify_all();
            if (alone) return work();
            changed_.wait_for(lock, turn, [&] { return running_ == 0; });
            pass_time(lock);
        }
    }

    /// The same, unless something runs now. Never waits for it.
    template <class Work>
    void if_idle(const Work& work) {
        const Lock lock(mutex_);
        if (running_ == 0) work();
    }

    /// No thread of ours begins anything any more; what is still waited for runs in the thread that
    /// waits. Gives those that run now a moment to finish. For the end of the process: a retired scheduler is
    /// never destroyed, because threads that did not finish still use it.
    void retire(std::chrono::milliseconds moment);

    /// True in a thread that is running a node: host functions may not call the driver.
    static bool inside() noexcept;

    // For Graph, which holds the lock.
    Lock lock() { return Lock(mutex_); }
    /// For another operation, once there is room: the device's queue is bounded, and one for all streams.
    Lock lock_with_room();
    /// A new operation after `after`, whatever of it is done. Null for a mark without anything to come after.
    std::shared_ptr<Node> add(const Nodes& after, std::function<void()> work);
    /// What the policy does when something was issued: `node` is the newest.
    void issued(Lock& lock, const std::shared_ptr<Node>& node);
    /// Returns once `node` is done.
    void force(Lock& lock, const std::shared_ptr<Node>& node);
    /// Whether `node` is done. Gives it a chance to run where nothing runs by itself, so that polling ends;
    /// never waits for what another thread runs.
    bool poll(Lock& lock, const std::shared_ptr<Node>& node);

  private:
    void pass_time(Lock& lock);
    bool run_what_can(Lock& lock, const std::shared_ptr<Node>& node);
    bool run_any(Lock& lock);
    void run(Lock& lock, std::shared_ptr<Node> node);
    void finish(std::shared_ptr<Node> node);
    void call_workers(std::size_t own);
    bool start_worker() noexcept;
    void work();
    bool works_by_itself() const noexcept { return !workers_.empty() && !retired_; }

    const Schedule schedule_;
    void (*const meanwhile_)();
    std::mutex mutex_;
    std::condition_variable changed_;           // a node is done or ready, or an exclusive caller is done
    std::list<std::shared_ptr<Node>> pending_;  // and running: in the order of issue
    std::vector<Node*> ready_;  // pending, after nothing: in the order in which they became so
    std::mt19937_64 random_;
    int running_ = 0;
    std::size_t unfinished_ = 0;  // pending and running ones, without marks
    int exclusive_ = 0;

    std::condition_variable wanted_;  // a worker is: something is ready, or all is over
    std::vector<std::thread> workers_;
    std::size_t idle_ = 0;
    bool retired_ = false;
};

}  // namespace emulated::streams
