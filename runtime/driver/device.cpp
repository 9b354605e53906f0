// Devices: what is asked of the driver once and kept; contexts made current; whose memory a pointer is.
#include <algorithm>
#include <array>
#include <atomic>
#include <memory>
#include <mutex>
#include <utility>

#include <fmt/format.h>

#include <bascule/interface/errors/checks.hpp>
#include <bascule/interface/errors/error.hpp>
#include <bascule/runtime/driver/device.hpp>
#include <bascule/runtime/driver/driver.hpp>
#include <bascule/runtime/driver/home_device.hpp>
#include <bascule/runtime/driver/peer_access.hpp>

namespace bascule {

struct Device::State {
    int ordinal = 0;
    CUdevice device = 0;
    CUcontext context = nullptr;  // retained for ever: handles to its memory may outlive everything of ours
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

Device::State::State(int number) : ordinal(number) {
    const Driver& driver = Driver::get();
    const DriverFunctions& api = driver.api();
    driver.check(api.cuDeviceGet(&device, number), "cuDeviceGet", fmt::format("finding device {}", number));
    char text[256] = {};
    driver.check(api.cuDeviceGetName(text, sizeof text, device), "cuDeviceGetName",
                 "asking for a device's name");
    name = text;
    emulated = driver.emulated();
    const auto attribute = [&](CUdevice_attribute which) { return driver.attribute_of(number, which); };
    const auto limit = [&](CUdevice_attribute which) { return static_cast<std::uint32_t>(attribute(which)); };
    // The emulated device runs PTX and takes that of any architecture up to what it says it is.
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
    driver.check(api.cuDevicePrimaryCtxRetain(&context, device), "cuDevicePrimaryCtxRetain",
                 fmt::format("retaining the primary context of device {}", number));
    if (number == 0) first_context.store(context, std::memory_order_release);
}

Device::Device(int ordinal) : state_(nullptr) {
    const int known = count();
    if (ordinal < 0 || ordinal >= known) {
        throw ArgumentError(ArgumentError::Kind::value,
                            fmt::format("there is no device {}: this machine has {} {}, numbered from 0.",
                                        ordinal, known, known == 1 ? "device" : "devices"),
                            {.field = "device", .got = std::to_string(ordinal)});
    }
    std::atomic<const State*>& slot = State::all[static_cast<std::size_t>(ordinal)];
    state_ = slot.load(std::memory_order_acquire);
    if (state_ != nullptr) return;
    const std::lock_guard lock(context_mutex);
    state_ = slot.load(std::memory_order_acquire);
    if (state_ != nullptr) return;
    auto made = std::make_unique<const State>(ordinal);
    state_ = made.release();
    slot.store(state_, std::memory_order_release);
}

Device Device::current() {
    const Driver& driver = Driver::get();
    CUcontext context = nullptr;
    driver.check(driver.api().cuCtxGetCurrent(&context), "cuCtxGetCurrent", "asking for the current context");
    if (context == nullptr) return Device(0);
    for (const auto& slot : State::all) {
        const State* state = slot.load(std::memory_order_acquire);
        if (state != nullptr && state->context == context) return Device(state);
    }
    // A context that somebody else made current: its device's primary one, perhaps not met yet.
    CUdevice number = 0;
    if (driver.api().cuCtxGetDevice(&number) == CUDA_SUCCESS) {
        for (int ordinal = 0; ordinal < driver.device_count(); ++ordinal) {
            CUdevice candidate = 0;
            if (driver.api().cuDeviceGet(&candidate, ordinal) != CUDA_SUCCESS || candidate != number)
                continue;
            if (const Device device(ordinal); device.context() == context) return device;
        }
    }
    return Device(0);
}

int Device::count() { return Driver::get().device_count(); }

std::vector<Device> Device::used() {
    std::vector<Device> devices;
    for (const auto& slot : State::all) {
        const State* state = slot.load(std::memory_order_acquire);
        if (state != nullptr) devices.push_back(Device(state));
    }
    return devices;
}

int Device::ordinal() const noexcept { return state_->ordinal; }
CUctx_st* Device::context() const noexcept { return state_->context; }
const std::string& Device::name() const noexcept { return state_->name; }
Arch Device::arch() const noexcept { return state_->arch; }
bool Device::emulated() const noexcept { return state_->emulated; }
const LaunchLimits& Device::limits() const noexcept { return state_->limits; }
int Device::multiprocessors() const noexcept { return state_->multiprocessors; }
bool Device::reads_host_memory() const noexcept { return state_->pageable; }

// --- Contexts ----------------------------------------------------------------------------------------------

ContextGuard::ContextGuard(CUctx_st* context) {
    const Driver& driver = Driver::get();
    driver.check(driver.api().cuCtxGetCurrent(&previous_), "cuCtxGetCurrent",
                 "asking for the current context");
    if (previous_ == context) return;
    driver.check(driver.api().cuCtxSetCurrent(context), "cuCtxSetCurrent", "making the context current");
    changed_ = previous_ != nullptr || context != first_context.load(std::memory_order_acquire);
}

ContextGuard::~ContextGuard() {
    if (!changed_) return;
    const Driver& driver = *Driver::existing();
    driver.report(driver.api().cuCtxSetCurrent(previous_), "cuCtxSetCurrent", "restoring the context");
}

// --- Whose memory a pointer is -----------------------------------------------------------------------------

namespace {

/// 2 MiB blocks that were proven to be device memory, direct-mapped. Device memory is handed out in such
/// blocks, so one answer serves the whole block. Lock-free: an entry is one word.
class ProvenBlocks {
  public:
    bool contains(std::uint64_t address, int ordinal) const noexcept {
        return entry(address).load(std::memory_order_acquire) == word(address, ordinal);
    }

    std::uint64_t generation() const noexcept { return generation_.load(); }

    /// `asked_at` is the generation before the driver was asked: when memory was freed since, the answer may
    /// be about memory that is gone.
    void insert(std::uint64_t address, int ordinal, std::uint64_t asked_at) noexcept {
        std::atomic<std::uint64_t>& slot = entry(address);
        slot.store(word(address, ordinal));
        if (generation_.load() != asked_at) slot.store(0);
    }

    void forget(std::uint64_t address, std::uint64_t bytes) noexcept {
        generation_.fetch_add(1);
        const std::uint64_t first = address >> shift;
        const std::uint64_t last = (address + std::max<std::uint64_t>(bytes, 1) - 1) >> shift;
        const std::uint64_t count = std::min<std::uint64_t>(last - first + 1, size);
        for (std::uint64_t i = 0; i < count; ++i) entries_[(first + i) % size].store(0);
    }

  private:
    static constexpr int shift = 21;
    static constexpr std::uint64_t size = 1024;

    static std::uint64_t word(std::uint64_t address, int ordinal) noexcept {
        return (address >> shift) << 8 | (static_cast<std::uint64_t>(ordinal) + 1);
    }
    std::atomic<std::uint64_t>& entry(std::uint64_t address) const noexcept {
        return entries_[(address >> shift) % size];
    }

    mutable std::array<std::atomic<std::uint64_t>, size> entries_{};
    std::atomic<std::uint64_t> generation_{0};
};

ProvenBlocks proven;

/// What the driver says of one address.
struct MemoryFacts {
    unsigned int memory_type = 0;  // CUmemorytype; 0 when it knows nothing
    bool managed = false;
    CUdeviceptr device_pointer = 0;
    int ordinal = -1;
    CUcontext context = nullptr;
    CUdeviceptr range_start = 0;  // of the allocation; 0 where the driver does not tell
    std::size_t range_bytes = 0;
};

MemoryFacts ask(std::uint64_t address, Device device) {
    const Driver& driver = Driver::get();
    const ContextGuard guard(device.context());
    MemoryFacts answer;
    unsigned int managed = 0;
    CUpointer_attribute attributes[] = {
        CU_POINTER_ATTRIBUTE_MEMORY_TYPE,    CU_POINTER_ATTRIBUTE_IS_MANAGED,
        CU_POINTER_ATTRIBUTE_DEVICE_POINTER, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL,
        CU_POINTER_ATTRIBUTE_CONTEXT,        CU_POINTER_ATTRIBUTE_RANGE_START_ADDR,
        CU_POINTER_ATTRIBUTE_RANGE_SIZE};
    void* values[] = {&answer.memory_type, &managed,        &answer.device_pointer,
                      &answer.ordinal,     &answer.context, &answer.range_start,
                      &answer.range_bytes};
    const CUresult code = driver.api().cuPointerGetAttributes(std::size(attributes), attributes, values,
                                                              static_cast<CUdeviceptr>(address));
    if (code == CUDA_ERROR_INVALID_VALUE) return {};
    driver.check(code, "cuPointerGetAttributes", "asking whose memory an array is");
    answer.managed = managed != 0;
    return answer;
}

[[noreturn]] void fail_unknown(const ArrayView& array, Device device) {
    const std::string message =
        device.emulated()
            ? fmt::format(
                  "'data' of __cuda_array_interface__ is {:#x}, memory that the emulated device does not "
                  "know: "
                  "it comes from a real CUDA library, is host memory, or was freed. Set BASCULE_DEVICE=cuda, "
                  "or "
                  "copy the array with bascule.to_device(...).",
                  array.pointer)
            : fmt::format(
                  "'data' of __cuda_array_interface__ is {:#x}, memory that no CUDA device knows: it is host "
                  "memory, or was freed. Copy a host array with bascule.to_device(...).",
                  array.pointer);
    throw ArgumentError(ArgumentError::Kind::value, message,
                        {.field = "data",
                         .expected = "memory of device " + std::to_string(device.ordinal()),
                         .got = fmt::format("{:#x}", array.pointer)});
}

[[noreturn]] void fail_elsewhere(const ArrayView& array, const Home& home, int ordinal) {
    throw ArgumentError(
        ArgumentError::Kind::value,
        fmt::format(
            "'data' of __cuda_array_interface__ is {:#x}: {} lies on device {}, but {}. Copy it there "
            "first, or launch with peer=True where the devices reach each other's memory.",
            array.pointer, describe(array), ordinal, describe(home)),
        {.field = "data",
         .expected = "memory of device " + std::to_string(home.device.ordinal()),
         .got = "memory of device " + std::to_string(ordinal)});
}

/// The first byte of the array and the one behind its last. `validate` has seen that they have addresses.
std::pair<std::uint64_t, std::uint64_t> bytes_of(const ArrayView& array) noexcept {
    if (array.dtype.kind == DType::Kind::bit) return {array.pointer, array.pointer + (array.size + 7) / 8};
    std::uint64_t first = array.pointer;
    std::uint64_t last = array.pointer + array.dtype.itemsize - 1;
    for (int d = 0; d < array.ndim(); ++d) {
        const std::int64_t reach = (array.shape[d] - 1) * array.strides[d];
        (reach < 0 ? first : last) += static_cast<std::uint64_t>(reach);
    }
    return {first, last + 1};
}

void check_range(const ArrayView& array, const MemoryFacts& memory) {
    const auto [first, end] = bytes_of(array);
    const std::uint64_t known_end = memory.range_start + memory.range_bytes;
    if (memory.range_start == 0 || (first >= memory.range_start && end <= known_end)) return;
    if (!checked(Check::memory_extent)) return;
    throw ArgumentError(
        ArgumentError::Kind::value,
        fmt::format(
            "'data' of __cuda_array_interface__ is {:#x}: {} takes the bytes from {:#x} to {:#x}, and "
            "the allocation there goes from {:#x} to {:#x}. Look at its shape and strides.",
            array.pointer, describe(array), first, end, memory.range_start, known_end),
        {.field = "data",
         .expected = fmt::format("{} bytes from {:#x}", memory.range_bytes, memory.range_start),
         .got = fmt::format("{} bytes from {:#x}", end - first, first)});
}

std::atomic<bool> asks_always{false};

}  // namespace

void check_memory(bool on) noexcept { asks_always.store(on, std::memory_order_relaxed); }

std::string describe(const Home& home) {
    return fmt::format("the launch goes to device {}, where {} is", home.device.ordinal(),
                       home.by_stream ? "its stream" : "an earlier array");
}

ArrayView resolve(const ArrayView& array, Device device) {
    Home home{.device = device, .decided = true};
    ArrayView resolved = array;
    resolve_at_home(resolved, home);
    return resolved;
}

void resolve_at_home(ArrayView& array, Home& home) {
    if (array.empty()) return;
    const bool asks = asks_always.load(std::memory_order_relaxed);
    if (!asks && proven.contains(array.pointer, home.device.ordinal())) {
        home.decided = true;
        return;
    }
    const std::uint64_t asked_at = proven.generation();
    const MemoryFacts memory = ask(array.pointer, home.device);
    if (memory.memory_type == 0) {
        if (!home.device.reads_host_memory() && checked(Check::memory_known))
            fail_unknown(array, home.device);
        return;
    }
    const std::uint64_t given = array.pointer;
    if (memory.device_pointer != 0) array.pointer = memory.device_pointer;
    if (asks) check_range(array, memory);
    // Managed memory and pinned host memory serve every device.
    if (memory.managed || memory.memory_type != CU_MEMORYTYPE_DEVICE) return;
    if (memory.ordinal != home.device.ordinal()) {
        if (home.decided && home.peer) {
            enable_peer_access(home.device, Device(memory.ordinal));
            array.device = memory.ordinal;
            return;
        }
        if (home.decided && checked(Check::memory_device)) fail_elsewhere(array, home, memory.ordinal);
        home.device = Device(memory.ordinal);
    }
    home.decided = true;
    if (array.pointer == given) proven.insert(given, home.device.ordinal(), asked_at);
}

void forget_pointer(std::uint64_t address, std::uint64_t bytes) noexcept { proven.forget(address, bytes); }

}  // namespace bascule
