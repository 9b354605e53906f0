// Stream-ordered allocation: memory pools, and allocations and frees in the order of a stream.
#include <map>
#include <mutex>
#include <vector>

#include <fmt/format.h>

#include "driver/captures.hpp"
#include "driver/graph_nodes.hpp"
#include "driver/interruption.hpp"
#include "driver/memory_calls/graph_memory.hpp"
#include "driver/memory_calls/row_transfers.hpp"

namespace emulated::driver {
using memory::Allocation;

namespace {

/// The default pool and the current pool of a location.
struct PlacePools {
    std::shared_ptr<MemoryPool> initial, current;
};

struct LockedPools {
    std::unique_lock<std::mutex> lock;
    PlacePools& pools;
};

/// All pools. Expired entries are removed when the next pool is made.
struct KnownPools {
    std::mutex mutex;
    std::vector<std::weak_ptr<MemoryPool>> pools;
};
KnownPools& known_pools() {
    static auto& known = *new KnownPools;
    return known;
}

std::shared_ptr<MemoryPool> make_pool(const MemoryPool::Place& place, bool as_default, std::uint64_t most) {
    auto made = std::make_shared<MemoryPool>(place, as_default, most);
    KnownPools& known = known_pools();
    const std::lock_guard lock(known.mutex);
    std::erase_if(known.pools, [](const auto& pool) { return pool.expired(); });
    known.pools.push_back(made);
    return made;
}

/// The pools of a location, made at first use. They stay locked while the result lives.
LockedPools pools_of(const MemoryPool::Place& place) {
    static auto& mutex = *new std::mutex;
    static auto& all = *new std::map<MemoryPool::Place, PlacePools>;
    std::unique_lock lock(mutex);
    LockedPools found{std::move(lock), all[place]};
    if (found.pools.initial == nullptr) {
        found.pools.initial = found.pools.current = make_pool(place, true, 0);
        Process::get().handles().add(found.pools.initial);
    }
    return found;
}

MemoryPool::Place on_device(int device) noexcept {
    return {Allocation::Kind::device, CU_MEM_LOCATION_TYPE_DEVICE, device};
}

/// Returns one of the pools of a location.
void answer_pool(CUmemoryPool* out, const MemoryPool::Place& place,
                 std::shared_ptr<MemoryPool> PlacePools::*which) {
    return answer(out, reinterpret_cast<CUmemoryPool>((pools_of(place).pools.*which).get()));
}

/// "The location and allocation type specified must match those of the pool".
void set_pool(const MemoryPool::Place& place, CUmemoryPool handle) {
    auto pool = argument<MemoryPool>(handle);
    require(pool->place == place);
    pools_of(place).pools.current = std::move(pool);
}

/// The device of a location; -1 if it is not a device's.
int device_at(const CUmemLocation* location) noexcept {
    const bool known = location != nullptr && location->type == CU_MEM_LOCATION_TYPE_DEVICE &&
                       Process::get().is_device(location->id);
    return known ? location->id : -1;
}

/// "During stream capture, this function results in the creation of an allocation node", which has the pool's
/// properties.
void capture_allocation(CUdeviceptr* address, std::size_t bytes, const std::shared_ptr<MemoryPool>& pool,
                        const CaptureGate& gate) {
    CUDA_MEM_ALLOC_NODE_PARAMS_v2 allocation = {};
    const bool managed = pool->place.memory == Allocation::Kind::managed;
    allocation.poolProps.allocType = managed ? CU_MEM_ALLOCATION_TYPE_MANAGED : CU_MEM_ALLOCATION_TYPE_PINNED;
    allocation.poolProps.location.type = static_cast<CUmemLocationType>(pool->place.location);
    allocation.poolProps.location.id = pool->place.device;
    allocation.bytesize = bytes;
    gate.add(make_allocation_node, allocation, gate.context(), *gate.graph());
    *address = allocation.dptr;
}

bool is_host(const CUmemLocation& location) noexcept {
    return location.type == CU_MEM_LOCATION_TYPE_HOST || location.type == CU_MEM_LOCATION_TYPE_HOST_NUMA;
}

void allocate(CUdeviceptr* address, std::size_t bytes, const std::shared_ptr<MemoryPool>& pool,
              const StreamTarget& target, CUstream handle, const char* name) {
    require(address != nullptr);
    require(Process::get().environment().has_memory_pools, CUDA_ERROR_NOT_SUPPORTED);
    const CaptureGate gate(target);
    if (bytes == 0) return answer(address, 0);  // unlike cuMemAlloc
    if (gate.captures()) return capture_allocation(address, bytes, pool, gate);
    unsafe_now(name);
    Process& process = Process::get();
    if (!(pool->take(bytes, target.stream))) throw Failed{out_of_memory()};
    PoolShare share = share_of(pool, bytes);
    const auto kind = pool->place.memory;
    auto made = process.heap().reserve(pool->place.device, bytes, pool->access, kind);
    if (!made) {  // pending frees may make room
        for (Context* context : process.contexts()) context->graph.drain();
        made = process.heap().reserve(pool->place.device, bytes, pool->access, kind);
    }
    if (!made) throw Failed{out_of_memory()};
    process.own(*made, kind, *target.context, std::move(share));
    *address = *made;
    trace(BASCULE_EMULATED_ALLOCATE, handle, nullptr, bytes, name);
    target.context->graph.submit(*target.stream, [at = *made, bytes] {
        Process::get().heap().commit(at);
        note_write(at, bytes);
    });
}

/// A counter or setting of a pool, with the C type that the documentation gives it. One row per attribute.
using Numbers = MemoryPool::Numbers;
enum class Change : std::uint8_t { any, only_to_zero, none };
struct Attribute {
    CUmemPool_attribute which;
    bool is_flag;  ///< an int for clients; otherwise a cuuint64_t
    std::uint64_t Numbers::*number;
    Change change;
};
constexpr Attribute attributes[] = {
    {CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES, true, &Numbers::reuse_follow_events, Change::any},
    {CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC, true, &Numbers::reuse_opportunistic, Change::any},
    {CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES, true, &Numbers::reuse_internal, Change::any},
    {CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, false, &Numbers::release_threshold, Change::any},
    {CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT, false, &Numbers::reserved, Change::none},
    {CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH, false, &Numbers::reserved_high, Change::only_to_zero},
    {CU_MEMPOOL_ATTR_USED_MEM_CURRENT, false, &Numbers::used, Change::none},
    {CU_MEMPOOL_ATTR_USED_MEM_HIGH, false, &Numbers::used_high, Change::only_to_zero},
};

}  // namespace

void release_unused_pool_memory() {
    KnownPools& known = known_pools();
    const std::lock_guard lock(known.mutex);
    for (const auto& each : known.pools) {
        if (const auto pool = each.lock()) pool->release_unused();
    }
}

MemoryPool::Place place_of(const CUmemLocation* location, CUmemAllocationType type) {
    const bool managed = static_cast<int>(type) == CU_MEM_ALLOCATION_TYPE_MANAGED;
    require(location != nullptr && (managed || static_cast<int>(type) == CU_MEM_ALLOCATION_TYPE_PINNED));
    const int where = static_cast<int>(location->type);
    const auto host = managed ? Allocation::Kind::managed : Allocation::Kind::pinned;
    const bool on_host =
        where == CU_MEM_LOCATION_TYPE_HOST || (where == CU_MEM_LOCATION_TYPE_HOST_NUMA && location->id == 0);
    if (on_host || (managed && where == CU_MEM_LOCATION_TYPE_NONE)) return {host, where, 0};
    require(where == CU_MEM_LOCATION_TYPE_DEVICE && Process::get().is_device(location->id));
    return {managed ? host : Allocation::Kind::device, where, location->id};
}

EMULATED_STREAM_API(cuMemAllocAsync, 11020, CUdeviceptr* address, std::size_t bytes, CUstream handle) {
    const auto target = find_stream(handle);
    const auto pool = pools_of(on_device(target.context->device)).pools.current;
    return allocate(address, bytes, pool, target, handle, "cuMemAllocAsync");
}

EMULATED_STREAM_API(cuMemAllocFromPoolAsync, 11020, CUdeviceptr* address, std::size_t bytes,
                    CUmemoryPool pool_handle, CUstream handle) {
    const auto target = find_stream(handle);
    const auto pool = argument<MemoryPool>(pool_handle);
    return allocate(address, bytes, pool, target, handle, "cuMemAllocFromPoolAsync");
}

/// Frees memory at once. Returns false if `address` was not allocated.
bool free_now(CUdeviceptr address) {
    Process& process = Process::get();
    const bool lost = process.heap().is_lost(address);
    const Allocation* allocation = process.heap().find(address);
    if (allocation == nullptr && !lost) return false;
    const auto kind = lost ? Allocation::Kind::device : allocation->kind;
    return process.free(address, kind, memory::Heap::FreedBy::stream);
}

/// Also accepts memory of cuMemAlloc. Work issued later may not use the memory, on any stream.
EMULATED_STREAM_API(cuMemFreeAsync, 11020, CUdeviceptr address, CUstream handle) {
    if (address == 0 || ending()) return;
    const StreamTarget target(handle);
    const bool failed = target.context != nullptr && target.context->error.load() != CUDA_SUCCESS;
    if (failed || Process::get().heap().is_lost(address)) {
        free_now(address);  // no running work can use it, and owners call a free only once
        return check(target.state);
    }
    check(target.state);
    const CaptureGate gate(target);
    if (gate.captures()) return gate.add(make_free_node, address, *target.context, *gate.graph());
    unsafe_now("cuMemFreeAsync");
    Process& process = Process::get();
    const Allocation* known = process.heap().find_known(address);
    const bool is_base = known != nullptr && known->base == address &&
                         (known->kind == Allocation::Kind::device || process.pool_of(address) != nullptr);
    if (!is_base && process.heap().is_lost(address)) {  // lost since the check above
        free_now(address);
        return;
    }
    if (!is_base || !process.begin_free(address))
        return refuse(CUDA_ERROR_INVALID_VALUE, "{:#x} cannot be freed: it is {}{}", address,
                      process.heap().describe(address, 1),
                      is_base ? ", and is being freed already (cuMemFreeAsync)" : "");
    trace(BASCULE_EMULATED_FREE, handle, nullptr, 0, "cuMemFreeAsync");
    const PoolShare pool = process.pool_of(address);
    if (pool != nullptr) pool->begin_free(known->bytes, target.stream);
    target.context->graph.submit(*target.stream, [pool, bytes = known->bytes, stream = target.stream,
                                                  work = free_work(address, *target.context)] {
        if (pool != nullptr) pool->end_free(bytes, stream);
        work();
    });
}

std::function<void()> free_work(CUdeviceptr address, Context& context) {
    return [address, &context] {
        Process& here = Process::get();
        if (const Allocation* allocation = here.heap().find(address)) {
            note_write(address, allocation->bytes);
            races::Detector::get().note_freed(address, allocation->bytes);
        }
        if (!free_now(address)) {
            context.fail(CUDA_ERROR_ILLEGAL_ADDRESS, fmt::format("cuMemFreeAsync: {:#x} is {}", address,
                                                                 here.heap().describe(address, 1)));
        }
    };
}

EMULATED_API(cuDeviceGetDefaultMemPool, 11020, CUmemoryPool* pool, CUdevice device) {
    check(device_state(device));
    return answer_pool(pool, on_device(device), &PlacePools::initial);
}

EMULATED_API(cuDeviceGetMemPool, 11020, CUmemoryPool* pool, CUdevice device) {
    check(device_state(device));
    return answer_pool(pool, on_device(device), &PlacePools::current);
}

/// "The memory pool must be local to the specified device."
EMULATED_API(cuDeviceSetMemPool, 11020, CUdevice device, CUmemoryPool handle) {
    check(device_state(device));
    return set_pool(on_device(device), handle);
}

EMULATED_DRIVER_API(cuMemPoolCreate, 11020, CUmemoryPool* handle, const CUmemPoolProps* properties) {
    require(handle != nullptr && properties != nullptr);
    require(Process::get().environment().has_memory_pools, CUDA_ERROR_NOT_SUPPORTED);
    const MemoryPool::Place place = place_of(&properties->location, properties->allocType);
    unsafe_now("cuMemPoolCreate");
    if (properties->handleTypes != CU_MEM_HANDLE_TYPE_NONE) {
        // "HOST are not IPC capable and handleTypes must be 0".
        require(place.location != CU_MEM_LOCATION_TYPE_HOST);
        return refuse(
            CUDA_ERROR_NOT_SUPPORTED,
            "cuMemPoolCreate: the emulated device shares no memory with other processes (handleTypes)");
    }
    *handle = new_handle<CUmemoryPool>(make_pool(place, false, properties->maxSize));
}

EMULATED_DRIVER_API(cuMemGetDefaultMemPool, 13000, CUmemoryPool* pool, CUmemLocation* location,
                    CUmemAllocationType type) {
    require(Process::get().environment().has_memory_pools, CUDA_ERROR_NOT_SUPPORTED);
    return answer_pool(pool, place_of(location, type), &PlacePools::initial);
}

EMULATED_DRIVER_API(cuMemGetMemPool, 13000, CUmemoryPool* pool, CUmemLocation* location,
                    CUmemAllocationType type) {
    require(Process::get().environment().has_memory_pools, CUDA_ERROR_NOT_SUPPORTED);
    return answer_pool(pool, place_of(location, type), &PlacePools::current);
}

EMULATED_DRIVER_API(cuMemSetMemPool, 13000, CUmemLocation* location, CUmemAllocationType type,
                    CUmemoryPool handle) {
    return set_pool(place_of(location, type), handle);
}

/// Destroys the pool at once; its allocations live on. A device's default pool cannot be destroyed.
EMULATED_DRIVER_API(cuMemPoolDestroy, 11020, CUmemoryPool handle) {
    const auto pool = find_object<MemoryPool>(handle);
    require(pool != nullptr && !pool->is_default);
    unsafe_now("cuMemPoolDestroy");
    Process::get().handles().remove<MemoryPool>(handle);
    const LockedPools locked = pools_of(pool->place);
    if (locked.pools.current == pool) locked.pools.current = locked.pools.initial;
}

/// All devices can access host memory; the host cannot access a device's.
EMULATED_DRIVER_API(cuMemPoolSetAccess, 11020, CUmemoryPool handle, const CUmemAccessDesc* accesses,
                    std::size_t count) {
    const auto pool = find_object<MemoryPool>(handle);
    require(pool != nullptr && (accesses != nullptr || count == 0));
    unsafe_now("cuMemPoolSetAccess");
    for (std::size_t i = 0; i < count; ++i) {
        const bool of_host = pool->place.memory != Allocation::Kind::device;
        if (of_host && is_host(accesses[i].location) &&
            accesses[i].flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE)
            continue;
        const int device = device_at(&accesses[i].location);
        const bool none = accesses[i].flags == CU_MEM_ACCESS_FLAGS_PROT_NONE;
        require(none || accesses[i].flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
        require(device >= 0 && !(none && device == pool->place.device && !of_host));
        const std::uint32_t bit = std::uint32_t{1} << device;
        none ? pool->access->fetch_and(~bit) : pool->access->fetch_or(bit);
    }
}

EMULATED_DRIVER_API(cuMemPoolGetAccess, 11020, CUmemAccess_flags* flags, CUmemoryPool handle,
                    CUmemLocation* location) {
    const auto pool = find_object<MemoryPool>(handle);
    const int device = device_at(location);
    const bool host = location != nullptr && is_host(*location);
    require(pool != nullptr && (device >= 0 || host));
    if (host)
        return answer(flags, pool->place.memory == Allocation::Kind::device
                                 ? CU_MEM_ACCESS_FLAGS_PROT_NONE
                                 : CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
    const bool open = (pool->access->load() >> device & 1) != 0;
    return answer(flags, open ? CU_MEM_ACCESS_FLAGS_PROT_READWRITE : CU_MEM_ACCESS_FLAGS_PROT_NONE);
}

EMULATED_DRIVER_API(cuMemPoolTrimTo, 11020, CUmemoryPool handle, std::size_t least) {
    const auto pool = argument<MemoryPool>(handle);
    unsafe_now("cuMemPoolTrimTo");
    pool->trim_to(least);
}

EMULATED_DRIVER_API(cuMemPoolGetAttribute, 11020, CUmemoryPool handle, CUmemPool_attribute which,
                    void* value) {
    const auto pool = find_object<MemoryPool>(handle);
    const Attribute* attribute = find_row(attributes, &Attribute::which, which);
    require(pool != nullptr && attribute != nullptr && value != nullptr);
    unsafe_now("cuMemPoolGetAttribute");
    const std::uint64_t number = pool->numbers().*attribute->number;
    if (attribute->is_flag) return answer(static_cast<int*>(value), static_cast<int>(number));
    return answer(static_cast<cuuint64_t*>(value), number);
}

EMULATED_DRIVER_API(cuMemPoolSetAttribute, 11020, CUmemoryPool handle, CUmemPool_attribute which,
                    void* value) {
    const auto pool = find_object<MemoryPool>(handle);
    const Attribute* attribute = find_row(attributes, &Attribute::which, which);
    require(pool != nullptr && attribute != nullptr && value != nullptr);
    unsafe_now("cuMemPoolSetAttribute");
    const std::uint64_t number = attribute->is_flag ? static_cast<std::uint64_t>(*static_cast<int*>(value))
                                                    : *static_cast<cuuint64_t*>(value);
    require(attribute->change == Change::any || (attribute->change == Change::only_to_zero && number == 0));
    pool->change([&](Numbers& numbers) { numbers.*attribute->number = number; });
}

}  // namespace emulated::driver
