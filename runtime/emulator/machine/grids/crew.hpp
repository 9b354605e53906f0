// Threads that help to run grids. They are started when first needed and live as long as the process.
#pragma once

#include <condition_variable>
#include <exception>
#include <functional>
#include <mutex>
#include <sys/types.h>
#include <vector>

namespace emulated::machine {

/// Thread-safe: several threads may run grids at a time and share the free helpers.
class Crew {
  public:
    /// The process's crew; a forked child gets a new one. Never destroyed, because its threads wait for work until the end
    /// of the process.
    static Crew& get();

    /// Calls `job` in this thread and in up to `workers` - 1 others, and returns when all calls have returned. `job` must
    /// return when nothing is left to do. While this thread only waits, it calls `meanwhile` now and then. Rethrows an
    /// exception that `job` threw in any thread.
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
    std::vector<Task*> tasks_;  ///< tasks that still want helpers
    unsigned helpers_ = 0;
    pid_t process_ = 0;
};

}  // namespace emulated::machine
