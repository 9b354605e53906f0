// Device attributes are queried once and cached. Contexts are retained at first use.
#include <algorithm>
#include <array>
#include <cstdlib>
#include <memory>
#include <mutex>

#include <fmt/format.h>

#include <bascule/interface/errors/rejection.hpp>
#include <bascule/interface/errors/wording.hpp>
#include <bascule/runtime/driver/device.hpp>
#include <bascule/runtime/driver/device_attributes.hpp>
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

/// The value of device_attribute_names[index]. Empty if the driver is older than the attribute.
std::optional<int> known_attribute(CUdevice device, std::size_t index) {
    const Driver& driver = Driver::get();
    int value = 0;
    const DriverResult code =
        driver.api().cuDeviceGetAttribute(&value, static_cast<CUdevice_attribute>(index + 1), device);
    if (code == CUDA_ERROR_INVALID_VALUE) return std::nullopt;
    driver.check(code, "asking for an attribute of a device");
    return value;
}

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

int Device::attribute(std::string_view name) const {
    const auto* const found = std::ranges::find(device_attribute_names, name);
    if (found == std::end(device_attribute_names)) {
        const std::vector<std::string> names(std::begin(device_attribute_names),
                                             std::end(device_attribute_names));
        reject_field(ErrorKind::missing_key, "name", "devices have no attribute '{}'.{}", shortened(name),
                     did_you_mean(name, names));
    }
    if (const auto value =
            known_attribute(state().device, static_cast<std::size_t>(found - device_attribute_names)))
        return *value;
    const int version = Driver::get().version();
    reject_field(ErrorKind::not_supported, "name",
                 "the driver, of CUDA {}.{}, does not know the attribute '{}'. A newer driver does.",
                 version / 1000, version % 1000 / 10, name);
}

std::vector<DeviceAttribute> Device::attributes() const {
    std::vector<DeviceAttribute> known;
    for (std::size_t index = 0; index < std::size(device_attribute_names); ++index) {
        if (const auto value = known_attribute(state().device, index))
            known.push_back({.name = device_attribute_names[index], .value = *value});
    }
    return known;
}

std::string Device::pci_bus_id() const {
    return fmt::format("{:04x}:{:02x}:{:02x}.0", attribute("pci_domain_id"), attribute("pci_bus_id"),
                       attribute("pci_device_id"));
}

std::size_t Device::total_memory() const {
    const Driver& driver = Driver::get();
    std::size_t bytes = 0;
    driver.check(driver.api().cuDeviceTotalMem(&bytes, state().device),
                 "asking for the size of a device's memory");
    return bytes;
}

std::size_t Device::free_memory() const {
    const Driver& driver = Driver::get();
    const ContextGuard guard(context());
    std::size_t available = 0;
    std::size_t total = 0;
    driver.check(driver.api().cuMemGetInfo(&available, &total), "asking for the free memory of a device");
    return available;
}

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
