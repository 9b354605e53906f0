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
#include <bascule/runtime/driver/pointer_attributes.hpp>

namespace bascule {
namespace {

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
bool is_primary(const PointerAttributes& memory) {
    if (memory.context == 0) return true;
    const Device device(memory.device);
    return device.is_active() && device.context() == reinterpret_cast<CUcontext>(memory.context);
}

/// Checks memory that the driver does not know. On devices with pageable memory access, an address that is not mapped
/// is still an error: the fault would lose the context.
void require_host_memory(const ArrayView& array, Device device) {
    const auto [first, end] = bytes_of(array);
    if (!device.reads_host_memory() || !is_readable(first) || !is_readable(end - 1))
        fail_unknown(array, device);
}

void check_range(const ArrayView& array, const PointerAttributes& memory) {
    const auto [first, end] = bytes_of(array);
    const std::uint64_t known_end = memory.allocation_address + memory.allocation_bytes;
    if (memory.allocation_address == 0 || (first >= memory.allocation_address && end <= known_end)) return;
    reject(
        ErrorKind::value,
        {.field = "data",
         .expected = fmt::format("{} bytes from {:#x}", memory.allocation_bytes, memory.allocation_address),
         .got = fmt::format("{} bytes from {:#x}", end - first, first)},
        "'data' of __cuda_array_interface__ is {:#x}: {} takes the bytes from {:#x} to {:#x}, and the "
        "allocation there goes from {:#x} to {:#x}. Look at its shape and strides.",
        array.pointer, describe(array), first, end, memory.allocation_address, known_end);
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
    const auto known = pointer_attributes(array.pointer, home.device, "asking whose memory an array is");
    detail::several_devices.store(Device::count() > 1, std::memory_order_relaxed);
    if (!known) return require_host_memory(array, home.device);
    const PointerAttributes& memory = *known;
    const std::uint64_t given = std::exchange(array.pointer, memory.device_address);
    if (asks) check_range(array, memory);
    // Managed and pinned host memory is accessible from every device and context.
    if (memory.kind != PointerKind::device && memory.kind != PointerKind::pool) {
        if (array.pointer == given) detail::proven_memory.insert_of_host(given, asked_at);
        return;
    }
    if (told != no_device_named && told != memory.device) fail_told(array, told, memory.device);
    if (!is_primary(memory)) fail_context(array, memory.device);
    if (memory.device != home.device.ordinal()) {
        if (home.decided && home.peer) {
            open_peer_memory(home.device, Device(memory.device), array.pointer);
            array.stream.device = memory.device;
            return;
        }
        if (home.decided) fail_elsewhere(array, home, memory.device);
        home.device = Device(memory.device);
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
