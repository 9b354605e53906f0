// Vector clocks: which operations are known to precede something.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace emulated::races {

/// Identifies an operation: number `count` of its chain. A stream is a chain; each operation of a chain follows all earlier
/// ones.
struct Moment {
    std::uint64_t chain = 0;
    std::uint64_t count = 0;
};

/// For each chain, the last operation that is known to precede the clock's owner, such as a stream's next operation.
/// Nothing is known about chains that are not listed.
class VectorClock {
  public:
    std::uint64_t known_of(std::uint64_t chain) const noexcept {
        const auto found = find(chain);
        return found != entries_.end() && found->chain == chain ? found->count : 0;
    }
    bool covers(const Moment& moment) const noexcept { return known_of(moment.chain) >= moment.count; }
    bool empty() const noexcept { return entries_.empty(); }

    void learn(const Moment& moment) {
        const auto found = entries_.begin() + (find(moment.chain) - entries_.begin());
        if (found == entries_.end() || found->chain != moment.chain) {
            entries_.insert(found, moment);
        } else {
            found->count = std::max(found->count, moment.count);
        }
    }
    void learn(const VectorClock& other) {
        if (&other == this) return;
        for (const Moment& moment : other.entries_) learn(moment);
    }
    /// Removes entries that `other` covers.
    void leave_out(const VectorClock& other) {
        std::erase_if(entries_, [&](const Moment& moment) { return other.covers(moment); });
    }

  private:
    std::vector<Moment>::const_iterator find(std::uint64_t chain) const noexcept {
        return std::lower_bound(entries_.begin(), entries_.end(), chain,
                                [](const Moment& moment, std::uint64_t key) { return moment.chain < key; });
    }

    std::vector<Moment> entries_;  // by chain
};

}  // namespace emulated::races
