// Stream-ordered allocation: memory that comes and goes in the order of a stream, out of pools.
#include <array>
#include <mutex>

#include <fmt/format.h>

#include "driver/capture.hpp"
#include "driver/interruption.hpp"
#include "driver/memory_calls/transfers.hpp"

namespace emulated::driver {
using memory::Allocation;

namespace {

/// Each device's default pool and the one that is current for it, made at first use.
class DevicePools {
  public:
    static DevicePools& get() {
        static DevicePools& pools = *new DevicePools;
        return pools;
    }
    std::shared_ptr<MemoryPool> initial(int device) {
        const std::lock_guard lock(mutex_);
        return row(device).initial;
    }
    std::shared_ptr<MemoryPool> current(int device) {
        const std::lock_guard lock(mutex_);
        return row(device).current;
    }
    void set_current(int device, std::shared_ptr<MemoryPool> pool) {
        const std::lock_guard lock(mutex_);
        row(device).current = std::move(pool);
    }
    void forget(const std::shared_ptr<MemoryPool>& pool) {
        const std::lock_guard lock(mutex_);
        Row& of_device = row(pool->device());
        if (of_device.current == pool) of_device.current = of_device.initial;
    }

  private:
    struct Row {
        std::shared_ptr<MemoryPool> initial, current;
    };
    Row& row(int device) {
        Row& found = rows_[static_cast<std::size_t>(device)];
        if (found.initial == nullptr) {
            found.initial = found.current = std::make_shared<MemoryPool>(device, true, 0);
            Process::get().handles().add(found.initial);
        }
        return found;
    }

    std::mutex mutex_;
    std::array<Row, most_devices> rows_;
};

CUmemoryPool handle_of(const std::shared_ptr<MemoryPool>& pool) noexcept {
    return reinterpret_cast<CUmemoryPool>(pool.get());
}

std::shared_ptr<MemoryPool> find(CUmemoryPool handle) {
    return Process::get().handles().find<MemoryPool>(handle);
}

/// Where a location is on a device of ours; -1 elsewhere.
int device_at(const CUmemLocation* location) noexcept {
    const bool known = location != nullptr && location->type == CU_MEM_LOCATION_TYPE_DEVICE &&
                       Process::get().is_device(location->id);
    return known ? location->id : -1;
}

CUresult allocate(CUdeviceptr* address, std::size_t bytes, const std::shared_ptr<MemoryPool>& pool,
                  const StreamTarget& target, CUstream handle, const char* name) {
    EMULATED_REQUIRE(address != nullptr && bytes != 0, CUDA_ERROR_INVALID_VALUE);
    EMULATED_REQUIRE(Process::get().has_memory_pools(), CUDA_ERROR_NOT_SUPPORTED);
    const CaptureGate gate(target);
    EMULATED_CHECK(gate.state);
    if (gate.captures()) return detail::refuse_allocation(name);
    Process& process = Process::get();
    EMULATED_REQUIRE(pool->take(bytes), out_of_memory());
    PoolShare share(pool, bytes);
    auto made = process.heap().reserve(pool->device(), bytes, pool->access());
    if (!made) {  // frees that are pending may make room
        for (Context* context : process.contexts()) context->graph.drain();
        made = process.heap().reserve(pool->device(), bytes, pool->access());
    }
    EMULATED_REQUIRE(made.has_value(), out_of_memory());
    process.own(*made, Allocation::Kind::device, *target.context, std::move(share));
    *address = *made;
    trace(BASCULE_EMULATED_ALLOCATE, handle, nullptr, bytes, name);
    target.context->graph.submit(*target.stream, [at = *made, bytes] {
        Process::get().heap().commit(at);
        note_write(at, bytes);
    });
    return CUDA_SUCCESS;
}

/// A number of a pool, with the C type that the documentation gives it. One row an attribute.
struct Attribute {
    CUmemPool_attribute which;
    int MemoryPool::Numbers::*flag;
    std::uint64_t MemoryPool::Numbers::*bytes;
    enum class Change : std::uint8_t { any, only_to_zero, none } change;
};
using Numbers = MemoryPool::Numbers;
constexpr Attribute attributes[] = {
    {CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES, &Numbers::reuse_follow_events, nullptr,
     Attribute::Change::any},
    {CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC, &Numbers::reuse_opportunistic, nullptr,
     Attribute::Change::any},
    {CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES, &Numbers::reuse_internal, nullptr,
     Attribute::Change::any},
    {CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, nullptr, &Numbers::release_threshold, Attribute::Change::any},
    {CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT, nullptr, &Numbers::reserved, Attribute::Change::none},
    {CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH, nullptr, &Numbers::reserved_high, Attribute::Change::only_to_zero},
    {CU_MEMPOOL_ATTR_USED_MEM_CURRENT, nullptr, &Numbers::used, Attribute::Change::none},
    {CU_MEMPOOL_ATTR_USED_MEM_HIGH, nullptr, &Numbers::used_high, Attribute::Change::only_to_zero},
};

const Attribute* find(CUmemPool_attribute which) noexcept {
    for (const Attribute& each : attributes) {
        if (each.which == which) return &each;
    }
    return nullptr;
}

}  // namespace

EMULATED_API(cuMemAllocAsync, CUdeviceptr* address, std::size_t bytes, CUstream handle) {
    EMULATED_STREAM(target, handle);
    const auto pool = DevicePools::get().current(target.context->device);
    return allocate(address, bytes, pool, target, handle, "cuMemAllocAsync");
}

EMULATED_API(cuMemAllocFromPoolAsync, CUdeviceptr* address, std::size_t bytes, CUmemoryPool pool_handle,
             CUstream handle) {
    EMULATED_STREAM(target, handle);
    const auto pool = find(pool_handle);
    EMULATED_REQUIRE(pool != nullptr, CUDA_ERROR_INVALID_VALUE);
    return allocate(address, bytes, pool, target, handle, "cuMemAllocFromPoolAsync");
}

/// In a context that has failed, where nothing runs that could use the memory; and of memory that a reset has lost. Its
/// owner does not ask again.
void free_at_once(CUdeviceptr address) {
    if (Process::get().heap().free(address, Allocation::Kind::device, memory::Heap::FreedBy::stream))
        Process::get().disown(address);
}

/// Of memory of cuMemAlloc too. What is issued later may not use it, whatever its stream.
EMULATED_API(cuMemFreeAsync, CUdeviceptr address, CUstream handle) {
    if (address == 0 || ending()) return CUDA_SUCCESS;
    const StreamTarget target(handle);
    const bool failed = target.context != nullptr && target.context->error.load() != CUDA_SUCCESS;
    if (failed || Process::get().heap().is_lost(address)) {
        free_at_once(address);
        return target.state;
    }
    EMULATED_CHECK(target.state);
    const CaptureGate gate(target);
    EMULATED_CHECK(gate.state);
    if (gate.captures()) return detail::refuse_allocation("cuMemFreeAsync");
    Process& process = Process::get();
    const Allocation* known = process.heap().find_known(address);
    const bool is_base =
        known != nullptr && known->base == address && known->kind == Allocation::Kind::device;
    if (!is_base && process.heap().is_lost(address)) {  // since a moment ago
        free_at_once(address);
        return CUDA_SUCCESS;
    }
    if (!is_base || !process.begin_free(address)) {
        process.set_report(fmt::format("{:#x} cannot be freed: it is {}{}", address,
                                       process.heap().describe(address, 1),
                                       is_base ? ", and is being freed already (cuMemFreeAsync)" : ""));
        return CUDA_ERROR_INVALID_VALUE;
    }
    trace(BASCULE_EMULATED_FREE, handle, nullptr, 0, "cuMemFreeAsync");
    target.context->graph.submit(*target.stream, [address, context = target.context] {
        Process& here = Process::get();
        if (const Allocation* allocation = here.heap().find(address)) {
            note_write(address, allocation->bytes);
            races::Detector::get().note_freed(address, allocation->bytes);
        }
        if (here.heap().free(address, Allocation::Kind::device, memory::Heap::FreedBy::stream)) {
            here.disown(address);
        } else {
            context->fail(CUDA_ERROR_ILLEGAL_ADDRESS, fmt::format("cuMemFreeAsync: {:#x} is {}", address,
                                                                  here.heap().describe(address, 1)));
        }
    });
    return CUDA_SUCCESS;
}

EMULATED_API(cuDeviceGetDefaultMemPool, CUmemoryPool* pool, CUdevice device) {
    EMULATED_CHECK(device_state(device));
    EMULATED_REQUIRE(pool != nullptr, CUDA_ERROR_INVALID_VALUE);
    *pool = handle_of(DevicePools::get().initial(device));
    return CUDA_SUCCESS;
}

EMULATED_API(cuDeviceGetMemPool, CUmemoryPool* pool, CUdevice device) {
    EMULATED_CHECK(device_state(device));
    EMULATED_REQUIRE(pool != nullptr, CUDA_ERROR_INVALID_VALUE);
    *pool = handle_of(DevicePools::get().current(device));
    return CUDA_SUCCESS;
}

/// "The memory pool must be local to the specified device."
EMULATED_API(cuDeviceSetMemPool, CUdevice device, CUmemoryPool handle) {
    EMULATED_CHECK(device_state(device));
    auto pool = find(handle);
    EMULATED_REQUIRE(pool != nullptr && pool->device() == device, CUDA_ERROR_INVALID_VALUE);
    DevicePools::get().set_current(device, std::move(pool));
    return CUDA_SUCCESS;
}

EMULATED_DRIVER_API(cuMemPoolCreate, CUmemoryPool* handle, const CUmemPoolProps* properties) {
    EMULATED_REQUIRE(handle != nullptr && properties != nullptr, CUDA_ERROR_INVALID_VALUE);
    EMULATED_REQUIRE(Process::get().has_memory_pools(), CUDA_ERROR_NOT_SUPPORTED);
    const bool plain = properties->allocType == CU_MEM_ALLOCATION_TYPE_PINNED &&
                       properties->location.type == CU_MEM_LOCATION_TYPE_DEVICE &&
                       properties->handleTypes == CU_MEM_HANDLE_TYPE_NONE;
    if (!plain) {
        Process::get().set_report(
            "cuMemPoolCreate: the emulated device has pools of device memory alone "
            "(CU_MEM_ALLOCATION_TYPE_PINNED at a device, without handle types)");
        return CUDA_ERROR_NOT_SUPPORTED;
    }
    const int device = device_at(&properties->location);
    EMULATED_REQUIRE(device >= 0, CUDA_ERROR_INVALID_VALUE);
    auto pool = std::make_shared<MemoryPool>(device, false, properties->maxSize);
    *handle = reinterpret_cast<CUmemoryPool>(Process::get().handles().add(std::move(pool)));
    return CUDA_SUCCESS;
}

/// At once; what was allocated from it lives on. A device's default pool cannot be destroyed.
EMULATED_DRIVER_API(cuMemPoolDestroy, CUmemoryPool handle) {
    const auto pool = find(handle);
    EMULATED_REQUIRE(pool != nullptr && !pool->is_default(), CUDA_ERROR_INVALID_VALUE);
    Process::get().handles().remove<MemoryPool>(handle);
    DevicePools::get().forget(pool);
    return CUDA_SUCCESS;
}

/// Every device reaches every other's memory here: access is checked and need not be remembered.
EMULATED_DRIVER_API(cuMemPoolSetAccess, CUmemoryPool handle, const CUmemAccessDesc* accesses,
                    std::size_t count) {
    const auto pool = find(handle);
    EMULATED_REQUIRE(pool != nullptr && (accesses != nullptr || count == 0), CUDA_ERROR_INVALID_VALUE);
    for (std::size_t i = 0; i < count; ++i) {
        const int device = device_at(&accesses[i].location);
        const bool none = accesses[i].flags == CU_MEM_ACCESS_FLAGS_PROT_NONE;
        EMULATED_REQUIRE(none || accesses[i].flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE,
                         CUDA_ERROR_INVALID_VALUE);
        EMULATED_REQUIRE(device >= 0 && !(none && device == pool->device()), CUDA_ERROR_INVALID_VALUE);
        const std::uint32_t bit = std::uint32_t{1} << device;
        if (none) {
            pool->access()->fetch_and(~bit);
        } else {
            pool->access()->fetch_or(bit);
        }
    }
    return CUDA_SUCCESS;
}

EMULATED_DRIVER_API(cuMemPoolGetAccess, CUmemAccess_flags* flags, CUmemoryPool handle,
                    CUmemLocation* location) {
    const auto pool = find(handle);
    const int device = device_at(location);
    EMULATED_REQUIRE(pool != nullptr && flags != nullptr && device >= 0, CUDA_ERROR_INVALID_VALUE);
    const bool open = (pool->access()->load() >> device & 1) != 0;
    *flags = open ? CU_MEM_ACCESS_FLAGS_PROT_READWRITE : CU_MEM_ACCESS_FLAGS_PROT_NONE;
    return CUDA_SUCCESS;
}

EMULATED_DRIVER_API(cuMemPoolTrimTo, CUmemoryPool handle, std::size_t least) {
    const auto pool = find(handle);
    EMULATED_REQUIRE(pool != nullptr, CUDA_ERROR_INVALID_VALUE);
    pool->trim_to(least);
    return CUDA_SUCCESS;
}

EMULATED_DRIVER_API(cuMemPoolGetAttribute, CUmemoryPool handle, CUmemPool_attribute which, void* value) {
    const auto pool = find(handle);
    const Attribute* attribute = find(which);
    EMULATED_REQUIRE(pool != nullptr && attribute != nullptr && value != nullptr, CUDA_ERROR_INVALID_VALUE);
    const Numbers numbers = pool->numbers();
    if (attribute->flag != nullptr) {
        *static_cast<int*>(value) = numbers.*attribute->flag;
    } else {
        *static_cast<cuuint64_t*>(value) = numbers.*attribute->bytes;
    }
    return CUDA_SUCCESS;
}

EMULATED_DRIVER_API(cuMemPoolSetAttribute, CUmemoryPool handle, CUmemPool_attribute which, void* value) {
    const auto pool = find(handle);
    const Attribute* attribute = find(which);
    EMULATED_REQUIRE(pool != nullptr && attribute != nullptr && value != nullptr, CUDA_ERROR_INVALID_VALUE);
    EMULATED_REQUIRE(attribute->change != Attribute::Change::none, CUDA_ERROR_INVALID_VALUE);
    if (attribute->flag != nullptr) {
        pool->change([&](Numbers& numbers) { numbers.*attribute->flag = *static_cast<int*>(value); });
        return CUDA_SUCCESS;
    }
    const auto bytes = *static_cast<cuuint64_t*>(value);
    const bool is_reset = attribute->change == Attribute::Change::only_to_zero;
    EMULATED_REQUIRE(!is_reset || bytes == 0, CUDA_ERROR_INVALID_VALUE);
    pool->change([&](Numbers& numbers) { numbers.*attribute->bytes = bytes; });
    return CUDA_SUCCESS;
}

}  // namespace emulated::driver
