#include <atomic>
#include <exception>
#include <memory>
#include <system_error>
#include <thread>

#include <fmt/format.h>

#include <bascule/jit/process/compile_watch.hpp>
#include <bascule/jit/process/compiler_thread.hpp>
#include <bascule/jit/process/exit_gate.hpp>
#include <bascule/jit/process/log.hpp>

namespace bascule {
namespace {

constexpr std::chrono::milliseconds look_interval{50};

thread_local bool on_compile_thread = false;
/// The process that compiles the same program, for which a compile waits, or 0. If there are several, any one of them.
std::atomic<int> awaited_process{0};

/// The watch for the calling thread, or null.
const CompileWatch* watch_here() noexcept {
    const CompileWatch& watch = jit_services().compile_watch;
    if (watch.watches_this_thread == nullptr || on_compile_thread || gate_is_closed()) return nullptr;
    return watch.watches_this_thread() ? &watch : nullptr;
}

/// Calls `ended` when a wait ends, if the watch was asked about it.
class Wait {
  public:
    explicit Wait(const CompileWatch& watch) : watch_(watch) {}
    ~Wait() {
        if (asked_) watch_.ended();
    }
    Wait(Wait&&) = delete;

    bool is_interrupted(const std::string& what) {
        asked_ = true;
        const auto waited = std::chrono::steady_clock::now() - start_;
        const int process = awaited_process.load(std::memory_order_relaxed);
        return watch_.is_interrupted(process == 0 ? what : fmt::format("{} (process {} does)", what, process),
                                     std::chrono::duration_cast<std::chrono::milliseconds>(waited));
    }

  private:
    const CompileWatch& watch_;
    std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
    bool asked_ = false;
};

void wait_for_end(const CompileWatch& watch, const std::string& what, const std::shared_future<void>& end) {
    Wait wait(watch);
    while (end.wait_for(look_interval) != std::future_status::ready) {
        if (wait.is_interrupted(what))
            throw CompileInterrupted("NVRTC was compiling " + what +
                                     " and goes on; its image will be in the cache.");
    }
}

/// Work on a separate thread. Another thread waits for it, so its messages are logged after its end.
struct Job {
    std::promise<void> promise;
    LogMessages messages;
};

/// Does the work on this thread.
void run_here(const std::function<void()>& work) {
    LogMessages messages;
    try {
        const MessagesHeld held(messages);
        work();
    } catch (const std::exception&) {
        log(messages);
        throw;
    }
    log(messages);
}

/// Returns null if the system cannot start a thread.
std::shared_ptr<Job> run_on_thread(const std::function<void()>& work) {
    auto job = std::make_shared<Job>();
    try {
        std::thread([job, work] {
            const BeforeTheEnd until_stored;
            block_signals();
            on_compile_thread = true;
            try {
                const MessagesHeld held(job->messages);
                work();
                job->promise.set_value();
            } catch (...) {
                job->promise.set_exception(std::current_exception());
            }
        }).detach();
    } catch (const std::system_error&) {
        return nullptr;
    }
    return job;
}

}  // namespace

void WaitForProcess::set_process(int process) const noexcept {
    awaited_process.store(process, std::memory_order_relaxed);
}

bool is_compile_thread() noexcept { return on_compile_thread; }

void run_watched(const std::string& what, const std::function<void()>& work) {
    const CompileWatch* watch = watch_here();
    const auto job = watch != nullptr ? run_on_thread(work) : nullptr;
    if (job == nullptr) return run_here(work);
    const std::shared_future<void> end = job->promise.get_future().share();
    wait_for_end(*watch, what, end);
    log(job->messages);
    end.get();
}

void wait_watched(const std::string& what, const std::shared_future<void>& end) {
    const CompileWatch* watch = watch_here();
    if (watch == nullptr) return end.get();
    wait_for_end(*watch, what, end);
    end.get();
}

}  // namespace bascule
