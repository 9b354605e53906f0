// The state that all look-ups of a cache share. Private to this folder.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include <bascule/jit/compile/nvrtc.hpp>
#include <bascule/jit/lookup/disk_cache.hpp>
#include <bascule/jit/lookup/memory_cache.hpp>
#include <bascule/jit/lookup/origin.hpp>
#include <bascule/jit/lookup/single_flight.hpp>

namespace bascule {

/// What a Cache consists of. Thread-safe. Its functions are in cache.cpp.
struct CacheState {
    CacheState(ToolkitLocation location, CachePlace place, CacheLimit limit);

    void count(Origin origin) noexcept {
        counts[static_cast<std::size_t>(origin)].fetch_add(1, std::memory_order_relaxed);
    }
    std::uint64_t count_of(Origin origin) const noexcept {
        return counts[static_cast<std::size_t>(origin)].load(std::memory_order_relaxed);
    }

    void warn(const std::string& text);
    /// Passes on the warnings that `disk` gave on compile threads, so that the program gets them on the thread that asked.
    void warn_of_compile_threads();

    MemoryCache memory;
    DiskCache disk;
    SingleFlight flights;

    std::mutex nvrtc_mutex;
    ToolkitLocation toolkit;  // guarded by nvrtc_mutex, as are the next two
    DriverLimit driver_limit;
    std::shared_ptr<const Nvrtc> nvrtc;  // null: not loaded yet

    std::vector<std::string> postponed;  // guarded by fork_safe_mutex(), as is the next
    DiskCache::WarningHandler handler;
    std::array<std::atomic<std::uint64_t>, 3> counts{};  // by Origin
};

}  // namespace bascule
