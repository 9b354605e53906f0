#include <algorithm>
#include <atomic>
#include <utility>

#include <fmt/format.h>

#include <bascule/interface/errors/checks.hpp>
#include <bascule/interface/errors/error.hpp>
#include <bascule/interface/errors/language.hpp>
#include <bascule/runtime/driver/driver.hpp>
#include <bascule/runtime/driver/home_device.hpp>
#include <bascule/runtime/driver/peer_access.hpp>

namespace bascule {
namespace {

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
    const DriverResult code = driver.api().cuPointerGetAttributes(std::size(attributes), attributes, values,
                                                                  static_cast<CUdeviceptr>(address));
    if (code == CUDA_ERROR_INVALID_VALUE) return {};
    driver.check(code, "asking whose memory an array is");
    answer.managed = managed != 0;
    return answer;
}

[[noreturn]] void fail_unknown(const ArrayView& array, Device device) {
    const std::string copying = advice("bascule.to_device(...)", "bascule::copy_to_device(...)");
    const std::string message =
        device.emulated()
            ? fmt::format(
                  "'data' of __cuda_array_interface__ is {:#x}, memory that the emulated device does not "
                  "know: "
                  "it comes from a real CUDA library, is host memory, or was freed. Set BASCULE_DEVICE=cuda, "
                  "or copy the array with {}.",
                  array.pointer, copying)
            : fmt::format(
                  "'data' of __cuda_array_interface__ is {:#x}, memory that no CUDA device knows: it is host "
                  "memory, or was freed. Copy a host array with {}.",
                  array.pointer, copying);
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

}  // namespace

void detail::ProvenBlocks::insert(std::uint64_t address, int ordinal, std::uint64_t asked_at) noexcept {
    std::atomic<std::uint64_t>& slot = entry(address);
    slot.store(word(address, ordinal));
    if (generation_.load() != asked_at) slot.store(0);
}

void detail::ProvenBlocks::forget(std::uint64_t address, std::uint64_t bytes) noexcept {
    generation_.fetch_add(1);
    const std::uint64_t first = address >> shift;
    const std::uint64_t last = (address + std::max<std::uint64_t>(bytes, 1) - 1) >> shift;
    const std::uint64_t count = std::min<std::uint64_t>(last - first + 1, size);
    for (std::uint64_t i = 0; i < count; ++i) entries_[(first + i) % size].store(0);
}

void check_memory(bool on) noexcept { detail::asks_always.store(on, std::memory_order_relaxed); }

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
    if (array.empty() || is_known_at_home(array.pointer, home)) return;
    const bool asks = detail::asks_always.load(std::memory_order_relaxed);
    const std::uint64_t asked_at = detail::proven_blocks.generation();
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
    if (array.pointer == given) detail::proven_blocks.insert(given, home.device.ordinal(), asked_at);
}

void forget_pointer(std::uint64_t address, std::uint64_t bytes) noexcept {
    detail::proven_blocks.forget(address, bytes);
}

}  // namespace bascule
