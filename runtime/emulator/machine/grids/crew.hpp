// Threads that help to run a grid: made when they are first needed, kept for as long as the process
// lives.
#pragma once

#include <condition_variable>
#include <exception>
#include <functional>
#include <mutex>
#include <sys/types.h>
#include <vector>

namespace emulated::machine {

/// Thread-safe: several threads may run grids at a time; each has what helpers are free.
class Crew {
  public:
    /// The process's own; a forked child gets a new one. Never destroyed: its threads wait for work until the
    /// end.
    static Crew& get();

    /// Calls `job` in this thread and in up to `workers` - 1 others, and returns when all of them have
    /// returned. `job` must return by itself when nothing is left to do. While this thread only waits for the
    /// others it calls `meanwhile` now and then. Throws what `job` threw, in whichever thread.
    void work(const std::function<void()>& job, unsigned workers, const std::function<void()>& meanwhile);

  private:
    struct Task {
        const std::function<void()>& job;
        unsigned wanted = 0, inside = 0;  ///< helpers that may still join, and those at work
        std::exception_ptr error;
    };

    void help();
    Task* next_task() const;

    std::mutex mutex_;
    std::condition_variable offered_, finished_;
    std::vector<Task*> tasks_;  ///< that still want helpers
    unsigned helpers_ = 0;
    pid_t process_ = 0;
};

}  // namespace emulated::machine
