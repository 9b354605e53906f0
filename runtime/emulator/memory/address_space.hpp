// The free address ranges of a window.
#pragma once

#include <cstdint>
#include <iterator>
#include <map>
#include <set>
#include <utility>

namespace emulated::memory {

/// Allocates ranges of addresses. Adjacent free ranges are merged. Not thread-safe.
class AddressSpace {
  public:
    AddressSpace(std::uint64_t base, std::uint64_t bytes) { give(base, bytes); }

    /// Takes `bytes` (not 0), aligned to `alignment`, a power of two, from the smallest free range that fits. Returns 0 if
    /// none does.
    std::uint64_t take(std::uint64_t bytes, std::uint64_t alignment) {
        for (auto fit = by_size_.lower_bound({bytes, 0}); fit != by_size_.end(); ++fit) {
            const auto [size, base] = *fit;
            const std::uint64_t start = (base + alignment - 1) & ~(alignment - 1);
            if (start - base > size - bytes) continue;
            remove(base, size);
            if (start != base) insert(base, start - base);
            if (base + size != start + bytes) insert(start + bytes, base + size - (start + bytes));
            return start;
        }
        return 0;
    }

    void give(std::uint64_t base, std::uint64_t bytes) {
        auto after = by_base_.lower_bound(base);
        if (after != by_base_.end() && after->first == base + bytes) {
            const auto [next, size] = *after;
            remove(next, size);
            bytes += size;
            after = by_base_.lower_bound(base);
        }
        if (after != by_base_.begin()) {
            const auto [before, size] = *std::prev(after);
            if (before + size == base) {
                remove(before, size);
                base = before;
                bytes += size;
            }
        }
        insert(base, bytes);
    }

  private:
    void insert(std::uint64_t base, std::uint64_t bytes) {
        by_base_[base] = bytes;
        by_size_.emplace(bytes, base);
    }
    void remove(std::uint64_t base, std::uint64_t bytes) {
        by_base_.erase(base);
        by_size_.erase({bytes, base});
    }

    std::map<std::uint64_t, std::uint64_t> by_base_;
    std::set<std::pair<std::uint64_t, std::uint64_t>> by_size_;
};

}  // namespace emulated::memory
