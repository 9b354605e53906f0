#include <array>
#include <atomic>
#include <chrono>
#include <dlfcn.h>
#include <exception>
#include <memory>
#include <mutex>
#include <pthread.h>
#include <system_error>
#include <thread>

#include <fmt/format.h>

#include <bascule/jit/process/compile_thread.hpp>
#include <bascule/jit/process/fork_and_exit.hpp>
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

constexpr std::array watched = {SIGINT, SIGTERM};

/// The interval at which the handlers are restored: short for a Ctrl-C, long for a processor.
constexpr std::chrono::milliseconds interval{2};

const void* library_of(const void* address) noexcept {
    Dl_info info = {};
    return address != nullptr && dladdr(address, &info) != 0 ? info.dli_fbase : nullptr;
}

/// The process's own signal handlers as last seen. There is one object for the process: otherwise a compile that starts
/// during another one would take the library's handlers for the program's.
class OwnHandlers {
  public:
    /// Restores the handlers that `library` replaced, and remembers those that the program changed itself.
    void restore(const void* library) noexcept {
        const std::lock_guard lock(mutex_);
        for (std::size_t i = 0; i < watched.size(); ++i) {
            struct sigaction now = {};
            if (sigaction(watched[i], nullptr, &now) != 0) continue;
            const bool foreign = library_of(reinterpret_cast<const void*>(now.sa_handler)) == library;
            if (foreign) {
                sigaction(watched[i], &own_[i], nullptr);
            } else {
                own_[i] = now;
            }
        }
    }

  private:
    std::mutex mutex_;
    std::array<struct sigaction, watched.size()> own_ = {};  // SIG_DFL until read
};

OwnHandlers& own_handlers() {
    static OwnHandlers handlers;
    return handlers;
}

constexpr std::size_t largest = std::size_t{256} << 20;
constexpr std::size_t smallest = std::size_t{16} << 20;  // below that the calling thread's stack is used

void* run(void* work) {
    (*static_cast<const std::function<void()>*>(work))();
    return nullptr;
}

bool begin(pthread_t& thread, std::size_t stack, const std::function<void()>& work) noexcept {
    pthread_attr_t attributes;
    if (pthread_attr_init(&attributes) != 0) return false;
    const sigset_t before = block_signals();  // a new thread inherits its creator's signal mask
    const bool begun =
        pthread_attr_setstacksize(&attributes, stack) == 0 &&
        pthread_create(&thread, &attributes, &run, const_cast<std::function<void()>*>(&work)) == 0;
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    pthread_attr_destroy(&attributes);
    return begun;
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

sigset_t block_signals() noexcept {
    sigset_t blocked, before;
    sigfillset(&blocked);
    for (const int fault : {SIGSEGV, SIGBUS, SIGFPE, SIGILL}) sigdelset(&blocked, fault);
    pthread_sigmask(SIG_BLOCK, &blocked, &before);
    return before;
}

void run_keeping_signal_handlers(const void* address, const std::function<void()>& work) {
    const void* library = library_of(address);
    if (library == nullptr) return work();  // linked statically or unknown: the handlers cannot be told apart

    own_handlers().restore(library);
    std::future<void> done = std::async(std::launch::async, [&] {
        block_signals();
        work();
    });
    while (done.wait_for(interval) != std::future_status::ready) own_handlers().restore(library);
    own_handlers().restore(library);
    done.get();
}

void run_on_large_stack(const std::function<void()>& work) {
    pthread_t thread{};
    for (std::size_t stack = largest; stack >= smallest; stack /= 2) {
        if (!begin(thread, stack, work)) continue;
        pthread_join(thread, nullptr);
        return;
    }
    work();
}

}  // namespace bascule
