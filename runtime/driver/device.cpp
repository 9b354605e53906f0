// Devices: attributes are queried once and kept; contexts are made current.
#include <algorithm>
#include <array>
#include <atomic>
#include <memory>
#include <mutex>

#include <fmt/format.h>

#include <bascule/interface/errors/error.hpp>
#include <bascule/runtime/driver/device.hpp>
#include <bascule/runtime/driver/driver.hpp>

namespace bascule {

struct Device::State : Device::Known {
    CUdevice device = 0;
    std::string name;
    Arch arch;
    bool emulated = false;
    LaunchLimits limits;
    int multiprocessors = 0;
    bool pageable = false;  // kernels may read and write any host memory

    explicit State(int number);
    static std::array<std::atomic<const State*>, max_devices> all;
};

std::array<std::atomic<const Device::State*>, max_devices> Device::State::all{};

namespace {

std::mutex context_mutex;
std::atomic<CUcontext> first_context{nullptr};  // device 0's, once it was retained

}  // namespace

Device::State::State(int number) : Known{.ordinal = number} {
    const Driver& driver = Driver::get();
    const DriverFunctions& api = driver.api();
    driver.check(api.cuDeviceGet(&device, number), fmt::format("finding device {}", number));
    char text[256] = {};
    driver.check(api.cuDeviceGetName(text, sizeof text, device), "asking for a device's name");
    name = text;
    emulated = driver.emulated();
    const auto attribute = [&](CUdevice_attribute which) { return driver.attribute_of(number, which); };
    const auto limit = [&](CUdevice_attribute which) { return static_cast<std::uint32_t>(attribute(which)); };
    // The emulated device runs the PTX of any architecture up to its own.
    arch = {.major = attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR),
            .minor = attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR),
            .suffix = '\0',
            .is_virtual = emulated};
    if (emulated) arch = {.major = 8, .minor = 0, .suffix = '\0', .is_virtual = true};
    limits.grid = {limit(CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X), limit(CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y),
                   limit(CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z)};
    limits.block = {limit(CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X), limit(CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y),
                    limit(CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z)};
    limits.threads = limit(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK);
    limits.shared_bytes = limit(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN);
    multiprocessors = attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
    pageable = attribute(CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS) != 0;
    driver.check(api.cuDevicePrimaryCtxRetain(&context, device),
                 fmt::format("retaining the primary context of device {}", number));
    if (number == 0) first_context.store(context, std::memory_order_release);
}

Device::Device(int ordinal) : known_(nullptr) {
    const int known = count();
    if (ordinal < 0 || ordinal >= known) {
        throw ArgumentError(ArgumentError::Kind::value,
                            fmt::format("there is no device {}: this machine has {} {}, numbered from 0.",
                                        ordinal, known, known == 1 ? "device" : "devices"),
                            {.field = "device", .got = std::to_string(ordinal)});
    }
    std::atomic<const State*>& slot = State::all[static_cast<std::size_t>(ordinal)];
    known_ = slot.load(std::memory_order_acquire);
    if (known_ != nullptr) return;
    const std::lock_guard lock(context_mutex);
    known_ = slot.load(std::memory_order_acquire);
    if (known_ != nullptr) return;
    auto made = std::make_unique<const State>(ordinal);
    known_ = made.get();
    slot.store(made.release(), std::memory_order_release);
}

Device Device::current() {
    const Driver& driver = Driver::get();
    CUcontext context = nullptr;
    driver.check(driver.api().cuCtxGetCurrent(&context), "asking for the current context");
    if (context == nullptr) return Device(0);
    for (const auto& slot : State::all) {
        const State* state = slot.load(std::memory_order_acquire);
        if (state != nullptr && state->context == context) return Device(state);
    }
    // A context that another library made current: its device's primary one, perhaps not met yet.
    CUdevice number = 0;
    if (driver.api().cuCtxGetDevice(&number) == CUDA_SUCCESS) {
        for (int ordinal = 0; ordinal < count(); ++ordinal) {
            CUdevice candidate = 0;
            if (driver.api().cuDeviceGet(&candidate, ordinal) != CUDA_SUCCESS || candidate != number)
                continue;
            if (const Device device(ordinal); device.context() == context) return device;
        }
    }
    return Device(0);
}

int Device::count() { return std::min(Driver::get().device_count(), max_devices); }

std::vector<Device> Device::used() {
    std::vector<Device> devices;
    for (const auto& slot : State::all) {
        const State* state = slot.load(std::memory_order_acquire);
        if (state != nullptr) devices.push_back(Device(state));
    }
    return devices;
}

const Device::State& Device::state() const noexcept { return static_cast<const State&>(*known_); }
const std::string& Device::name() const noexcept { return state().name; }
Arch Device::arch() const noexcept { return state().arch; }
bool Device::emulated() const noexcept { return state().emulated; }
const LaunchLimits& Device::limits() const noexcept { return state().limits; }
int Device::multiprocessors() const noexcept { return state().multiprocessors; }
bool Device::reads_host_memory() const noexcept { return state().pageable; }

// --- Contexts ----------------------------------------------------------------------------------------------

ContextGuard::ContextGuard(CUctx_st* context) {
    const Driver& driver = Driver::get();
    driver.check(driver.api().cuCtxGetCurrent(&previous_), "asking for the current context");
    if (previous_ != context) [[unlikely]]
        change_to(context);
}

void ContextGuard::change_to(CUctx_st* context) {
    const Driver& driver = *Driver::existing();
    driver.check(driver.api().cuCtxSetCurrent(context), "making the context current");
    changed_ = previous_ != nullptr || context != first_context.load(std::memory_order_acquire);
}

void ContextGuard::restore() noexcept {
    const Driver& driver = *Driver::existing();
    driver.report(driver.api().cuCtxSetCurrent(previous_), "restoring the context");
}

}  // namespace bascule
