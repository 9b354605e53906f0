#include <algorithm>
#include <cerrno>
#include <functional>
#include <sys/syscall.h>
#include <unistd.h>

#include <fmt/format.h>

#include <bascule/interface/errors/rejection.hpp>
#include <bascule/interface/errors/wording.hpp>
#include <bascule/runtime/driver/driver.hpp>
#include <bascule/runtime/driver/home_device.hpp>
#include <bascule/runtime/driver/peer_access.hpp>

namespace bascule {
namespace {

/// The driver's information about one address.
struct MemoryFacts {
    unsigned int memory_type = 0;  // CUmemorytype; 0 if the driver does not know the address
    bool managed = false;
    CUdeviceptr device_pointer = 0;
    int ordinal = -1;
    CUcontext context = nullptr;
    CUdeviceptr range_start = 0;  // of the allocation; 0 if the driver does not report it
    std::size_t range_bytes = 0;
};

MemoryFacts ask(std::uint64_t address, Device device) {
    const Driver& driver = Driver::get();
    const ContextGuard guard(device.context_for_questions());
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
    const DriverResult code = driver.api().cuPointerGetAttributes(std::size(attributes), attributes, values,
                                                                  static_cast<CUdeviceptr>(address));
    if (code == CUDA_ERROR_INVALID_VALUE) return {};
    driver.check(code, "asking whose memory an array is");
    answer.managed = managed != 0;
    return answer;
}

[[noreturn]] void fail_unknown(const ArrayView& array, Device device) {
    const char* const where = device.reads_host_memory() ? "it was freed, or this process never had it"
                                                         : "it is host memory, or was freed";
    const std::string copying = advice("bascule.to_device(...)", "bascule::copy_to_device(...)");
    const std::string message =
        device.emulated()
            ? "memory that the emulated device does not know: it comes from a real CUDA library, is host memory, or was "
              "freed. Set BASCULE_DEVICE=cuda, or copy the array with " +
                  copying
            : fmt::format("memory that no CUDA device knows: {}. Copy a host array with {}", where, copying);
    reject(ErrorKind::value,
           {.field = "data",
            .expected = "memory of device " + std::to_string(device.ordinal()),
            .got = fmt::format("{:#x}", array.pointer)},
           "'data' of __cuda_array_interface__ is {:#x}, {}.", array.pointer, message);
}

[[noreturn]] void fail_elsewhere(const ArrayView& array, const Home& home, int ordinal) {
    reject(ErrorKind::value,
           {.field = "data",
            .expected = "memory of device " + std::to_string(home.device.ordinal()),
            .got = "memory of device " + std::to_string(ordinal)},
           "'data' of __cuda_array_interface__ is {:#x}: {} lies on device {}, but {}. {}", array.pointer,
           describe(array), ordinal, describe(home), advice_for_elsewhere(home.device));
}

[[noreturn]] void fail_told(const ArrayView& array, int told, int ordinal) {
    reject(ErrorKind::value,
           {.field = "device",
            .expected = fmt::format("CUDA device {}", ordinal),
            .got = fmt::format("CUDA device {}", told)},
           "the DLPack tensor says that it is on CUDA device {}, and its memory at {:#x} is on device {}: a "
           "bug in the producing library.",
           told, array.pointer, ordinal);
}

[[noreturn]] void fail_context(const ArrayView& array, int ordinal) {
    reject(ErrorKind::value,
           {.field = "data",
            .expected = fmt::format("memory of the primary context of device {}", ordinal),
            .got = "memory of another context"},
           "'data' of __cuda_array_interface__ is {:#x}: {} lies in a context of device {} that is not the "
           "device's primary one, and each context has an address space of its own. {}",
           array.pointer, describe(array), ordinal, primary_context_advice);
}

/// Whether the memory belongs to a primary context. Pool memory belongs to no context and is accepted.
bool is_primary(const MemoryFacts& memory) {
    if (memory.context == nullptr) return true;
    const Device device(memory.ordinal);
    return device.is_active() && device.context() == memory.context;
}

/// Checks memory that the driver does not know. On devices with pageable memory access, an address that is not mapped
/// is still an error: the fault would lose the context.
void require_host_memory(const ArrayView& array, Device device) {
    const auto [first, end] = bytes_of(array);
    if (!device.reads_host_memory() || !is_readable(first) || !is_readable(end - 1))
        fail_unknown(array, device);
}

void check_range(const ArrayView& array, const MemoryFacts& memory) {
    const auto [first, end] = bytes_of(array);
    const std::uint64_t known_end = memory.range_start + memory.range_bytes;
    if (memory.range_start == 0 || (first >= memory.range_start && end <= known_end)) return;
    reject(ErrorKind::value,
           {.field = "data",
            .expected = fmt::format("{} bytes from {:#x}", memory.range_bytes, memory.range_start),
            .got = fmt::format("{} bytes from {:#x}", end - first, first)},
           "'data' of __cuda_array_interface__ is {:#x}: {} takes the bytes from {:#x} to {:#x}, and the "
           "allocation there goes from {:#x} to {:#x}. Look at its shape and strides.",
           array.pointer, describe(array), first, end, memory.range_start, known_end);
}

}  // namespace

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

void detail::ProvenMemory::store(std::atomic<std::uint64_t>& slot, std::uint64_t value,
                                 std::uint64_t asked_at) noexcept {
    slot.store(value);
    if (generation_.load() != asked_at) slot.store(0);
}

void detail::ProvenMemory::insert(std::uint64_t address, int ordinal, std::uint64_t asked_at) noexcept {
    store(blocks_[slot_of(address >> shift)], word(address, ordinal), asked_at);
}

void detail::ProvenMemory::insert_of_host(std::uint64_t address, std::uint64_t asked_at) noexcept {
    const auto widen = [](std::atomic<std::uint64_t>& bound, std::uint64_t value, auto closer) {
        std::uint64_t known = bound.load();
        while (closer(value, known) && !bound.compare_exchange_weak(known, value)) {
        }
    };
    widen(first_of_host_, address, std::less<>());
    widen(last_of_host_, address, std::greater<>());
    store(of_host_[slot_of(address)], address, asked_at);
}

void detail::ProvenMemory::forget(std::uint64_t address, std::uint64_t bytes) noexcept {
    generation_.fetch_add(1);
    const std::uint64_t last = address + std::max<std::uint64_t>(bytes, 1) - 1;
    const std::uint64_t blocks = (last >> shift) - (address >> shift) + 1;
    if (blocks >= blocks_.size()) {
        for (auto& entry : blocks_) entry.store(0);
    } else {
        for (std::uint64_t i = 0; i < blocks; ++i) blocks_[slot_of((address >> shift) + i)].store(0);
    }
    if (last < first_of_host_.load() || address > last_of_host_.load()) return;
    for (auto& entry : of_host_) {
        const std::uint64_t known = entry.load();
        if (known >= address && known <= last) entry.store(0);
    }
}

void check_memory(bool on) noexcept { detail::asks_always.store(on, std::memory_order_relaxed); }

std::string describe(const Home& home) {
    return fmt::format("the launch goes to device {}, where {} is", home.device.ordinal(),
                       home.by_stream ? "its stream" : "an earlier array");
}

std::string advice_for_elsewhere(Device home) {
    return advice(
        fmt::format(
            "Copy it there: `with bascule.device({}): copy = bascule.device_array(array.shape, array.dtype)`, then "
            "`copy[...] = array`. Or, where the devices reach each other's memory: `kernel[grid, block].options(peer=True)(...)`.",
            home.ordinal()),
        "Copy it there, or launch on a stream of the device that it is on.");
}

ArrayView resolve(const ArrayView& array, Device device) {
    Home home{.device = device, .decided = true};
    ArrayView resolved = array;
    resolve_at_home(resolved, home);
    return resolved;
}

void resolve_at_home(ArrayView& array, Home& home, int told) {
    if (array.empty() || is_known_at_home(array.pointer, home, told)) return;
    const bool asks = detail::asks_always.load(std::memory_order_relaxed);
    const std::uint64_t asked_at = detail::proven_memory.generation();
    const MemoryFacts memory = ask(array.pointer, home.device);
    detail::several_devices.store(Device::count() > 1, std::memory_order_relaxed);
    if (memory.memory_type == 0) return require_host_memory(array, home.device);
    const std::uint64_t given = array.pointer;
    if (memory.device_pointer != 0) array.pointer = memory.device_pointer;
    if (asks) check_range(array, memory);
    // Managed and pinned host memory is accessible from every device and context.
    if (memory.managed || memory.memory_type != CU_MEMORYTYPE_DEVICE) {
        if (array.pointer == given) detail::proven_memory.insert_of_host(given, asked_at);
        return;
    }
    if (told != no_device_named && told != memory.ordinal) fail_told(array, told, memory.ordinal);
    if (!is_primary(memory)) fail_context(array, memory.ordinal);
    if (memory.ordinal != home.device.ordinal()) {
        if (home.decided && home.peer) {
            open_peer_memory(home.device, Device(memory.ordinal), array.pointer);
            array.stream.device = memory.ordinal;
            return;
        }
        if (home.decided) fail_elsewhere(array, home, memory.ordinal);
        home.device = Device(memory.ordinal);
    }
    home.decided = true;
    if (array.pointer == given) detail::proven_memory.insert(given, home.device.ordinal(), asked_at);
}

void forget_pointer(std::uint64_t address, std::uint64_t bytes) noexcept {
    detail::proven_memory.forget(address, bytes);
}

bool is_readable(std::uint64_t address) noexcept {
    // rt_sigprocmask copies the 8 bytes of a signal set before it checks `how`, which is invalid on purpose. This
    // changes nothing, needs no file descriptor, and no sandbox forbids it.
    constexpr long no_such_how = -1;
    constexpr std::size_t signal_set_bytes = 8;
    if (address < signal_set_bytes) return false;  // null would mean that there is no signal set
    const int error = errno;
    const long result =
        syscall(SYS_rt_sigprocmask, no_such_how, address & ~std::uint64_t{7}, nullptr, signal_set_bytes);
    const bool readable = result == 0 || errno != EFAULT;
    errno = error;
    return readable;
}

}  // namespace bascule
