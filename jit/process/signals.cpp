#include <array>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <dlfcn.h>
#include <future>
#include <mutex>
#include <pthread.h>

#include <bascule/jit/process/signals.hpp>

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

}  // namespace bascule
