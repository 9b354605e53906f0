#include "driver/interruption.hpp"

#include <atomic>

#include "driver/exported.hpp"
#include "emulated_abi.h"

namespace emulated::driver {
namespace {

using Clock = std::chrono::steady_clock;

std::atomic<BasculeEmulatedInterrupt> interrupt_of_client{nullptr};
std::atomic<bool> is_ending{false};
std::atomic<Clock::time_point> finish_until{Clock::time_point::max()};

}  // namespace

bool interrupted() noexcept {
    constexpr std::chrono::milliseconds between_questions{100};
    thread_local constinit Clock::time_point next{};
    const BasculeEmulatedInterrupt ask = interrupt_of_client.load(std::memory_order_relaxed);
    const auto now = Clock::now();
    if (now >= finish_until.load(std::memory_order_relaxed)) return true;
    if (ask == nullptr || now < next) return false;
    if (ask() != 0) return true;
    next = now + between_questions;
    return false;
}

void interrupt_at(Clock::time_point time) noexcept { finish_until = time; }

void begin_ending() noexcept { is_ending = true; }
bool ending() noexcept { return is_ending.load(std::memory_order_relaxed); }

}  // namespace emulated::driver

EMULATED_EXPORT void bascule_emulated_set_interrupt(BasculeEmulatedInterrupt interrupt) {
    emulated::driver::interrupt_of_client.store(interrupt);
}
