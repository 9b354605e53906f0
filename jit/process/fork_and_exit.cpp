#include <atomic>
#include <chrono>
#include <cstdlib>
#include <pthread.h>
#include <thread>
#include <unistd.h>

#include <bascule/interface/errors/error.hpp>
#include <bascule/jit/process/fork_and_exit.hpp>

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

std::atomic<std::int64_t> inside{0};
std::atomic<bool> closed{false};
thread_local std::int64_t inside_here = 0;
thread_local bool closed_here = false;

std::atomic<std::int64_t> in_nvrtc{0};
thread_local std::int64_t in_nvrtc_here = 0;
std::atomic<bool> nvrtc_is_lost{false};

/// After a fork the child has only the thread that forked.
void forget_other_threads() noexcept {
    inside.store(inside_here);
    if (in_nvrtc.exchange(in_nvrtc_here) != in_nvrtc_here) nvrtc_is_lost.store(true);
}

}  // namespace

std::mutex& fork_safe_mutex() {
    static std::mutex& mutex = mutex_with_handlers();
    return mutex;
}

std::uint64_t fork_generation() noexcept { return generation.load(std::memory_order_relaxed); }

InsideNvrtc::InsideNvrtc() {
    if (nvrtc_is_lost.load()) {
        throw LibraryError(
            "this process was forked while another thread of its parent was compiling, and NVRTC cannot be "
            "used in it. Start the process with multiprocessing's 'spawn' or 'forkserver', or fork while "
            "nothing is compiled.",
            {.library = "NVRTC"});
    }
    in_nvrtc.fetch_add(1);
    ++in_nvrtc_here;
}

InsideNvrtc::~InsideNvrtc() {
    --in_nvrtc_here;
    in_nvrtc.fetch_sub(1);
}

BeforeTheEnd::BeforeTheEnd() noexcept {
    inside.fetch_add(1);
    if (closed.load() && !closed_here) {
        inside.fetch_sub(1);
        for (;;) pause();
    }
    ++inside_here;
}

BeforeTheEnd::~BeforeTheEnd() {
    --inside_here;
    inside.fetch_sub(1);
}

void close_gate() noexcept {
    closed_here = true;
    closed.store(true);
    while (inside.load() > inside_here) std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

bool gate_is_closed() noexcept { return closed.load(); }

void close_gate_at_exit() noexcept {
    static const int handlers = pthread_atfork(nullptr, nullptr, &forget_other_threads);
    static_cast<void>(handlers);
    std::atexit(&close_gate);
}

}  // namespace bascule
