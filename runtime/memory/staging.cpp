// Pinning costs more than most copies, so buffers of two sizes are used again.
#include <array>
#include <cstring>
#include <mutex>
#include <unordered_map>
#include <vector>

#include <bascule/jit/process/never_destroyed.hpp>
#include <bascule/runtime/driver/driver.hpp>
#include <bascule/runtime/memory/staging.hpp>

namespace bascule {
namespace {

constexpr std::array<std::size_t, 2> sizes = {std::size_t{16} << 10, most_staged_bytes};

/// A buffer counts for so many times its size where the bytes are counted that a stream holds, so that a marker follows
/// every fourth large one and tells soon that it may be used again: a GPU's driver takes 0.4 ms to make one.
constexpr std::size_t weight = 16;

/// Buffers are never freed, because cuMemFreeHost waits for the device; as many are made as were ever pending
/// at once, which owner queues bound.
struct Pool {
    std::mutex mutex;
    std::array<std::vector<void*>, sizes.size()> free;  // with room for all there are
    std::unordered_map<void*, std::size_t> all;         // which of `sizes` each has
};

/// Never destroyed: copies may be pending at exit.
Pool& pool() { return never_destroyed<Pool>(); }

void* make(Device device, std::size_t size) {
    const Driver& driver = Driver::get();
    const ContextGuard context(device.context());
    void* buffer = nullptr;
    driver.check(driver.api().cuMemHostAlloc(&buffer, sizes[size], CU_MEMHOSTALLOC_PORTABLE),
                 "allocating pinned memory for a copy");
    Pool& known = pool();
    const std::lock_guard lock(known.mutex);
    known.all[buffer] = size;
    known.free[size].reserve(known.all.size());  // giving it back allocates nothing
    return buffer;
}

void* take(Device device, std::size_t size) {
    {
        Pool& known = pool();
        const std::lock_guard lock(known.mutex);
        if (auto& free = known.free[size]; !free.empty()) {
            void* buffer = free.back();
            free.pop_back();
            return buffer;
        }
    }
    return make(device, size);
}

void give_back(void* const* buffers, std::size_t count) noexcept {
    Pool& known = pool();
    const std::lock_guard lock(known.mutex);
    for (std::size_t i = 0; i < count; ++i)
        known.free[known.all.find(buffers[i])->second].push_back(buffers[i]);
}

}  // namespace

Owner stage(const void* source, std::size_t bytes, Device device) {
    const std::size_t size = bytes <= sizes[0] ? 0 : 1;
    void* const buffer = take(device, size);
    std::memcpy(buffer, source, bytes);
    return {buffer, &give_back, sizes[size] * weight};
}

}  // namespace bascule
