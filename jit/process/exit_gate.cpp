#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <pthread.h>
#include <thread>
#include <unistd.h>

#include <bascule/jit/process/exit_gate.hpp>

namespace bascule {
namespace {

std::atomic<std::int64_t> inside{0};
std::atomic<bool> closed{false};
thread_local std::int64_t inside_here = 0;
thread_local bool closed_here = false;

/// A forked child has the thread that forked and no other.
void forget_other_threads() noexcept { inside.store(inside_here); }

}  // namespace

InsideNvrtc::InsideNvrtc() noexcept {
    inside.fetch_add(1);
    if (closed.load() && !closed_here) {
        inside.fetch_sub(1);
        for (;;) pause();
    }
    ++inside_here;
}

InsideNvrtc::~InsideNvrtc() {
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
