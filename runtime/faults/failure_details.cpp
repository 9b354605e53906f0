#include <cstdint>
#include <string>
#include <utility>

#include <bascule/interface/errors/language.hpp>
#include <bascule/runtime/driver/device.hpp>
#include <bascule/runtime/driver/driver.hpp>
#include <bascule/runtime/driver/emulated_device.hpp>
#include <bascule/runtime/faults/bounds_report.hpp>
#include <bascule/runtime/faults/failure_details.hpp>
#include <bascule/runtime/faults/launch_history.hpp>
#include <bascule/runtime/faults/source_places.hpp>

namespace bascule {
namespace {

/// The ordinal of the current context's device; 0 when that is not known.
int current_ordinal(const Driver& driver) {
    CUdevice number = 0;
    if (driver.api().cuCtxGetDevice(&number) != CUDA_SUCCESS) return 0;
    for (int ordinal = 0; ordinal < Device::count(); ++ordinal) {
        CUdevice candidate = 0;
        if (driver.api().cuDeviceGet(&candidate, ordinal) == CUDA_SUCCESS && candidate == number)
            return ordinal;
    }
    return 0;
}

/// What gives the launch what it lacked, on a line of its own.
std::string next_step(EmulatedFault::Lack lack) {
    if (lack == EmulatedFault::Lack::shared_bytes) {
        return "\nGive the size of the array in bytes: " +
               advice("it is the fourth entry of the brackets, kernel[grid, block, stream, shared_bytes].",
                      "LaunchConfig{.shared_bytes = ...}.");
    }
    if (lack == EmulatedFault::Lack::cooperation) {
        return "\nLaunch it cooperatively: " +
               advice("kernel[bascule.LaunchConfig(grid, block, cooperative=True)].",
                      "LaunchConfig{.cooperative = true}.");
    }
    return "";
}

FailureDetails details_of(const Driver& driver, CUresult code, std::string report) {
    // A bounds check traps after the kernel has written a record, which says more.
    BoundsReport bounds;
    if (code == CUDA_ERROR_ILLEGAL_INSTRUCTION || code == CUDA_ERROR_LAUNCH_FAILED) bounds = bounds_report();
    if (!bounds.text.empty()) report = std::move(bounds.text);
    FailureDetails details;
    details.report = with_user_places(std::move(report));
    if (!is_fault_of_kernel(code)) return details;
    const EmulatedFunctions* emulated = driver.emulated_functions();
    const EmulatedFault fault = emulated == nullptr ? EmulatedFault{} : emulated->newest_fault();
    details.launch = emulated == nullptr ? blame(current_ordinal(driver), bounds.kernel)
                                         : blame(current_ordinal(driver), fault);
    details.report += next_step(fault.lack);
    return details;
}

}  // namespace

void describe_failures() noexcept { Driver::set_failure_describer(&details_of); }

}  // namespace bascule
