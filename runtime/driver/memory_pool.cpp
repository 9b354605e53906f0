#include <array>

#include <bascule/runtime/driver/driver.hpp>
#include <bascule/runtime/driver/memory_pool.hpp>

namespace bascule {
namespace {

/// The release threshold is this plus twice the use that it follows, so that memory stays cached for the next arrays.
constexpr std::uint64_t kept_at_least = std::uint64_t{64} << 20;
constexpr std::uint64_t threshold_for(std::uint64_t used) noexcept { return kept_at_least + 2 * used; }

struct Slot {
    std::once_flag made;
    std::atomic<MemoryPool*> pool{nullptr};
};

Slot& slot_of(Device device) noexcept {
    static constinit std::array<Slot, max_devices> slots;  // has no destructor: memory is freed at exit too
    return slots[static_cast<std::size_t>(device.ordinal())];
}

CUmemLocation location_of(Device device) noexcept {
    CUmemLocation location = {};
    location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    location.id = device.ordinal();
    return location;
}

std::uint64_t number_of(const Driver& driver, CUmemoryPool pool, CUmemPool_attribute which) {
    cuuint64_t value = 0;
    driver.check(driver.api().cuMemPoolGetAttribute(pool, which, &value), "asking what a memory pool holds");
    return value;
}

void set(const Driver& driver, CUmemoryPool pool, CUmemPool_attribute which, void* value) {
    driver.check(driver.api().cuMemPoolSetAttribute(pool, which, value), "setting up a memory pool");
}

/// Null if the driver supports no pools: some virtual GPUs, and WSL with old drivers.
CUmemoryPool make_pool(const Driver& driver, Device device) {
    if (driver.attribute_of(device.ordinal(), CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED) == 0)
        return nullptr;
    CUmemPoolProps properties = {};
    properties.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
    properties.location = location_of(device);
    CUmemoryPool pool = nullptr;
    if (driver.api().cuMemPoolCreate(&pool, &properties) != CUDA_SUCCESS) return nullptr;
    // The driver's default, 0, would release all unused memory at each synchronization.
    cuuint64_t kept = threshold_for(0);
    set(driver, pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &kept);
    // An allocation reuses only memory that is free already, and makes the stream wait for no other one.
    int no = 0;
    set(driver, pool, CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES, &no);
    return pool;
}

}  // namespace

MemoryPool* MemoryPool::of(Device device) {
    Slot& slot = slot_of(device);
    std::call_once(slot.made, [&] {
        const Driver& driver = Driver::get();
        const CUmemoryPool native = make_pool(driver, device);
        if (native == nullptr) return;
        const ContextGuard context(device.context());
        CUstream stream = nullptr;
        driver.check(driver.api().cuStreamCreateWithPriority(&stream, CU_STREAM_NON_BLOCKING, 0),
                     "making a stream for allocations");
        slot.pool.store(new MemoryPool(native, stream), std::memory_order_release);
    });
    return existing(device);
}

MemoryPool* MemoryPool::existing(Device device) noexcept {
    return slot_of(device).pool.load(std::memory_order_acquire);
}

DriverResult MemoryPool::allocate(std::uint64_t& address, std::size_t bytes, CUstream stream) {
    const DriverFunctions& api = Driver::existing()->api();
    const RelaxedCapture relaxed;  // around two or more driver calls
    CUdeviceptr made = 0;
    DriverResult code =
        api.cuMemAllocFromPoolAsync(&made, bytes, native_, stream != nullptr ? stream : stream_);
    if (code != CUDA_SUCCESS) return code;
    if (stream == nullptr) {
        do {  // nothing else is ever enqueued on this stream, so this takes hardly any time
            code = api.cuStreamQuery(stream_);
        } while (code == CUDA_ERROR_NOT_READY);
        if (code != CUDA_SUCCESS) {
            api.cuMemFreeAsync(made, stream_);
            return code;
        }
    }
    address = made;
    note_allocated(bytes);
    return code;
}

DriverResult MemoryPool::free(std::uint64_t address, std::size_t bytes, CUstream stream) {
    {
        const std::lock_guard lock(mutex_);
        used_ -= bytes;
    }
    const DriverFunctions& api = Driver::existing()->api();
    // cuMemFree of pool memory does not wait and is not ordered after any stream's work.
    return stream != nullptr ? DriverResult(api.cuMemFreeAsync(address, stream)) : api.cuMemFree(address);
}

void MemoryPool::note_allocated(std::uint64_t bytes) noexcept {
    const std::lock_guard lock(mutex_);
    used_ += bytes;
    most_ = std::max(most_, used_);
    if (most_ > basis_) follow(most_ + most_ / 4);  // with a margin, so that the threshold changes rarely
}

void MemoryPool::forget_former_use() noexcept {
    const std::lock_guard lock(mutex_);
    if (most_ < basis_ / 2) follow(most_);
    most_ = used_;
}

/// The caller holds the lock. If the driver refuses, the threshold stays as it is.
void MemoryPool::follow(std::uint64_t bytes) noexcept {
    basis_ = bytes;
    if (!follows_use_) return;
    cuuint64_t threshold = threshold_for(bytes);
    static_cast<void>(Driver::existing()->api().cuMemPoolSetAttribute(
        native_, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &threshold));
}

PoolUse MemoryPool::use() const {
    const Driver& driver = Driver::get();
    return {.used = number_of(driver, native_, CU_MEMPOOL_ATTR_USED_MEM_CURRENT),
            .reserved = number_of(driver, native_, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT),
            .release_threshold = number_of(driver, native_, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD)};
}

void MemoryPool::set_release_threshold(std::uint64_t bytes) {
    const std::lock_guard lock(mutex_);
    cuuint64_t value = bytes;
    set(Driver::get(), native_, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &value);
    follows_use_ = false;
}

void MemoryPool::trim(std::uint64_t keep) const {
    const Driver& driver = Driver::get();
    driver.check(driver.api().cuMemPoolTrimTo(native_, keep), "trimming a memory pool");
}

void MemoryPool::open_to(Device device) const {
    const Driver& driver = Driver::get();
    CUmemAccessDesc access = {};
    access.location = location_of(device);
    access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    driver.check(driver.api().cuMemPoolSetAccess(native_, &access, 1),
                 "opening a memory pool to another device");
}

}  // namespace bascule
