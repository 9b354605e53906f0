#include <algorithm>
#include <limits>
#include <mutex>

#include <bascule/runtime/driver/driver.hpp>
#include <bascule/runtime/driver/emulated_device.hpp>
#include <bascule/runtime/driver/home_device.hpp>
#include <bascule/runtime/faults/bounds_report.hpp>
#include <bascule/runtime/faults/device_reset.hpp>
#include <bascule/runtime/faults/launch_history.hpp>

namespace bascule {

void reset_emulated_devices() {
    const EmulatedFunctions& emulated = Driver::get().require_emulated(
        "kernels run on a GPU, and only the emulated device can be reset. Restart the process.");
    // The reset would wait for a kernel that this same thread is running.
    std::size_t unused = 0;
    if (Driver::get().api().cuMemGetInfo(&unused, &unused) == CUDA_ERROR_NOT_PERMITTED) {
        Driver::get().fail_as(
            CUDA_ERROR_NOT_PERMITTED,
            "the device cannot be reset by what interrupts one of its kernels (the handler of a signal). "
            "Raise an exception there, which ends the kernel, and reset the device behind it.");
    }
    static std::mutex& one_at_a_time = *new std::mutex;
    const std::lock_guard lock(one_at_a_time);
    const ResetWatch::Reset reset;
    for (const Device device : Device::used()) {
        const KeptMark mark = kept_so_far();
        emulated.reset(device.ordinal());
        tell_observers<&StreamObserver::device_finished>(device, mark, false);
        forget_blame(device.ordinal());
    }
    forget_bounds_reports();
    forget_pointer(0, std::numeric_limits<std::uint64_t>::max());
}

bool is_context_lost() noexcept {
    const Driver* driver = Driver::existing();
    if (driver == nullptr) return false;
    try {
        const auto devices = Device::used();
        return std::any_of(devices.begin(), devices.end(), [&](Device device) {
            const ContextGuard context(device.context());
            std::size_t available = 0;
            std::size_t total = 0;
            return loses_context(driver->api().cuMemGetInfo(&available, &total));
        });
    } catch (...) {  // out of memory, or the driver is gone
        return false;
    }
}

}  // namespace bascule
