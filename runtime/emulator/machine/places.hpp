// Translates one lane's address into a host address. Each file that includes it compiles its own copy, for its instruction
// set.
#pragma once

#include <cstdint>

#include "machine/lanes.hpp"

namespace emulated::machine {

/// The host address of `bytes` at `offset` in the window of shared memory, in another block of the cluster. Null if there
/// is no such memory or that block has ended.
std::byte* place_in_cluster(const Lanes& s, std::uint64_t offset, std::uint64_t bytes) noexcept;

namespace {

enum class Space : std::uint8_t { generic, global, shared, local, param };

constexpr const char* name_of(Space space) {
    constexpr const char* names[] = {"generic", "global", "shared", "local", "param"};
    return names[static_cast<unsigned>(space)];
}

[[maybe_unused]] void remember(AllocationCache& cache, const memory::Allocation& found) {
    cache.base = found.base;
    cache.bytes = found.bytes;
    cache.host = found.host;
    cache.read_only = found.read_only;
}

// The host address for a lane's address; 0 if it is invalid or cannot be written. `lane` selects the thread's local
// memory.
[[maybe_unused]] std::uint64_t place_of(Lanes& s, Space space, unsigned lane, std::uint64_t address,
                                        std::uint32_t access, bool write, bool& read_only) {
    const auto window = [&](std::uint64_t start, std::uint64_t bytes,
                            const std::byte* host) -> std::uint64_t {
        const std::uint64_t offset = address - start;
        if (offset > bytes || bytes - offset < access) return 0;
        return reinterpret_cast<std::uint64_t>(host) + offset;
    };
    const bool generic = space == Space::generic;
    if (space == Space::shared || (generic && address - program::shared_window < program::window_bytes)) {
        const std::uint64_t own = window(program::shared_window, s.shared_bytes, s.shared);
        if (own != 0 || !generic) return own;
        return reinterpret_cast<std::uint64_t>(place_in_cluster(s, address - program::shared_window, access));
    }
    if (space == Space::local || (generic && address - program::local_window < program::window_bytes)) {
        return window(program::local_window, s.local_bytes, s.local + lane * s.local_bytes);
    }
    if (space == Space::param || (generic && address - program::param_window < program::window_bytes)) {
        if (write) {
            read_only = true;
            return 0;
        }
        return window(program::param_window, s.parameter_bytes, s.parameters);
    }
    const memory::Allocation* found = s.memory->find(address);
    if (!found) return 0;
    const std::uint64_t place = window(found->base, found->bytes, found->host);
    if (place == 0 || !write || !found->read_only) return place;
    read_only = true;
    return 0;
}

}  // namespace
}  // namespace emulated::machine
