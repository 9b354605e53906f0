// Runs operations in their required order, when the policy allows.
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

/// How far bascule_emulated_advance_clock has advanced the devices' clock, in nanoseconds.
inline std::atomic<std::int64_t> clock_advance{0};

/// The time that events record.
inline Clock::time_point device_time() noexcept {
    return Clock::now() + std::chrono::nanoseconds(clock_advance.load(std::memory_order_relaxed));
}

/// One operation. The scheduler owns it until it is done; a thread that waits for it may keep it longer.
struct Node {
    enum class State : std::uint8_t { pending, running, done };
    std::function<void()> work;  ///< empty for a mark or join, which completes with the operations before it
    State state = State::pending;
    Clock::time_point finished;  ///< while pending: the latest end so far of the operations before it
    // Links between unfinished nodes; nodes that are done are removed from both lists.
    std::vector<Node*> after, before;
    std::list<std::shared_ptr<Node>>::iterator self;
};

using Nodes = std::vector<std::shared_ptr<Node>>;

inline bool is_done(const std::shared_ptr<Node>& node) noexcept {
    return node == nullptr || node->state == Node::State::done;
}

/// Runs nodes of all contexts, so edges may cross contexts. Thread-safe. No lock is held while a node runs: other threads
/// can issue, record and query meanwhile.
class Scheduler {
  public:
    using Lock = std::unique_lock<std::mutex>;

    /// Threads that wait for others call `meanwhile` now and then, without a lock; it may be null.
    explicit Scheduler(Schedule schedule, void (*meanwhile)() = nullptr)
        : schedule_(schedule), meanwhile_(meanwhile), random_(schedule.seed) {}
    explicit Scheduler(Policy policy) : Scheduler(Schedule{.policy = policy}) {}
    /// Waits for running nodes. Pending nodes never run.
    ~Scheduler();

    Policy policy() const noexcept { return schedule_.policy; }

    /// Runs `work` while no node runs or starts, for example a free. Yields now and then, because a running node may wait
    /// for one that has not started.
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

    /// Runs `work` unless a node is running. Does not wait.
    template <class Work>
    void if_idle(const Work& work) {
        const Lock lock(mutex_);
        if (running_ == 0) work();
    }

    /// Worker threads start nothing any more; what is still waited for runs in the waiting thread. Gives running nodes a
    /// moment to finish. For the end of the process: a retired scheduler is never destroyed, because unfinished threads
    /// still use it.
    void retire(std::chrono::milliseconds moment);

    /// True in a thread that runs a node: host functions may not call the driver.
    static bool inside() noexcept;

    // For Graph, which holds the lock.
    Lock lock() { return Lock(mutex_); }
    /// Acquires the lock once there is room for another operation: the device's queue is bounded and shared by all streams.
    Lock lock_with_room();
    /// Adds an operation after `after`, whose nodes may be done. Returns null for a mark with nothing before it.
    std::shared_ptr<Node> add(const Nodes& after, std::function<void()> work);
    /// Applies the policy after `node` was issued.
    void issued(Lock& lock, const std::shared_ptr<Node>& node);
    /// Returns when `node` is done.
    void force(Lock& lock, const std::shared_ptr<Node>& node);
    /// True if `node` is done. If no thread runs operations by itself, it may run here, so that polling ends. Never waits
    /// for another thread.
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
    std::condition_variable changed_;           // a node is done or ready, or an exclusive caller done
    std::list<std::shared_ptr<Node>> pending_;  // pending and running, in the order of issue
    std::vector<Node*> ready_;                  // ready to run, in the order in which they became ready
    std::mt19937_64 random_;
    int running_ = 0;
    std::size_t unfinished_ = 0;  // pending and running, without marks
    int exclusive_ = 0;

    std::condition_variable wanted_;  // notified when a worker is needed or must end
    std::vector<std::thread> workers_;
    std::size_t idle_ = 0;
    bool retired_ = false;
};

}  // namespace emulated::streams
