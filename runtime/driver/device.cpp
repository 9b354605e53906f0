// Device attributes are queried once and cached. Contexts are retained at first use.
#include <array>
#include <cstdlib>
#include <memory>
#include <mutex>

#include <fmt/format.h>

#include <bascule/interface/errors/rejection.hpp>
#include <bascule/runtime/driver/device.hpp>
#include <bascule/runtime/driver/driver.hpp>

namespace bascule {

struct Device::State : Device::Known {
    CUdevice device = 0;
    std::string name;
    Arch capability;
    bool emulated = false;
    LaunchLimits limits;
    int multiprocessors = 0;
    bool pageable = false;  // kernels may read and write pageable host memory
    bool concurrent_managed = false;

    explicit State(int number);
    static std::array<std::atomic<const State*>, max_devices> all;
};

std::array<std::atomic<const Device::State*>, max_devices> Device::State::all{};

namespace {

std::mutex context_mutex;
std::atomic<CUcontext> first_context{nullptr};  // device 0's, once retained

}  // namespace

Device::State::State(int number) {
    ordinal = number;
    const Driver& driver = Driver::get();
    const DriverFunctions& api = driver.api();
    driver.check(api.cuDeviceGet(&device, number), fmt::format("finding device {}", number));
    char text[256] = {};
    driver.check(api.cuDeviceGetName(text, sizeof text, device), "asking for a device's name");
    name = text;
    emulated = driver.emulated();
    const auto attribute = [&](CUdevice_attribute which) { return driver.attribute_of(number, which); };
    const auto limit = [&](CUdevice_attribute which) { return static_cast<std::uint32_t>(attribute(which)); };
    capability = {.major = attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR),
                  .minor = attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)};
    // The emulated device runs PTX for its own architecture, such as 90a, only if it was asked for.
    const char* const asked = emulated ? std::getenv("BASCULE_EMULATED_ARCH") : nullptr;
    if (asked != nullptr && std::string_view(asked).ends_with('a')) capability.suffix = 'a';
    limits.grid = {limit(CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X), limit(CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y),
                   limit(CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z)};
    limits.block = {limit(CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X), limit(CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y),
                    limit(CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z)};
    limits.threads = limit(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK);
    limits.shared_bytes = limit(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN);
    multiprocessors = attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
    pageable = attribute(CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS) != 0;
    concurrent_managed = attribute(CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS) != 0;
}

Device::Device(int ordinal) : known_(nullptr) {
    const int known = count();
    if (ordinal < 0 || ordinal >= known) {
        reject(ErrorKind::value, {.field = "device", .got = std::to_string(ordinal)},
               "there is no device {}: this machine has {} {}, numbered from 0.", ordinal, known,
               known == 1 ? "device" : "devices");
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
    if (const auto known = of_known(context)) return *known;
    // Another library made the context: a primary context that Bascule has not used yet, or a context of its own.
    CUdevice device = 0;
    if (driver.api().cuCtxGetDevice(&device) != CUDA_SUCCESS) return Device(0);  // it has been destroyed
    return of_native(device).value_or(Device(0));
}

std::optional<Device> Device::of_known(CUctx_st* context) noexcept {
    for (const auto& slot : State::all) {
        const State* state = slot.load(std::memory_order_acquire);
        if (state != nullptr && state->context.load(std::memory_order_acquire) == context)
            return Device(state);
    }
    return std::nullopt;
}

std::optional<Device> Device::of_native(int device) {
    for (int ordinal = 0; ordinal < count(); ++ordinal) {
        if (const Device candidate(ordinal); candidate.state().device == device) return candidate;
    }
    return std::nullopt;
}

std::optional<Device> Device::of_primary(CUctx_st* context) {
    if (const auto known = of_known(context)) return known;
    const Driver& driver = Driver::get();
    CUdevice number = 0;
    {
        const ContextGuard guard(context);
        driver.check(driver.api().cuCtxGetDevice(&number), "asking for a context's device");
    }
    const std::optional<Device> device = of_native(number);
    // An inactive primary context cannot be this one, and must not be created for the comparison.
    return device && device->is_active() && device->context() == context ? device : std::nullopt;
}

bool Device::is_active() const {
    if (in_use()) return true;
    const Driver& driver = Driver::get();
    unsigned int flags = 0;
    int active = 0;
    driver.check(driver.api().cuDevicePrimaryCtxGetState(state().device, &flags, &active),
                 "asking whether a device has a context");
    return active != 0;
}

CUctx_st* Device::context_for_questions() const {
    if (in_use()) return context();
    const Driver& driver = Driver::get();
    CUcontext current = nullptr;
    driver.check(driver.api().cuCtxGetCurrent(&current), "asking for the current context");
    if (current != nullptr) return current;
    for (int ordinal = 0; ordinal < count(); ++ordinal) {
        if (const Device device(ordinal); device.is_active()) return device.context();
    }
    return context();
}

CUctx_st* Device::retain() const {
    const std::lock_guard lock(context_mutex);
    if (in_use()) return context();
    const Driver& driver = Driver::get();
    CUcontext context = nullptr;
    const DriverResult code = driver.api().cuDevicePrimaryCtxRetain(&context, state().device);
    const char* const why = code == CUDA_ERROR_DEVICE_UNAVAILABLE
                                ? " (another process has it for itself, by compute mode EXCLUSIVE_PROCESS: "
                                  "choose another device, or hide this one with CUDA_VISIBLE_DEVICES)"
                                : "";
    driver.check(code, fmt::format("making a context on device {}{}", ordinal(), why));
    if (ordinal() == 0) first_context.store(context, std::memory_order_release);
    known_->context.store(context, std::memory_order_release);
    return context;
}

int Device::count() { return std::min(Driver::get().device_count(), max_devices); }

std::vector<Device> Device::used() {
    std::vector<Device> devices;
    for (const auto& slot : State::all) {
        const State* state = slot.load(std::memory_order_acquire);
        if (state != nullptr && Device(state).in_use()) devices.push_back(Device(state));
    }
    return devices;
}

const Device::State& Device::state() const noexcept { return static_cast<const State&>(*known_); }
const std::string& Device::name() const noexcept { return state().name; }
Arch Device::capability() const noexcept { return state().capability; }
Arch Device::arch() const noexcept {
    Arch arch = state().capability;
    arch.is_virtual = state().emulated;  // it runs PTX
    return arch;
}
bool Device::emulated() const noexcept { return state().emulated; }
const LaunchLimits& Device::limits() const noexcept { return state().limits; }
int Device::multiprocessors() const noexcept { return state().multiprocessors; }
bool Device::shares_managed_memory() const noexcept { return state().concurrent_managed; }
bool Device::reads_host_memory() const noexcept { return state().pageable; }

std::size_t Device::stack_bytes() const {
    const Driver& driver = Driver::get();
    const ContextGuard guard(context());
    std::size_t bytes = 0;
    driver.check(driver.api().cuCtxGetLimit(&bytes, CU_LIMIT_STACK_SIZE),
                 "asking for the stack of a kernel's threads");
    return bytes;
}

void Device::set_stack_bytes(std::size_t bytes) const {
    const Driver& driver = Driver::get();
    const ContextGuard guard(context());
    driver.check(driver.api().cuCtxSetLimit(CU_LIMIT_STACK_SIZE, bytes),
                 fmt::format("giving each thread of a kernel a stack of {} bytes", bytes));
}

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

namespace {

std::atomic<std::uint64_t> resets_begun{0};
std::atomic<std::uint64_t> resets_ended{0};

}  // namespace

ResetWatch::ResetWatch() noexcept : ended_(resets_ended.load(std::memory_order_acquire)) {}

void ResetWatch::check(const char* doing) const {
    if (resets_begun.load(std::memory_order_acquire) == ended_) return;
    Driver::get().fail_as(
        CUDA_ERROR_CONTEXT_IS_DESTROYED,
        fmt::format(
            "{}: the device was reset during this call, which drops what is pending. Make the arrays again.",
            doing),
        doing);
}

ResetWatch::Reset::Reset() noexcept { resets_begun.fetch_add(1, std::memory_order_acq_rel); }
ResetWatch::Reset::~Reset() { resets_ended.fetch_add(1, std::memory_order_acq_rel); }

}  // namespace bascule
