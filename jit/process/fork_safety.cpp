#include <atomic>
#include <pthread.h>

#include <bascule/jit/process/fork_safety.hpp>

namespace bascule {
namespace {

std::atomic<std::uint64_t> generation{0};

std::mutex& mutex_with_handlers() {
    static std::mutex& mutex = *new std::mutex;  // never destroyed, because threads outlive static objects
    static const int handlers = pthread_atfork([] { mutex.lock(); }, [] { mutex.unlock(); },
                                               [] {
                                                   generation.fetch_add(1, std::memory_order_relaxed);
                                                   mutex.unlock();
                                               });
    static_cast<void>(handlers);
    return mutex;
}

}  // namespace

std::mutex& fork_safe_mutex() {
    static std::mutex& mutex = mutex_with_handlers();
    return mutex;
}

std::uint64_t fork_generation() noexcept { return generation.load(std::memory_order_relaxed); }

}  // namespace bascule
