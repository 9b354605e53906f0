#include <cstdlib>
#include <string>

#include <fmt/format.h>

#include <bascule/runtime/driver/driver.hpp>
#include <bascule/runtime/driver/program_lock.hpp>
#include <bascule/runtime/lifetime/captured_owners.hpp>
#include <bascule/runtime/lifetime/lifetime.hpp>
#include <bascule/runtime/lifetime/thread_memory.hpp>
#include <bascule/runtime/memory/pool_memory.hpp>
#include <bascule/runtime/streams/capture.hpp>
#include <bascule/runtime/streams/stream.hpp>

namespace bascule {
namespace {

/// Waits for all work of the current context by freeing other memory, for which drivers wait: device memory, or pinned
/// memory if the device has none left. cuCtxSynchronize would invalidate a capture that another library has begun in any
/// thread.
bool wait_by_a_free(const DriverFunctions& api) noexcept {
    CUdeviceptr address = 0;
    if (api.cuMemAlloc(&address, 1) == CUDA_SUCCESS) return api.cuMemFree(address) == CUDA_SUCCESS;
    void* host = nullptr;
    return api.cuMemHostAlloc(&host, 1, 0) == CUDA_SUCCESS && api.cuMemFreeHost(host) == CUDA_SUCCESS;
}

/// Waits for the device's work, and releases and frees what was kept for it. No capture is invalidated.
void release_finished_memory(Device device) noexcept {
    wait_and_release_kept(device);
    MemoryPool::Waiting waiting(MemoryPool::existing(device));
    if (wait_by_a_free(Driver::existing()->api())) waiting.free();
}

}  // namespace

PoolMemory::PoolMemory(MemoryPool& pool, MemoryPool::Block block, StreamRef stream)
    : pool_(pool),
      block_(block),
      stream_(stream),
      stream_owner_(owner_of(stream)),
      thread_(stream.handle() == 2 ? number_of_this_thread() : 0) {}

std::shared_ptr<PoolMemory> PoolMemory::allocate(std::size_t bytes, StreamRef stream) {
    MemoryPool* const pool = MemoryPool::of(stream.device());
    if (pool == nullptr) return nullptr;
    const ContextGuard context(stream.context());
    std::uint64_t address = 0;
    const DriverResult code =
        try_to_allocate(stream.device(), [&] { return pool->allocate(address, bytes); });
    if (code != CUDA_SUCCESS) fail_allocation(code, bytes, "device", stream.device());
    try {
        return std::shared_ptr<PoolMemory>(new PoolMemory(*pool, {address, bytes}, stream));
    } catch (...) {  // no host memory
        const Driver& driver = *Driver::existing();
        driver.report(driver.api().cuMemFree(address), "freeing memory");
        throw;
    }
}

PoolMemory::~PoolMemory() {
    if (Driver::lost_by_fork()) return;
    end_in_context(stream_.device(), [&](const Driver& driver) {
        if (!ends_in_order()) return free_later();
        driver.report(driver.api().cuMemFreeAsync(block_.address, stream_.native()), "freeing memory");
    });
}

bool PoolMemory::ends_in_order() const noexcept {
    if (shared_.load(std::memory_order_relaxed)) return false;
    const bool is_good_handle =
        stream_.handle() == 1 || stream_owner_ != nullptr || thread_ == number_of_this_thread();
    return is_good_handle && !is_capturing(stream_);
}

void PoolMemory::free_later() const {
    if (!pool_.add_waiting(block_)) return;
    MemoryPool::Waiting due(&pool_);
    if (wait_by_a_free(Driver::existing()->api())) due.free();
}

DriverResult try_to_allocate(Device device, const std::function<DriverResult()>& allocate) {
    DriverResult code = allocate();
    if (code != CUDA_ERROR_OUT_OF_MEMORY) return code;
    release_finished_memory(device);
    code = allocate();
    if (code != CUDA_ERROR_OUT_OF_MEMORY) return code;
    if (const MemoryPool* pool = MemoryPool::existing(device)) {
        pool->trim(0);
    }
    return allocate();
}

void trim_memory_pool(Device device, std::uint64_t keep) {
    synchronize(device);
    synchronize(device);  // what the first has released may wait for one
    if (const MemoryPool* pool = MemoryPool::existing(device)) pool->trim(keep);
}

void fail_allocation(const DriverResult& result, std::size_t bytes, const char* kind, Device device) {
    const Driver& driver = Driver::get();
    const ContextGuard context(device.context());
    std::string doing = fmt::format("allocating {} bytes of {} memory", bytes, kind);
    std::size_t available = 0;
    std::size_t total = 0;
    if (std::string_view(kind) == "device" && driver.api().cuMemGetInfo(&available, &total) == CUDA_SUCCESS) {
        doing += fmt::format(", of which {} of {} are free,", available, total);
    }
    driver.check(result, doing);
    std::abort();  // check throws: `result` is not success
}

}  // namespace bascule
