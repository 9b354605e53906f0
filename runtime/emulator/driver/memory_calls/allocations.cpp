// Device, pinned and managed memory, and pointer attributes.
#include "driver/memory_calls/allocations.hpp"

#include <algorithm>
#include <cstdint>
#include <initializer_list>

#include "driver/captures.hpp"
#include "driver/device_limits.hpp"
#include "driver/interruption.hpp"

namespace emulated::driver {
using memory::Allocation;

// Addresses are aligned for textures, as with drivers.
void allocate_memory(CUdeviceptr* address, std::size_t bytes, Allocation::Kind kind) {
    require(address != nullptr && bytes != 0);
    unsafe_now("cuMemAlloc");
    synchronize_implicitly();
    Context& context = *current_context();
    const auto take = [&] {
        return Process::get().heap().allocate(context.device, bytes, kind, limits::texture_alignment,
                                              context.memory.own().space);
    };
    auto made = take();
    if (!made) {  // pending stream-ordered frees may make room
        for (Context* each : Process::get().contexts()) each->graph.drain();
        made = take();
    }
    if (!made) throw Failed{out_of_memory()};
    Process::get().own(*made, kind, context);
    *address = *made;
    trace(BASCULE_EMULATED_ALLOCATE, nullptr, nullptr, bytes, "cuMemAlloc");
}

namespace {

/// Reports why `address` cannot be freed.
[[noreturn]] void not_freeable(CUdeviceptr address) {
    refuse(CUDA_ERROR_INVALID_VALUE, "{:#x} cannot be freed: it is {}", address,
           Process::get().heap().describe(address, 1));
}

/// Frees without waiting: all memory if BASCULE_EMULATED_FREES_WAIT is 0, and always pool memory. "This API will not
/// perform any implicit synchronization when the pointer was allocated with cuMemAllocAsync or cuMemAllocFromPoolAsync.
/// Callers must ensure that all accesses to these pointer have completed".
void free_at_once(CUdeviceptr address, const Context& context) {
    Process& process = Process::get();
    const Allocation* allocation = process.heap().find(address);
    const auto kind = allocation == nullptr ? Allocation::Kind::device : allocation->kind;
    if (allocation == nullptr || !process.begin_free(address) || !process.free(address, kind))
        not_freeable(address);
    trace(BASCULE_EMULATED_FREE, nullptr, nullptr, 0, "cuMemFree");
    check(context.error.load());
}

/// The allocation at an address that a client may query; null otherwise.
const Allocation* find(CUdeviceptr address) {
    const Allocation* found = Process::get().find_usable(address);
    return found == nullptr || found->kind == Allocation::Kind::kernel_heap ? nullptr : found;
}

/// Returns null if the host memory is not pinned.
const Allocation* find_pinned(const void* host) {
    const Allocation* found = Process::get().heap().find(reinterpret_cast<CUdeviceptr>(host));
    return found != nullptr && found->kind == Allocation::Kind::pinned ? found : nullptr;
}

/// Writes an attribute of a pointer. If it is in no allocation, all attributes but the device are zero.
void write(void* out, CUpointer_attribute which, const Allocation* known, CUdeviceptr address) {
    using Kind = Allocation::Kind;
    static const Allocation none;
    const Allocation& allocation = known == nullptr ? none : *known;
    const bool device_memory = allocation.kind == Kind::device || allocation.kind == Kind::module_global;
    const bool managed = allocation.kind == Kind::managed;
    const auto give = [&](auto value) {
        *static_cast<decltype(value)*>(out) = known == nullptr ? decltype(value){} : value;
    };
    const auto is = [&](CUpointer_attribute attribute) { return which == attribute; };
    if (is(CU_POINTER_ATTRIBUTE_CONTEXT))  // a GPU's driver reports none for pool memory
        return give(allocation.access == nullptr ? static_cast<void*>(Process::get().owner(allocation.base))
                                                 : nullptr);
    if (is(CU_POINTER_ATTRIBUTE_MEMORY_TYPE))
        return give(unsigned{device_memory || managed ? CU_MEMORYTYPE_DEVICE : CU_MEMORYTYPE_HOST});
    if (is(CU_POINTER_ATTRIBUTE_DEVICE_POINTER)) return give(address);
    if (is(CU_POINTER_ATTRIBUTE_HOST_POINTER))
        return give(device_memory ? nullptr : reinterpret_cast<void*>(address));
    if (is(CU_POINTER_ATTRIBUTE_IS_MANAGED)) return give(unsigned{managed});
    if (is(CU_POINTER_ATTRIBUTE_BUFFER_ID)) return give(static_cast<unsigned long long>(allocation.serial));
    if (is(CU_POINTER_ATTRIBUTE_RANGE_START_ADDR)) return give(CUdeviceptr{allocation.base});
    if (is(CU_POINTER_ATTRIBUTE_RANGE_SIZE)) return give(std::size_t{allocation.bytes});
    if (is(CU_POINTER_ATTRIBUTE_MAPPED)) return give(1U);
    if (is(CU_POINTER_ATTRIBUTE_SYNC_MEMOPS)) return give(0U);
    if (is(CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE))
        return give(unsigned{known != nullptr && can_be_exported(allocation)});
    if (is(CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL)) {
        *static_cast<int*>(out) = known == nullptr ? -2 : allocation.device;
    } else if (is(CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE)) {
        const PoolShare pool = Process::get().pool_of(allocation.base);
        give(find_object<MemoryPool>(pool.get()) == nullptr ? nullptr : static_cast<void*>(pool.get()));
    } else if (is(CU_POINTER_ATTRIBUTE_ACCESS_FLAGS)) {
        give(unsigned{current_context()->memory.sees(allocation) ? CU_POINTER_ATTRIBUTE_ACCESS_FLAG_READWRITE
                                                                 : CU_POINTER_ATTRIBUTE_ACCESS_FLAG_NONE});
    } else {
        give(std::uint64_t{0});
    }
}

/// Refuses attributes of lost memory, because a caller that asks for them is about to use it.
void refuse_lost(CUdeviceptr address) {
    const memory::Heap& heap = Process::get().heap();
    if (heap.is_lost(address))
        refuse(CUDA_ERROR_CONTEXT_IS_DESTROYED, "{:#x} is {}: make the array again", address,
               heap.describe(address, 1));
}

}  // namespace

CUresult ready_to_free() {
    const CUresult state = ready();
    const Context* context = current_context();
    const bool failed = context != nullptr && context->alive && state == context->error.load();
    const bool none = context == nullptr && state == CUDA_ERROR_INVALID_CONTEXT;  // the memory has a context
    return failed || none ? CUDA_SUCCESS : state;
}

void free_memory(CUdeviceptr address, std::initializer_list<Allocation::Kind> kinds) {
    unsafe_now("cuMemFree");
    if (ending()) return;
    Process& process = Process::get();
    const Context* context = current_context() != nullptr ? current_context() : process.owner(address);
    require(context != nullptr, CUDA_ERROR_INVALID_CONTEXT);
    const bool frees_device_memory = std::ranges::find(kinds, Allocation::Kind::device) != kinds.end();
    if (frees_device_memory && process.pool_of(address) != nullptr && !process.heap().is_lost(address))
        return free_at_once(address, *context);
    const auto fits = [&](const Allocation* allocation) {
        return allocation != nullptr && allocation->base == address && allocation->serial != 0 &&
               !allocation->imported && std::ranges::find(kinds, allocation->kind) != kinds.end();
    };
    if (!process.environment().frees_wait && fits(process.heap().find(address)))
        return free_at_once(address, *context);
    synchronize_implicitly();
    for (Context* each : process.contexts()) each->graph.drain();
    const bool freed = process.scheduler().exclusively([&] {
        if (process.heap().is_lost(address)) return process.free(address, Allocation::Kind::device);
        const Allocation* allocation = process.heap().find(address);
        if (!fits(allocation)) return false;
        // All operations that used it have run, so later ones cannot conflict with it.
        races::Detector::get().forget(address, allocation->bytes);
        return process.free(address, allocation->kind);
    });
    check(context->error.load());
    if (!freed) not_freeable(address);
    trace(BASCULE_EMULATED_FREE, nullptr, nullptr, 0, "cuMemFree");
}

bool can_be_exported(const Allocation& allocation) {
    return allocation.kind == Allocation::Kind::device && !allocation.imported &&
           Process::get().pool_of(allocation.base) == nullptr;
}

EMULATED_CONTEXT_API(cuMemAlloc, 3020, CUdeviceptr* address, std::size_t bytes) {
    return allocate_memory(address, bytes, Allocation::Kind::device);
}

EMULATED_API(cuMemFree, 3020, CUdeviceptr address) {
    check(ready_to_free());
    if (address == 0) return;
    return free_memory(address, {Allocation::Kind::device, Allocation::Kind::managed});
}

/// The pitch is a multiple of 512 bytes, which texture hardware requires.
EMULATED_CONTEXT_API(cuMemAllocPitch, 3020, CUdeviceptr* address, std::size_t* pitch, std::size_t width,
                     std::size_t height, unsigned int element_bytes) {
    const bool element = element_bytes == 4 || element_bytes == 8 || element_bytes == 16;
    require(pitch != nullptr && width > 0 && height > 0 && element);
    std::size_t padded = 0, bytes = 0;
    require(!__builtin_add_overflow(width, limits::texture_alignment - 1, &padded), CUDA_ERROR_OUT_OF_MEMORY);
    padded = padded / limits::texture_alignment * limits::texture_alignment;
    require(!__builtin_mul_overflow(padded, height, &bytes), CUDA_ERROR_OUT_OF_MEMORY);
    allocate_memory(address, bytes, Allocation::Kind::device);
    *pitch = padded;
}

EMULATED_CONTEXT_API(cuMemAllocManaged, 6000, CUdeviceptr* address, std::size_t bytes, unsigned int flags) {
    require(flags == CU_MEM_ATTACH_GLOBAL || flags == CU_MEM_ATTACH_HOST);
    return allocate_memory(address, bytes, Allocation::Kind::managed);
}

/// All pinned memory here is portable and mapped, and write-combining has no effect, so these flags change nothing.
EMULATED_CONTEXT_API(cuMemHostAlloc, 2020, void** host, std::size_t bytes, unsigned int flags) {
    constexpr unsigned known =
        CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP | CU_MEMHOSTALLOC_WRITECOMBINED;
    require(host != nullptr && (flags & ~known) == 0);
    CUdeviceptr address = 0;
    allocate_memory(&address, bytes, Allocation::Kind::pinned);
    *host = reinterpret_cast<void*>(address);
}

EMULATED_API(cuMemAllocHost, 3020, void** host, std::size_t bytes) { check(cuMemHostAlloc(host, bytes, 0)); }

EMULATED_API(cuMemFreeHost, 2000, void* host) {
    check(ready_to_free());
    if (host == nullptr) return;
    return free_memory(reinterpret_cast<CUdeviceptr>(host), {Allocation::Kind::pinned});
}

EMULATED_CONTEXT_API(cuMemHostRegister, 6050, void* host, std::size_t bytes, unsigned int flags) {
    constexpr unsigned known = CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP |
                               CU_MEMHOSTREGISTER_IOMEMORY | CU_MEMHOSTREGISTER_READ_ONLY;
    require(host != nullptr && bytes > 0 && (flags & ~known) == 0);
    unsafe_now("cuMemHostRegister");
    const bool done = Process::get().heap().register_host(host, bytes, current_context()->device);
    if (done) races::Detector::get().forget(reinterpret_cast<CUdeviceptr>(host), bytes);
    require(done, CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED);
}

EMULATED_CONTEXT_API(cuMemHostUnregister, 4000, void* host) {
    unsafe_now("cuMemHostUnregister");
    if (ending()) Process::get().drop_pending();  // the memory is about to be freed
    for (Context* context : Process::get().contexts()) context->graph.drain();
    require(Process::get().heap().unregister_host(host), CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED);
}

/// Pinned memory has the same address on host and device ("unified addressing").
EMULATED_CONTEXT_API(cuMemHostGetDevicePointer, 3020, CUdeviceptr* address, void* host, unsigned int flags) {
    require(flags == 0 && find_pinned(host) != nullptr);
    return answer(address, reinterpret_cast<CUdeviceptr>(host));
}

/// All pinned memory here is portable and mapped.
EMULATED_CONTEXT_API(cuMemHostGetFlags, 2030, unsigned int* flags, void* host) {
    const Allocation* allocation = find_pinned(host);
    require(allocation != nullptr && allocation->serial != 0);
    return answer(flags, CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP);
}

EMULATED_CONTEXT_API(cuMemGetInfo, 3020, std::size_t* free, std::size_t* total) {
    const int device = current_context()->device;
    *total = Process::get().heap().capacity(device);
    *free = *total - Process::get().heap().used(device);
}

EMULATED_CONTEXT_API(cuMemGetAddressRange, 3020, CUdeviceptr* base, std::size_t* bytes, CUdeviceptr address) {
    const Allocation* allocation = find(address);
    require(allocation != nullptr, CUDA_ERROR_NOT_FOUND);
    if (base != nullptr) *base = allocation->base;
    if (bytes != nullptr) *bytes = allocation->bytes;
}

EMULATED_CONTEXT_API(cuPointerGetAttribute, 4000, void* value, CUpointer_attribute which,
                     CUdeviceptr address) {
    refuse_lost(address);
    const Allocation* allocation = find(address);
    require(allocation != nullptr);
    write(value, which, allocation, address);
}

/// Unlike the single query, this succeeds for unknown pointers and returns zeros, or -2 as the device.
EMULATED_CONTEXT_API(cuPointerGetAttributes, 7000, unsigned int count, CUpointer_attribute* which,
                     void** values, CUdeviceptr address) {
    refuse_lost(address);
    const Allocation* allocation = find(address);
    for (unsigned int i = 0; i < count; ++i) write(values[i], which[i], allocation, address);
}

EMULATED_API(cuPointerSetAttribute, 6000, const void*, CUpointer_attribute which, CUdeviceptr) {
    unsafe_now("cuPointerSetAttribute");
    require(which == CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, CUDA_ERROR_NOT_SUPPORTED);
}

}  // namespace emulated::driver
