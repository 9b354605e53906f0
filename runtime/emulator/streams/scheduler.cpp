// Every pending operation knows which operations it waits for and which wait for it, so the end of one makes others ready.
// The policies differ in which thread runs them.
#include "streams/scheduler.hpp"

#include <algorithm>
#include <charconv>
#include <csignal>
#include <pthread.h>
#include <system_error>
#include <unordered_set>

namespace emulated::streams {
namespace {

/// The number of queues that a GPU runs concurrently. Further operations wait for a thread.
constexpr std::size_t most_workers = 32;

/// About the size of a GPU's queue: a thread that issues one more operation waits.
constexpr std::size_t most_unfinished = 1024;

thread_local bool inside_a_node = false;

/// Does not catch exceptions: a host function may call an interpreter that is shutting down, which ends the thread by
/// unwinding its stack.
void call(const std::function<void()>& work) {
    inside_a_node = true;
    work();
    inside_a_node = false;
}

/// `last` and all unfinished nodes before it, in execution order.
Nodes in_order(const std::shared_ptr<Node>& last) {
    struct Visit {
        std::shared_ptr<Node> node;
        std::size_t next = 0;
    };
    Nodes order;
    std::unordered_set<const Node*> seen = {last.get()};
    std::vector<Visit> path = {{last}};  // iterative, because chains grow until the host synchronises
    while (!path.empty()) {
        Visit& visit = path.back();
        if (visit.next < visit.node->after.size()) {
            Node* const before = visit.node->after[visit.next++];
            if (seen.insert(before).second) path.push_back({*before->self});
        } else {
            order.push_back(std::move(visit.node));
            path.pop_back();
        }
    }
    return order;
}

}  // namespace

std::optional<Schedule> schedule_from(std::string_view text) noexcept {
    if (text == "eager") return Schedule{.policy = Policy::eager};
    if (text == "lazy") return Schedule{.policy = Policy::lazy};
    if (text == "threads") return Schedule{.policy = Policy::threads};
    static constexpr std::string_view prefix = "random:";
    if (!text.starts_with(prefix)) return std::nullopt;
    text.remove_prefix(prefix.size());
    Schedule schedule{.policy = Policy::random};
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), schedule.seed);
    const bool whole = error == std::errc() && end == text.data() + text.size();
    return whole ? std::optional(schedule) : std::nullopt;
}

bool Scheduler::inside() noexcept { return inside_a_node; }

Scheduler::~Scheduler() {
    {
        const Lock lock(mutex_);
        retired_ = true;
        wanted_.notify_all();
    }
    for (std::thread& worker : workers_) worker.join();
}

void Scheduler::retire(std::chrono::milliseconds moment) {
    Lock lock(mutex_);
    retired_ = true;
    wanted_.notify_all();
    const int mine = inside_a_node ? 1 : 0;  // a host function may end the process
    changed_.wait_for(lock, moment, [&] { return running_ <= mine; });
    for (std::thread& worker : workers_) worker.detach();
    workers_.clear();
    changed_.notify_all();  // a thread that waits for a worker runs its operation itself now
}

std::shared_ptr<Node> Scheduler::add(const Nodes& after, std::function<void()> work) {
    const bool is_mark = work == nullptr;
    if (is_mark && std::all_of(after.begin(), after.end(), is_done)) return nullptr;
    auto node = std::make_shared<Node>();
    node->work = std::move(work);
    if (!is_mark) ++unfinished_;
    for (const auto& each : after) {
        if (is_done(each)) {
            if (each != nullptr) node->finished = std::max(node->finished, each->finished);
            continue;
        }
        if (std::find(node->after.begin(), node->after.end(), each.get()) != node->after.end()) continue;
        node->after.push_back(each.get());
        each->before.push_back(node.get());
    }
    node->self = pending_.insert(pending_.end(), node);
    if (node->after.empty()) ready_.push_back(node.get());
    return node;
}

Scheduler::Lock Scheduler::lock_with_room() {
    Lock lock(mutex_);
    while (unfinished_ >= most_unfinished) {
        lock.unlock();
        {
            const DriverUnlocked waiting;
            lock.lock();
            if (unfinished_ >= most_unfinished) {
                const std::shared_ptr<Node> oldest =
                    *pending_.begin();  // another thread may finish it meanwhile
                force(lock, oldest);
            }
            lock.unlock();
        }
        lock.lock();
    }
    return lock;
}

void Scheduler::issued(Lock& lock, const std::shared_ptr<Node>& node) {
    if (schedule_.policy == Policy::eager) force(lock, node);
    if (schedule_.policy == Policy::threads) call_workers(0);
    if (schedule_.policy != Policy::random) return;
    while (random_() % 4 == 0 && run_any(lock)) {
    }
}

void Scheduler::force(Lock& lock, const std::shared_ptr<Node>& node) {
    constexpr std::chrono::milliseconds interval{50};
    auto next = std::chrono::steady_clock::now() + interval;
    while (!is_done(node)) {
        bool ran = false;
        if (schedule_.policy == Policy::random) {
            ran = run_any(lock);
        } else if (!works_by_itself()) {
            ran = run_what_can(lock, node);
        }
        if (ran) continue;
        // Nothing could be started: another thread runs what this node needs, or prevents it from starting.
        // `meanwhile_` is called every 50 ms, even if other nodes keep waking this thread.
        if (changed_.wait_until(lock, next) == std::cv_status::timeout ||
            std::chrono::steady_clock::now() >= next) {
            pass_time(lock);
            next = std::chrono::steady_clock::now() + interval;
        }
    }
}

void Scheduler::pass_time(Lock& lock) {
    if (meanwhile_ == nullptr) return;
    lock.unlock();
    meanwhile_();
    lock.lock();
}

bool Scheduler::poll(Lock& lock, const std::shared_ptr<Node>& node) {
    if (is_done(node)) return true;
    if (schedule_.policy == Policy::random) {
        run_any(lock);
    } else if (!works_by_itself()) {
        while (!is_done(node) && run_what_can(lock, node)) {
        }
    }
    return is_done(node);
}

/// Passes once over `node` and the nodes before it, and runs those that can start. Returns false if none could; then
/// the lock was never released.
bool Scheduler::run_what_can(Lock& lock, const std::shared_ptr<Node>& node) {
    if (node->state == Node::State::pending && node->after.empty() && exclusive_ == 0) {
        run(lock, node);
        return true;
    }
    bool ran = false;
    for (const auto& each : in_order(node)) {
        if (exclusive_ > 0) break;
        if (each->state != Node::State::pending || !each->after.empty()) continue;
        run(lock, each);
        ran = true;
    }
    return ran;
}

/// Runs any ready operation of any stream. Returns false if none may start.
bool Scheduler::run_any(Lock& lock) {
    if (ready_.empty() || exclusive_ > 0) return false;
    run(lock, *ready_[random_() % ready_.size()]->self);
    return true;
}

void Scheduler::run(Lock& lock, std::shared_ptr<Node> node) {
    ready_.erase(std::find(ready_.begin(), ready_.end(), node.get()));
    node->state = Node::State::running;
    ++running_;
    lock.unlock();
    call(node->work);
    node->work = nullptr;  // destroyed without the lock, because it may own much
    lock.lock();
    --running_;
    --unfinished_;
    node->finished = device_time();
    finish(std::move(node));
    changed_.notify_all();
}

/// A mark completes together with the last operation before it, even if it is queried late.
void Scheduler::finish(std::shared_ptr<Node> node) {
    Nodes over = {std::move(node)};
    while (!over.empty()) {
        const std::shared_ptr<Node> each = std::move(over.back());
        over.pop_back();
        each->state = Node::State::done;
        for (Node* next : each->before) {
            std::erase(next->after, each.get());
            next->finished = std::max(next->finished, each->finished);
            if (!next->after.empty()) continue;
            if (next->work == nullptr) {
                over.push_back(*next->self);
            } else {
                ready_.push_back(next);
            }
        }
        each->before.clear();
        pending_.erase(each->self);
    }
}

// --- threads

/// Wakes or starts a worker for each ready operation except `own`, which the calling worker runs itself.
void Scheduler::call_workers(std::size_t own) {
    if (schedule_.policy != Policy::threads || retired_ || ready_.size() <= own) return;
    const std::size_t wanted = ready_.size() - own;
    while (idle_ < wanted && start_worker()) ++idle_;
    for (std::size_t i = 0; i < wanted; ++i) wanted_.notify_one();
}

/// Returns false if there are enough workers or the system has no more threads. Without workers, operations run as under
/// `lazy`.
bool Scheduler::start_worker() noexcept {
    if (workers_.size() >= most_workers) return false;
    // Signals of the process are left to its own threads.
    sigset_t all;
    sigset_t before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    bool started = true;
    try {
        workers_.emplace_back([this] { work(); });
    } catch (const std::system_error&) {
        started = false;
    }
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    return started;
}

void Scheduler::work() {
    Lock lock(mutex_);
    for (;;) {  // counted as idle by the thread that started this one
        wanted_.wait(lock, [&] { return retired_ || (!ready_.empty() && exclusive_ == 0); });
        --idle_;
        if (retired_) return;
        run(lock, *ready_.front()->self);
        call_workers(1);
        ++idle_;
    }
}

}  // namespace emulated::streams
