// Pinning costs more than most copies, so buffers of a few sizes are used again.
#include <algorithm>
#include <array>
#include <cstring>
#include <mutex>
#include <unordered_map>
#include <utility>
#include <vector>

#include <bascule/jit/process/never_destroyed.hpp>
#include <bascule/runtime/driver/driver.hpp>
#include <bascule/runtime/driver/program_lock.hpp>
#include <bascule/runtime/memory/staging.hpp>
#include <bascule/runtime/streams/observer.hpp>

namespace bascule {
namespace {

constexpr std::array<std::size_t, 4> sizes = {std::size_t{16} << 10, std::size_t{64} << 10,
                                              std::size_t{256} << 10, most_staged_bytes};

/// A buffer counts for so many times its size where the bytes are counted that a stream holds, so that a marker follows
/// every fourth large one and tells soon that it may be used again: a GPU's driver takes 1.4 ms to make one.
constexpr std::size_t weight = 16;

struct Buffer {
    std::size_t size;  // which of `sizes`
    Device device;     // in whose context it was made
};

/// As many buffers are made as are ever pending at once, which owner queues bound: waiting for one instead would hang a
/// program whose kernel waits for what the host does after the copies. What exceeds `most_kept_staging_bytes` is freed when
/// the device was synchronised, and no earlier, because cuMemFreeHost waits for the device.
struct Pool {
    std::mutex mutex;
    std::array<std::vector<void*>, sizes.size()> free;  // with room for all there are
    std::unordered_map<void*, Buffer> all;
    std::size_t bytes = 0;  // of all
};

/// Never destroyed: copies may be pending at exit.
Pool& pool() { return never_destroyed<Pool>(); }

/// A buffer that may be freed, where too much is kept; else null.
void* take_surplus(Device device) noexcept {
    Pool& known = pool();
    const std::lock_guard lock(known.mutex);
    if (known.bytes <= most_kept_staging_bytes) return nullptr;
    for (std::size_t size = sizes.size(); size-- > 0;) {  // the largest first
        auto& free = known.free[size];
        const auto found = std::ranges::find_if(
            free, [&](void* buffer) { return known.all.find(buffer)->second.device == device; });
        if (found == free.end()) continue;
        void* const buffer = std::exchange(*found, free.back());
        free.pop_back();
        const auto entry = known.all.find(buffer);
        known.bytes -= sizes[entry->second.size];
        known.all.erase(entry);
        return buffer;
    }
    return nullptr;
}

void free_surplus(Device device, KeptMark, bool lost) noexcept {
    if (lost || Driver::lost_by_fork()) return;
    void* buffer = take_surplus(device);
    if (buffer == nullptr) return;
    end_in_context(device, [&](const Driver& driver) {
        for (; buffer != nullptr; buffer = take_surplus(device))
            driver.report(driver.api().cuMemFreeHost(buffer), "freeing pinned memory of a copy");
    });
}

constexpr StreamObserver staging_observer{.device_finished = &free_surplus};

void* make_buffer(Device device, std::size_t size) {
    set_stream_observer(ObservingPart::staging, staging_observer);
    const Driver& driver = Driver::get();
    const ContextGuard context(device.context());
    void* buffer = nullptr;
    driver.check(driver.api().cuMemHostAlloc(&buffer, sizes[size], CU_MEMHOSTALLOC_PORTABLE),
                 "allocating pinned memory for a copy");
    Pool& known = pool();
    const std::lock_guard lock(known.mutex);
    known.all.emplace(buffer, Buffer{size, device});
    known.bytes += sizes[size];
    known.free[size].reserve(known.all.size());  // giving it back allocates nothing
    return buffer;
}

void* take_buffer(Device device, std::size_t size) {
    {
        Pool& known = pool();
        const std::lock_guard lock(known.mutex);
        if (auto& free = known.free[size]; !free.empty()) {
            void* buffer = free.back();
            free.pop_back();
            return buffer;
        }
    }
    return make_buffer(device, size);
}

void give_back_buffers(void* const* buffers, std::size_t count) noexcept {
    Pool& known = pool();
    const std::lock_guard lock(known.mutex);
    for (std::size_t i = 0; i < count; ++i)
        known.free[known.all.find(buffers[i])->second.size].push_back(buffers[i]);
}

}  // namespace

Owner stage(const void* source, std::size_t bytes, Device device) {
    const auto size = static_cast<std::size_t>(std::ranges::lower_bound(sizes, bytes) - sizes.begin());
    void* const buffer = take_buffer(device, size);
    std::memcpy(buffer, source, bytes);
    return {buffer, &give_back_buffers, sizes[size] * weight};
}

}  // namespace bascule
