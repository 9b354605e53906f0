#include <array>
#include <chrono>
#include <cstddef>
#include <dlfcn.h>
#include <future>
#include <mutex>
#include <pthread.h>

#include <bascule/jit/process/compiler_thread.hpp>

namespace bascule {

namespace {

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
