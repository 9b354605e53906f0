#include "driver/interruption.hpp"

#include <atomic>
#include <chrono>

#include "driver/call.hpp"

namespace emulated::driver {
namespace {

using Clock = std::chrono::steady_clock;

std::atomic<BasculeEmulatedInterrupt> interrupt_of_client{nullptr};
std::atomic<bool> is_ending{false};
std::atomic<Clock::time_point> finish_until{Clock::time_point::max()};
thread_local constinit OwnOperation* own_operation = nullptr;

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

void end_soon(std::chrono::milliseconds left) {
    is_ending = true;
    if (left == left.zero()) return;
    finish_until = Clock::now() + left;
    for (Context* context : Process::get().contexts()) context->graph.synchronize_all();
    finish_until = Clock::time_point::max();
}

bool ending() noexcept { return is_ending.load(std::memory_order_relaxed); }

void drop_pending() {
    for (Context* context : Process::get().contexts()) {
        if (!context->graph.busy()) continue;
        context->interrupted = true;
        context->fail(
            CUDA_ERROR_LAUNCH_TIMEOUT,
            "interrupted: the program stopped waiting, and everything that was pending was dropped");
    }
}

void drop_pending_if_interrupted() {
    if (interrupted()) drop_pending();
}

OwnOperation::OwnOperation() noexcept : outer_(own_operation) {
    if (Process::get().scheduler().policy() == streams::Policy::eager) own_operation = this;
}
OwnOperation::~OwnOperation() { own_operation = outer_; }

void OwnOperation::fail(Context& context, CUresult error) noexcept {
    if (own_operation != nullptr) {
        own_operation->error_ = error;
    } else {
        context.passing_error = error;
    }
}

}  // namespace emulated::driver

extern "C" __attribute__((visibility("default"))) void bascule_emulated_end(std::uint32_t milliseconds) {
    if (emulated::driver::Process::get().initialised())
        emulated::driver::end_soon(std::chrono::milliseconds(milliseconds));
}

extern "C" __attribute__((visibility("default"))) void bascule_emulated_set_interrupt(
    BasculeEmulatedInterrupt interrupt) {
    emulated::driver::interrupt_of_client.store(interrupt);
}
