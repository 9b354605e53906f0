#include "memory/heap.hpp"

#include <algorithm>
#include <cstdlib>
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

namespace emulated::memory {
namespace {

constexpr std::uint64_t redzone_bytes = 256;
constexpr std::uint64_t quarantine_bytes = std::uint64_t{64} << 20;
constexpr std::uint64_t page_bytes = 4096;
constexpr unsigned char poison = 0xCB;        // fresh memory
constexpr unsigned char freed_poison = 0xDB;  // freed memory, until its range is used again

std::uint64_t round_up(std::uint64_t value, std::uint64_t to) noexcept { return (value + to - 1) / to * to; }

/// Two mappings of one size: addresses that kernels use, which the host cannot touch, and the bytes behind
/// them.
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
    Window(const Window&) = delete;
    Window& operator=(const Window&) = delete;

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
    std::uint64_t bytes = 0;  ///< redzone included
};

struct Freed {
    Range range;
    std::uint64_t bytes = 0;  ///< as they were asked for
    std::string name;
};

}  // namespace

struct Heap::State {
    State(int devices, std::uint64_t capacity_bytes)
        : window(std::max<std::uint64_t>(std::uint64_t{64} << 30, capacity_bytes * 2)),
          next(window.base() + round_up(page_bytes, 1)),
          capacity(capacity_bytes),
          used(static_cast<std::size_t>(devices), 0) {}

    Window window;
    mutable std::shared_mutex mutex;
    std::map<DeviceAddress, std::unique_ptr<Allocation>> live;  // by base
    std::unordered_map<DeviceAddress, std::string> names;
    std::deque<Freed> quarantine;  // oldest first
    std::uint64_t quarantined = 0;
    std::multimap<std::uint64_t, DeviceAddress> reusable;  // whole ranges by size
    DeviceAddress next;                                    // never given out from here on
    std::uint64_t capacity;
    std::vector<std::uint64_t> used;
    std::uint64_t serial = 0;

    const Allocation* containing(DeviceAddress address) const noexcept {
        auto after = live.upper_bound(address);
        if (after == live.begin()) return nullptr;
        const Allocation& before = *std::prev(after)->second;
        return address - before.base < before.bytes ? &before : nullptr;
    }

    /// Room for `bytes` in the window; 0 when it is full.
    DeviceAddress take_range(std::uint64_t bytes, std::uint64_t alignment) {
        for (auto entry = reusable.lower_bound(bytes); entry != reusable.end() && entry->first <= 2 * bytes;
             ++entry) {
            if (entry->second % alignment != 0) continue;
            const DeviceAddress base = entry->second;
            reusable.erase(entry);
            return base;
        }
        const DeviceAddress base = round_up(next, alignment);
        if (base + bytes > window.base() + window.bytes()) return 0;
        next = base + bytes;
        return base;
    }

    void put_in_quarantine(const Allocation& allocation, std::string name) {
        const Range range{allocation.base, round_up(allocation.bytes, redzone_bytes) + redzone_bytes};
        give_back_pages(range);
        quarantine.push_back({range, allocation.bytes, std::move(name)});
        quarantined += range.bytes;
        while (quarantined > quarantine_bytes || quarantine.size() > 4096) {
            const Range oldest = quarantine.front().range;
            reusable.emplace(oldest.bytes, oldest.base);
            quarantined -= oldest.bytes;
            quarantine.pop_front();
        }
    }

    /// Freed bytes read as poison; whole pages of big ranges go back to the system instead and read as zero.
    void give_back_pages(Range range) const noexcept {
        std::byte* host = window.host(range.base);
        if (range.bytes < 64 * page_bytes) {
            std::memset(host, freed_poison, range.bytes);
            return;
        }
        const auto first = round_up(reinterpret_cast<std::uint64_t>(host), page_bytes);
        const auto last = (reinterpret_cast<std::uint64_t>(host) + range.bytes) / page_bytes * page_bytes;
        madvise(reinterpret_cast<void*>(first), last - first, MADV_DONTNEED);
    }
};

Heap::Heap(int devices, std::uint64_t capacity) : state_(std::make_unique<State>(devices, capacity)) {}

Heap::~Heap() {
    for (const auto& [base, allocation] : state_->live) {
        const bool ours =
            allocation->kind == Allocation::Kind::pinned || allocation->kind == Allocation::Kind::managed;
        if (ours && allocation->serial != 0) std::free(allocation->host);
    }
}

std::optional<DeviceAddress> Heap::allocate(int device, std::uint64_t bytes, Allocation::Kind kind,
                                            std::uint64_t alignment) {
    State& state = *state_;
    const std::unique_lock lock(state.mutex);
    std::uint64_t& used = state.used[static_cast<std::size_t>(device)];
    if (bytes > state.capacity || used > state.capacity - bytes) return std::nullopt;

    auto allocation = std::make_unique<Allocation>();
    allocation->bytes = bytes;
    allocation->kind = kind;
    allocation->device = device;
    if (kind == Allocation::Kind::pinned || kind == Allocation::Kind::managed) {
        const std::uint64_t aligned = std::max(alignment, page_bytes);
        allocation->host = static_cast<std::byte*>(std::aligned_alloc(aligned, round_up(bytes, aligned)));
        if (allocation->host == nullptr) return std::nullopt;
        allocation->base = reinterpret_cast<DeviceAddress>(allocation->host);
    } else {
        const std::uint64_t whole = round_up(bytes, redzone_bytes) + redzone_bytes;
        allocation->base = state.take_range(whole, std::max<std::uint64_t>(alignment, 256));
        if (allocation->base == 0) return std::nullopt;
        allocation->host = state.window.host(allocation->base);
    }
    std::memset(allocation->host, poison, bytes);
    allocation->serial = ++state.serial;
    used += bytes;
    const DeviceAddress base = allocation->base;
    state.live[base] = std::move(allocation);
    return base;
}

bool Heap::free(DeviceAddress address, Allocation::Kind kind) {
    State& state = *state_;
    const std::unique_lock lock(state.mutex);
    const auto found = state.live.find(address);
    if (found == state.live.end() || found->second->kind != kind) return false;
    const Allocation& allocation = *found->second;
    std::string name;
    if (const auto known = state.names.find(address); known != state.names.end()) {
        name = std::move(known->second);
        state.names.erase(known);
    }
    state.used[static_cast<std::size_t>(allocation.device)] -= allocation.bytes;
    if (kind == Allocation::Kind::pinned || kind == Allocation::Kind::managed) {
        std::free(allocation.host);
    } else {
        state.put_in_quarantine(allocation, std::move(name));
    }
    state.live.erase(found);
    return true;
}

bool Heap::register_host(void* host, std::uint64_t bytes, int device) {
    State& state = *state_;
    const std::unique_lock lock(state.mutex);
    const auto base = reinterpret_cast<DeviceAddress>(host);
    if (state.containing(base) != nullptr || state.containing(base + bytes - 1) != nullptr) return false;
    auto allocation = std::make_unique<Allocation>();
    allocation->base = base;
    allocation->bytes = bytes;
    allocation->host = static_cast<std::byte*>(host);
    allocation->kind = Allocation::Kind::pinned;
    allocation->device = device;
    allocation->serial = 0;  // registered, not ours to free
    state.live[base] = std::move(allocation);
    return true;
}

bool Heap::unregister_host(void* host) {
    State& state = *state_;
    const std::unique_lock lock(state.mutex);
    const auto found = state.live.find(reinterpret_cast<DeviceAddress>(host));
    if (found == state.live.end() || found->second->serial != 0) return false;
    state.live.erase(found);
    return true;
}

const Allocation* Heap::find(DeviceAddress address) const noexcept {
    const std::shared_lock lock(state_->mutex);
    return state_->containing(address);
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
    if (state_->live.contains(address)) state_->names[address] = std::move(name);
}

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
                           name == state.names.end() ? "" : fmt::format(" '{}'", name->second));
    };
    if (const Allocation* inside = state.containing(address)) {
        const std::uint64_t offset = address - inside->base;
        if (access_bytes > inside->bytes - offset) {
            return fmt::format("{} bytes from byte {} on, which reaches past {}", access_bytes, offset,
                               called(*inside));
        }
        return fmt::format("at byte {} of {}", offset, called(*inside));
    }
    for (auto freed = state.quarantine.rbegin(); freed != state.quarantine.rend(); ++freed) {
        if (address - freed->range.base < freed->bytes) {
            return fmt::format("inside a freed {}-byte allocation{}", freed->bytes,
                               freed->name.empty() ? "" : fmt::format(" '{}'", freed->name));
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
