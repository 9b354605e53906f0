// A client's hints about managed memory, by page: preferred locations, accessing processors, and prefetches.
#pragma once

#include <cstdint>
#include <iterator>
#include <map>
#include <mutex>
#include <vector>

#include "memory/memory.hpp"

namespace emulated::memory {

/// The hints of one allocation, which starts at a page boundary. Thread-safe.
class ManagedHints {
  public:
    /// A location with the values of CUmemLocation; zero if not set.
    struct Location {
        int type = 0, id = 0;
        bool operator==(const Location&) const = default;
    };
    struct Hints {
        bool read_mostly = false;
        Location preferred, prefetched;
        std::uint64_t accessed_by = 0;  ///< one bit per processor
    };

    /// Changes the hints of a range. "The start address and end address of the memory range will be rounded down and
    /// rounded up respectively to be aligned to CPU page size".
    template <class Change>
    void change(std::uint64_t offset, std::uint64_t bytes, const Change& change) {
        const std::lock_guard lock(mutex_);
        const auto first = begin_at(offset / page_bytes);
        const auto last = begin_at((offset + bytes + page_bytes - 1) / page_bytes);
        for (auto piece = first; piece != last; ++piece) change(piece->second);
    }
    /// The hints of a range: one entry for each piece of it, in the order of addresses.
    std::vector<Hints> of(std::uint64_t offset, std::uint64_t bytes) const {
        const std::lock_guard lock(mutex_);
        std::vector<Hints> found;
        auto piece = std::prev(pieces_.upper_bound(offset / page_bytes));
        for (; piece != pieces_.end() && piece->first * page_bytes < offset + bytes; ++piece)
            found.push_back(piece->second);
        return found;
    }

  private:
    using Pieces = std::map<std::uint64_t, Hints>;  // by first page; a piece extends to the next one

    Pieces::iterator begin_at(std::uint64_t page) {
        const auto before = std::prev(pieces_.upper_bound(page));
        return before->first == page ? before : pieces_.emplace_hint(std::next(before), page, before->second);
    }

    mutable std::mutex mutex_;
    Pieces pieces_{{0, {}}};
};

}  // namespace emulated::memory
