#include <cstddef>
#include <pthread.h>

#include <bascule/jit/process/large_stack.hpp>
#include <bascule/jit/process/signals.hpp>

namespace bascule {
namespace {

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
