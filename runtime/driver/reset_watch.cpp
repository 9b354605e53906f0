#include <atomic>

#include <fmt/format.h>

#include <bascule/runtime/driver/driver.hpp>
#include <bascule/runtime/driver/reset_watch.hpp>

namespace bascule {
namespace {

std::atomic<std::uint64_t> begun{0};
std::atomic<std::uint64_t> ended{0};

}  // namespace

ResetWatch::ResetWatch() noexcept : ended_(ended.load(std::memory_order_acquire)) {}

void ResetWatch::check(const char* doing) const {
    if (begun.load(std::memory_order_acquire) == ended_) return;
    Driver::get().fail_as(
        CUDA_ERROR_CONTEXT_IS_DESTROYED,
        fmt::format(
            "{}: the device was reset during this call, which drops what is pending. Make the arrays again.",
            doing),
        doing);
}

ResetWatch::Reset::Reset() noexcept { begun.fetch_add(1, std::memory_order_acq_rel); }
ResetWatch::Reset::~Reset() { ended.fetch_add(1, std::memory_order_acq_rel); }

}  // namespace bascule
