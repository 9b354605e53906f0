#include "memory/heap.hpp"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <deque>
#include <map>
#include <mutex>
#include <new>
#include <shared_mutex>
#include <sys/mman.h>
#include <unordered_map>
#include <vector>

#include <fmt/format.h>

#include "memory/address_space.hpp"
#include "memory/managed_hints.hpp"

namespace emulated::memory {
namespace {

constexpr std::uint64_t least_redzone = 256, most_redzone = 65536;
#if defined(__SANITIZE_THREAD__)
constexpr std::uint64_t least_window = std::uint64_t{2} << 30;  // ThreadSanitizer leaves few addresses
#else
constexpr std::uint64_t least_window = std::uint64_t{64} << 30;  // only addresses are reserved, not memory
#endif
constexpr std::uint64_t most_resident_quarantine = std::uint64_t{64} << 20;
constexpr std::size_t most_quarantined = 4096;
constexpr unsigned char freed_poison = 0xDB;  // fills freed memory until its range is reused

std::uint64_t round_up(std::uint64_t value, std::uint64_t to) noexcept { return (value + to - 1) / to * to; }

/// Two mappings of the same size: one gives addresses to kernels and cannot be accessed by the host, the other holds
/// the bytes.
class Window {
  public:
    explicit Window(std::uint64_t wanted) {
        for (bytes_ = wanted; bytes_ >= (std::uint64_t{1} << 28); bytes_ /= 2) {
            addresses_ = map(PROT_NONE);
            backing_ = map(PROT_READ | PROT_WRITE);
            if (addresses_ != MAP_FAILED && backing_ != MAP_FAILED) return;
            unmap();
        }
        throw std::bad_alloc();
    }
    ~Window() { unmap(); }
    Window(Window&&) = delete;

    DeviceAddress base() const noexcept { return reinterpret_cast<DeviceAddress>(addresses_); }
    std::uint64_t bytes() const noexcept { return bytes_; }
    std::byte* host(DeviceAddress address) const noexcept {
        return static_cast<std::byte*>(backing_) + (address - base());
    }

  private:
    void* map(int protection) const noexcept {
        return mmap(nullptr, bytes_, protection, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    }
    void unmap() noexcept {
        if (addresses_ != MAP_FAILED) munmap(addresses_, bytes_);
        if (backing_ != MAP_FAILED) munmap(backing_, bytes_);
    }

    std::uint64_t bytes_ = 0;
    void* addresses_ = MAP_FAILED;
    void* backing_ = MAP_FAILED;
};

struct Range {
    DeviceAddress base = 0;
    std::uint64_t bytes = 0;  ///< including the redzone
};

/// A freed range that is not reused yet. The Allocation object is kept too, because a kernel that runs while its memory is
/// freed may still have a pointer to it.
struct Freed {
    Range range;  ///< empty for memory outside the window
    std::unique_ptr<const Allocation> allocation;
    std::string name;
    Heap::FreedBy by = Heap::FreedBy::host;
    bool resident = false;  ///< its pages still exist
};

bool is_in_window(Allocation::Kind kind) noexcept {
    return kind != Allocation::Kind::pinned && kind != Allocation::Kind::managed;
}

/// Maps memory that host and kernels use at the same address. Returns null if out of memory.
std::byte* map_pages(std::uint64_t bytes) noexcept {
    if (bytes > UINT64_MAX - page_bytes) return nullptr;
    void* pages = mmap(nullptr, round_up(bytes, page_bytes), PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return pages == MAP_FAILED ? nullptr : static_cast<std::byte*>(pages);
}

/// The granularity of a GPU's mappings: each belongs to one context of one device.
constexpr std::uint64_t block_bytes = std::uint64_t{2} << 20;

bool has_blocks_of_its_own(const Allocation& allocation) noexcept {
    return allocation.space != 0 && allocation.space != Allocation::every_context;
}

/// The size in the window of an allocation and a redzone large enough that a stray row or block does not skip it.
std::uint64_t room_for(const Allocation& allocation) noexcept {
    const std::uint64_t bytes = allocation.bytes;
    const std::uint64_t redzone = std::clamp(round_up(bytes / 8, least_redzone), least_redzone, most_redzone);
    const std::uint64_t room = round_up(bytes, least_redzone) + redzone;
    return has_blocks_of_its_own(allocation) ? round_up(room, block_bytes) : room;
}

/// The range of an allocation in the window. Imported memory has the same offset in its first page as in the other process.
Range range_of(const Allocation& allocation) noexcept {
    if (!allocation.imported) return {allocation.base, room_for(allocation)};
    const DeviceAddress first = allocation.base / page_bytes * page_bytes;
    return {first, round_up(allocation.base - first + room_for(allocation), page_bytes)};
}

/// Splits the window among the devices. As on a GPU, no block of 2 MiB holds memory of two devices.
std::vector<AddressSpace> parts_of(const Window& window, int devices) {
    const DeviceAddress first = round_up(window.base() + page_bytes, block_bytes);
    const DeviceAddress end = window.base() + window.bytes();
    const std::uint64_t part =
        (end - first) / static_cast<std::uint64_t>(devices) / block_bytes * block_bytes;
    std::vector<AddressSpace> parts;
    parts.reserve(static_cast<std::size_t>(devices));
    for (int device = 0; device < devices; ++device) {
        parts.emplace_back(first + static_cast<std::uint64_t>(device) * part, part);
    }
    return parts;
}

}  // namespace

struct Heap::State {
    State(int devices, std::uint64_t wanted, ManagedGuard* managed_guard)
        : managed(managed_guard),
          window(std::max(least_window, static_cast<std::uint64_t>(devices) * wanted * 2)),
          free_ranges(parts_of(window, devices)),
          capacity(std::min(wanted, window.bytes() / 2 / static_cast<std::uint64_t>(devices))),
          used(static_cast<std::size_t>(devices), 0) {}

    ManagedGuard* const managed;  // may be null
    const Window window;
    Shadow shadow{window.base(), window.bytes()};
    SharedPages shared_pages;                                                  // of the window
    using Allocations = std::map<DeviceAddress, std::unique_ptr<Allocation>>;  // by base

    mutable std::shared_mutex mutex;  // guards the members below
    Allocations live, reserved, lost;
    std::atomic<std::size_t> lost_count{0};
    std::unordered_map<DeviceAddress, std::string> names;
    std::vector<AddressSpace> free_ranges;  // by device
    std::deque<Freed> quarantine;           // oldest first
    std::uint64_t quarantined = 0, quarantined_resident = 0;
    const std::uint64_t capacity;
    std::vector<std::uint64_t> used;
    std::uint64_t serial = 0;

    /// Allocates memory outside the window. Returns false if out of memory.
    bool map(Allocation& allocation) const {
        std::byte* for_host = nullptr;
        if (allocation.kind == Allocation::Kind::managed) allocation.hints = std::make_shared<ManagedHints>();
        if (managed != nullptr && allocation.kind == Allocation::Kind::managed) {
            const auto mapping = managed->map(round_up(allocation.bytes, page_bytes));
            for_host = mapping.for_host;
            allocation.host = mapping.for_kernels;
        } else {
            for_host = allocation.host = map_pages(allocation.bytes);
        }
        allocation.base = reinterpret_cast<DeviceAddress>(for_host);
        return for_host != nullptr;
    }
    void unmap(const Allocation& allocation) const noexcept {
        auto* const for_host = reinterpret_cast<std::byte*>(allocation.base);
        const std::uint64_t bytes = round_up(allocation.bytes, page_bytes);
        if (for_host == allocation.host) {
            munmap(allocation.host, bytes);
        } else {
            managed->unmap(for_host, allocation.host, bytes);
        }
    }
    /// Returns an allocation's bytes to the device, or unmaps its pages.
    void give_up(const Allocation& allocation) noexcept {
        if (is_in_window(allocation.kind)) {
            used[static_cast<std::size_t>(allocation.device)] -= allocation.bytes;
        } else {
            unmap(allocation);
        }
    }

    static const Allocation* containing(const Allocations& among, DeviceAddress address) noexcept {
        const auto after = among.upper_bound(address);
        if (after == among.begin()) return nullptr;
        const Allocation& before = *std::prev(after)->second;
        return address - before.base < before.bytes ? &before : nullptr;
    }
    const Allocation* containing(DeviceAddress address) const noexcept { return containing(live, address); }

    /// Assigns a range of the window. Returns false if the device is full.
    bool place(Allocation& allocation, std::uint64_t alignment) {
        std::uint64_t& device_used = used[static_cast<std::size_t>(allocation.device)];
        if (allocation.bytes > capacity || device_used > capacity - allocation.bytes) return false;
        AddressSpace& free = free_ranges[static_cast<std::size_t>(allocation.device)];
        const std::uint64_t least = has_blocks_of_its_own(allocation) ? block_bytes : 256;
        allocation.base = take_range(free, room_for(allocation), std::max(alignment, least));
        if (allocation.base == 0) return false;
        allocation.host = window.host(allocation.base);
        device_used += allocation.bytes;
        return true;
    }

    /// Takes an address range of the device's part; 0 if it is full. Reuses quarantined ranges when no others are left.
    DeviceAddress take_range(AddressSpace& free, std::uint64_t bytes, std::uint64_t alignment) {
        for (;;) {
            const DeviceAddress base = free.take(bytes, alignment);
            if (base != 0 || quarantine.empty()) return base;
            release_oldest();
        }
    }

    /// Fills fresh memory. Variables of modules are written by their load.
    void poison_bytes(const Allocation& allocation) const noexcept {
        std::memset(allocation.host, poison, allocation.bytes);
        if (allocation.kind == Allocation::Kind::module_global)
            shadow.define(allocation.base, allocation.bytes);
        else
            shadow.undefine(allocation.base, allocation.bytes);
    }

    /// Adds an allocation whose address is set. Returns its base.
    DeviceAddress add(Allocations& among, std::unique_ptr<Allocation> allocation) {
        allocation->serial = ++serial;
        const DeviceAddress base = allocation->base;
        among[base] = std::move(allocation);
        return base;
    }

    /// Quarantines an allocation with its name.
    void put_in_quarantine(std::unique_ptr<const Allocation> allocation, FreedBy by) {
        Freed freed;
        freed.by = by;
        if (const auto known = names.extract(allocation->base)) freed.name = std::move(known.mapped());
        if (is_in_window(allocation->kind)) {
            freed.range = range_of(*allocation);
            take_out(*allocation);
            freed.resident = !give_back_pages(freed.range);
        }
        freed.allocation = std::move(allocation);
        quarantined += freed.range.bytes;
        if (freed.resident) quarantined_resident += freed.range.bytes;
        quarantine.push_back(std::move(freed));
        while (quarantined > window.bytes() / 4 || quarantined_resident > most_resident_quarantine ||
               quarantine.size() > most_quarantined) {
            release_oldest();
        }
    }

    /// Ends the sharing of freed memory with other processes.
    void take_out(const Allocation& allocation) noexcept {
        std::byte* const first = window.host(window.base());
        if (allocation.imported) {
            const Range range = range_of(allocation);
            SharedPages::unmap(window.host(range.base), range.bytes);
        } else if (shared_pages.file() >= 0) {
            shared_pages.end_sharing(first, allocation.base - window.base(), allocation.bytes);
        }
    }

    void release_oldest() {
        const Freed& oldest = quarantine.front();
        quarantined -= oldest.range.bytes;
        if (oldest.resident) quarantined_resident -= oldest.range.bytes;
        if (oldest.range.bytes > 0) {
            const auto device = static_cast<std::size_t>(oldest.allocation->device);
            free_ranges[device].give(oldest.range.base, oldest.range.bytes);
        }
        quarantine.pop_front();
    }

    /// Returns the pages of a large range to the system. A small range keeps its pages, filled with poison; then
    /// returns false.
    bool give_back_pages(Range range) const noexcept {
        std::byte* host = window.host(range.base);
        if (range.bytes < 64 * page_bytes) {
            std::memset(host, freed_poison, range.bytes);
            return false;
        }
        const auto first = round_up(reinterpret_cast<std::uint64_t>(host), page_bytes);
        const auto last = (reinterpret_cast<std::uint64_t>(host) + range.bytes) / page_bytes * page_bytes;
        madvise(reinterpret_cast<void*>(first), last - first, MADV_DONTNEED);
        return true;
    }
};

Heap::Heap(int devices, std::uint64_t capacity, ManagedGuard* managed)
    : state_(std::make_unique<State>(devices, capacity, managed)) {}

Heap::~Heap() {
    for (const auto& [base, allocation] : state_->live) {
        if (!is_in_window(allocation->kind) && allocation->serial != 0) state_->unmap(*allocation);
    }
}

std::optional<DeviceAddress> Heap::allocate(int device, std::uint64_t bytes, Allocation::Kind kind,
                                            std::uint64_t alignment, std::uint64_t space) {
    State& state = *state_;
    auto allocation = std::make_unique<Allocation>(
        Allocation{.bytes = bytes, .kind = kind, .device = device, .space = space});
    if (is_in_window(kind)) {
        const std::unique_lock lock(state.mutex);
        if (!state.place(*allocation, alignment)) return std::nullopt;
    } else if (!state.map(*allocation)) {
        return std::nullopt;
    }
    state.poison_bytes(*allocation);  // without the lock: kernels look up addresses meanwhile
    const std::unique_lock lock(state.mutex);
    return state.add(state.live, std::move(allocation));
}

std::optional<DeviceAddress> Heap::reserve(int device, std::uint64_t bytes,
                                           std::shared_ptr<const PoolAccess> access, Allocation::Kind kind) {
    State& state = *state_;
    auto allocation = std::make_unique<Allocation>(Allocation{.bytes = bytes,
                                                              .kind = kind,
                                                              .device = device,
                                                              .space = Allocation::every_context,
                                                              .access = std::move(access)});
    const std::unique_lock lock(state.mutex);
    if (!(is_in_window(kind) ? state.place(*allocation, 512) : state.map(*allocation))) return std::nullopt;
    return state.add(state.reserved, std::move(allocation));
}

void Heap::keep(DeviceAddress address) {
    const std::unique_lock lock(state_->mutex);
    state_->reserved.at(address)->kept = true;
}

bool Heap::end_keeping(DeviceAddress address) {
    State& state = *state_;
    const std::unique_lock lock(state.mutex);
    if (const auto found = state.live.find(address); found != state.live.end()) {
        found->second->kept = false;
        return true;
    }
    auto found = state.reserved.extract(address);
    if (!found.empty()) {
        state.give_up(*found.mapped());
    } else {
        found = state.lost.extract(address);
        if (found.empty()) return false;
        --state.lost_count;
    }
    state.put_in_quarantine(std::move(found.mapped()), FreedBy::host);
    return false;
}

bool Heap::commit(DeviceAddress address) {
    State& state = *state_;
    const std::unique_lock lock(state.mutex);
    auto found = state.reserved.extract(address);
    if (found.empty()) return false;
    state.poison_bytes(*found.mapped());
    state.live.insert(std::move(found));
    return true;
}

bool Heap::free(DeviceAddress address, Allocation::Kind kind, FreedBy by) {
    State& state = *state_;
    const std::unique_lock lock(state.mutex);
    const bool is_lost = state.lost.contains(address);
    State::Allocations& among = is_lost ? state.lost : state.live;
    const auto found = among.find(address);
    if (found == among.end() || found->second->kind != kind || found->second->serial == 0) return false;
    std::unique_ptr<Allocation> allocation = std::move(found->second);
    among.erase(found);
    if (allocation->kept && !is_lost) {
        std::memset(allocation->host, freed_poison, allocation->bytes);
        state.reserved[address] = std::move(allocation);
        return true;
    }
    if (is_lost) {
        --state.lost_count;
    } else if (allocation->imported) {
        // The memory counts against the exporting process.
    } else {
        state.give_up(*allocation);
    }
    state.put_in_quarantine(std::move(allocation), by);
    return true;
}

void Heap::lose(DeviceAddress address) {
    State& state = *state_;
    const std::unique_lock lock(state.mutex);
    auto found = state.live.extract(address);
    if (found.empty()) found = state.reserved.extract(address);
    if (found.empty() || found.mapped()->kind != Allocation::Kind::device) return;
    if (!found.mapped()->imported)
        state.used[static_cast<std::size_t>(found.mapped()->device)] -= found.mapped()->bytes;
    state.lost.insert(std::move(found));
    ++state.lost_count;
}

bool Heap::is_lost(DeviceAddress address) const noexcept {
    if (state_->lost_count.load(std::memory_order_relaxed) == 0) return false;
    const std::shared_lock lock(state_->mutex);
    return State::containing(state_->lost, address) != nullptr;
}

std::optional<SharedPlace> Heap::share(DeviceAddress address) {
    State& state = *state_;
    const std::unique_lock lock(state.mutex);
    const auto found = state.live.find(address);
    if (found == state.live.end() || !is_in_window(found->second->kind) || found->second->imported)
        return std::nullopt;
    const Allocation& allocation = *found->second;
    const std::uint64_t offset = allocation.base - state.window.base();
    if (!state.shared_pages.share(state.window.host(state.window.base()), state.window.bytes(), offset,
                                  allocation.bytes)) {
        return std::nullopt;
    }
    state.shadow.define(allocation.base, allocation.bytes);  // other processes may write it
    return SharedPlace{state.shared_pages.file(), offset, allocation.bytes, allocation.serial};
}

std::optional<DeviceAddress> Heap::import(int device, const SharedPlace& place, std::uint64_t space,
                                          std::shared_ptr<const PoolAccess> access) {
    State& state = *state_;
    auto allocation = std::make_unique<Allocation>(Allocation{.base = place.offset % page_bytes,
                                                              .bytes = place.bytes,
                                                              .imported = true,
                                                              .device = device,
                                                              .space = space,
                                                              .access = std::move(access)});
    const std::uint64_t pages = round_up(allocation->base + place.bytes, page_bytes);
    const std::unique_lock lock(state.mutex);
    const Range room = range_of(*allocation);
    const DeviceAddress first =
        state.take_range(state.free_ranges[static_cast<std::size_t>(device)], room.bytes,
                         has_blocks_of_its_own(*allocation) ? block_bytes : page_bytes);
    if (first == 0) return std::nullopt;
    if (!SharedPages::map(place.file, place.offset - allocation->base, state.window.host(first), pages)) {
        state.free_ranges[static_cast<std::size_t>(device)].give(first, room.bytes);
        return std::nullopt;
    }
    allocation->base += first;
    allocation->host = state.window.host(allocation->base);
    state.shadow.define(allocation->base, allocation->bytes);
    return state.add(state.live, std::move(allocation));
}

bool Heap::register_host(void* host, std::uint64_t bytes, int device) {
    State& state = *state_;
    const std::unique_lock lock(state.mutex);
    const auto base = reinterpret_cast<DeviceAddress>(host);
    if (state.containing(base) != nullptr || state.containing(base + bytes - 1) != nullptr) return false;
    state.live[base] = std::make_unique<Allocation>(Allocation{.base = base,
                                                               .bytes = bytes,
                                                               .host = static_cast<std::byte*>(host),
                                                               .kind = Allocation::Kind::pinned,
                                                               .serial = 0,  // owned by the client
                                                               .device = device});
    return true;
}

bool Heap::unregister_host(void* host) {
    State& state = *state_;
    const std::unique_lock lock(state.mutex);
    const auto found = state.live.find(reinterpret_cast<DeviceAddress>(host));
    if (found == state.live.end() || found->second->serial != 0) return false;
    state.put_in_quarantine(std::move(found->second), FreedBy::host);
    state.live.erase(found);
    return true;
}

const Allocation* Heap::find(DeviceAddress address) const noexcept {
    const std::shared_lock lock(state_->mutex);
    return state_->containing(address);
}

const Allocation* Heap::find_known(DeviceAddress address) const noexcept {
    const std::shared_lock lock(state_->mutex);
    const Allocation* live = state_->containing(address);
    return live != nullptr ? live : State::containing(state_->reserved, address);
}

std::byte* Heap::host(DeviceAddress address, std::uint64_t bytes) const noexcept {
    const Allocation* allocation = find(address);
    if (allocation == nullptr || bytes > allocation->bytes - (address - allocation->base)) return nullptr;
    return allocation->host + (address - allocation->base);
}

bool Heap::is_device_address(DeviceAddress address) const noexcept {
    return address - state_->window.base() < state_->window.bytes();
}

void Heap::set_read_only(DeviceAddress address) {
    const std::unique_lock lock(state_->mutex);
    const auto found = state_->live.find(address);
    if (found != state_->live.end()) found->second->read_only = true;
}

void Heap::set_name(DeviceAddress address, std::string name) {
    const std::unique_lock lock(state_->mutex);
    if (state_->live.contains(address) || state_->reserved.contains(address))
        state_->names[address] = std::move(name);
}

Shadow& Heap::shadow() noexcept { return state_->shadow; }

std::uint64_t Heap::capacity(int) const noexcept { return state_->capacity; }

std::uint64_t Heap::used(int device) const noexcept {
    const std::shared_lock lock(state_->mutex);
    return state_->used[static_cast<std::size_t>(device)];
}

std::string Heap::describe(DeviceAddress address, std::uint64_t access_bytes) const {
    const State& state = *state_;
    const std::shared_lock lock(state.mutex);
    const auto called = [&](const Allocation& allocation) {
        const auto name = state.names.find(allocation.base);
        return fmt::format("the {}-byte allocation{}", allocation.bytes,
                           name == state.names.end() ? "" : " " + name->second);
    };
    if (const Allocation* inside = state.containing(address)) {
        const std::uint64_t offset = address - inside->base;
        if (access_bytes > inside->bytes - offset) {
            return fmt::format("{} bytes from byte {} on, which reaches past {}", access_bytes, offset,
                               called(*inside));
        }
        return fmt::format("at byte {} of {}", offset, called(*inside));
    }
    if (const Allocation* later = State::containing(state.reserved, address)) {
        return fmt::format("inside {}, {}", called(*later),
                           later->kept
                               ? "which a node of a graph allocates, and nothing orders that before this"
                               : "whose stream-ordered allocation (cuMemAllocAsync) nothing orders "
                                 "before this");
    }
    if (const Allocation* lost = State::containing(state.lost, address))
        return fmt::format("inside {}, which was lost when the device was reset", called(*lost));
    for (auto freed = state.quarantine.rbegin(); freed != state.quarantine.rend(); ++freed) {
        const bool was_ours = freed->allocation->serial != 0;  // registered memory stays with its owner
        if (was_ours && address - freed->allocation->base < freed->allocation->bytes) {
            return fmt::format("inside a freed {}-byte allocation{}{}", freed->allocation->bytes,
                               freed->name.empty() ? "" : " " + freed->name,
                               freed->by == FreedBy::stream
                                   ? ": a stream-ordered free (cuMemFreeAsync) came before this"
                                   : "");
        }
    }
    static constexpr std::uint64_t near = std::uint64_t{1} << 20;
    const auto after = state.live.upper_bound(address);
    const Allocation* before = after == state.live.begin() ? nullptr : std::prev(after)->second.get();
    const std::uint64_t past = before == nullptr ? near : address - (before->base + before->bytes);
    const std::uint64_t ahead = after == state.live.end() ? near : after->second->base - address;
    if (past < near && past <= ahead) {
        return past == 0 ? fmt::format("directly past {}", called(*before))
                         : fmt::format("{} bytes past {}", past, called(*before));
    }
    if (ahead < near) return fmt::format("{} bytes before {}", ahead, called(*after->second));
    return "no allocation is near";
}

}  // namespace emulated::memory
