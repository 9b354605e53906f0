// Pinning memory costs more than most copies, so buffers of a few sizes are reused.
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

/// A buffer counts as this many times its size towards `bytes_a_marker`. So a marker follows every fourth buffer of the
/// largest size and soon reports that it can be reused. A GPU's driver takes 1.4 ms to allocate one.
constexpr std::size_t weight = 16;

struct Buffer {
    std::size_t size;  // index into `sizes`
    Device device;     // whose context it was made in
};

/// There are as many buffers as copies pending at once, which the owner queues limit. Waiting for a buffer instead would hang
/// a program whose kernel waits for something that the host does after the copies. Buffers beyond `most_kept_staging_bytes`
/// are freed when the device has been synchronized, because cuMemFreeHost waits for the device.
struct Pool {
    std::mutex mutex;
    std::array<std::vector<void*>, sizes.size()> free;  // has capacity for all buffers
    std::unordered_map<void*, Buffer> all;
    std::size_t bytes = 0;  // of all buffers
};

/// Never destroyed, because copies may be pending at exit.
Pool& pool() { return never_destroyed<Pool>(); }

/// Removes and returns a buffer that should be freed, or null.
void* take_surplus(Device device) noexcept {
    Pool& known = pool();
    const std::lock_guard lock(known.mutex);
    if (known.bytes <= most_kept_staging_bytes) return nullptr;
    for (std::size_t size = sizes.size(); size-- > 0;) {  // largest first
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
    known.free[size].reserve(known.all.size());  // so that returning a buffer allocates nothing
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

void recycle_buffers(void* const* buffers, std::size_t count) noexcept {
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
    return {buffer, &recycle_buffers, sizes[size] * weight};
}

}  // namespace bascule
