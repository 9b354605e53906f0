#include "checks/order/clocks.hpp"

#include <algorithm>

namespace emulated::checks {
namespace {

constexpr std::size_t least_to_compact = 32;

}  // namespace

void Clock::see(Key key, std::uint32_t epoch) {
    const auto at = std::ranges::lower_bound(entries_, key, {}, &Entry::first);
    if (at != entries_.end() && at->first == key)
        at->second = std::max(at->second, epoch);
    else
        entries_.insert(at, {key, epoch});
}

void Clock::join(const Clock& other) {
    if (&other == this || other.entries_.empty()) return;
    if (entries_.empty()) {
        entries_ = other.entries_;
        return;
    }
    if (other.entries_.size() * 8 < entries_.size()) {
        for (const Entry& each : other.entries_) see(each.first, each.second);
        return;
    }
    std::vector<Entry> made;
    made.reserve(entries_.size() + other.entries_.size());
    auto a = entries_.cbegin(), b = other.entries_.cbegin();
    while (a != entries_.cend() && b != other.entries_.cend()) {
        if (a->first == b->first) {
            made.emplace_back(a->first, std::max(a->second, b->second));
            ++a;
            ++b;
        } else {
            made.push_back(a->first < b->first ? *a++ : *b++);
        }
    }
    made.insert(made.end(), a, entries_.cend());
    made.insert(made.end(), b, other.entries_.cend());
    entries_ = std::move(made);
}

std::uint32_t Clock::at(Key key) const noexcept {
    const auto found = std::ranges::lower_bound(entries_, key, {}, &Entry::first);
    return found != entries_.end() && found->first == key ? found->second : 0;
}

bool Clock::has(const ThreadId& thread, std::uint32_t epoch) const noexcept {
    if (entries_.empty()) return false;
    const Key block = key(thread.block), warp = block | warp_part(thread.warp);
    return at(block) >= epoch || at(warp) >= epoch || at(warp | (thread.lane + 1)) >= epoch;
}

void Clock::compact(std::uint32_t threads) {
    if (entries_.size() < least_to_compact) return;
    constexpr Key lanes = (Key{1} << lane_bits) - 1, warps = (Key{1} << block_shift) - 1;
    // Merges runs of entries that differ in the bits of `within` alone, if the run has `whole(parent)` entries, into their
    // parent, whose epoch is the smallest one in the run. Entries with a later epoch stay.
    const auto merge = [&](Key within, const auto& belongs, const auto& whole) {
        std::vector<Entry> made;
        for (std::size_t first = 0; first < entries_.size();) {
            const Key parent = entries_[first].first & ~within;
            std::size_t end = first;
            std::uint32_t count = 0, least = ~0u;
            for (; end < entries_.size() && (entries_[end].first & ~within) == parent; ++end) {
                if (!belongs(entries_[end].first)) continue;
                ++count;
                least = std::min(least, entries_[end].second);
            }
            const bool is_whole = count != 0 && count == whole(parent);
            const bool has_parent = entries_[first].first == parent;
            const std::uint32_t known =
                std::max(has_parent ? entries_[first].second : 0, is_whole ? least : 0);
            if (known != 0) made.emplace_back(parent, known);
            for (std::size_t i = first + (has_parent ? 1 : 0); i < end; ++i) {
                if (entries_[i].second > known) made.push_back(entries_[i]);
            }
            first = end;
        }
        entries_ = std::move(made);
    };
    merge(
        lanes, [](Key key) { return (key & lanes) != 0; },
        [&](Key warp) -> std::uint32_t {
            const auto index = static_cast<std::uint32_t>((warp & warps) >> lane_bits);
            return index == 0 ? 0 : std::min(32u, threads - 32 * (index - 1));
        });
    merge(
        warps, [](Key key) { return (key & warps) != 0 && (key & lanes) == 0; },
        [&](Key) { return (threads + 31) / 32; });
}

void Knowledge::join(const Knowledge& other) {
    seen.join(other.seen);
    for (std::size_t scope : {0, 1}) {
        fenced[scope].join(other.fenced[scope]);
        awaited[scope].join(other.awaited[scope]);
    }
}

void Knowledge::clear() noexcept {
    seen.clear();
    for (Clock& each : fenced) each.clear();
    for (Clock& each : awaited) each.clear();
}

void Knowledge::compact(std::uint32_t threads) {
    seen.compact(threads);
    for (Clock& each : fenced) each.compact(threads);
    for (Clock& each : awaited) each.compact(threads);
}

bool Knowledge::empty() const noexcept {
    const auto none = [](const Clock& clock) { return clock.empty(); };
    return seen.empty() && std::ranges::all_of(fenced, none) && std::ranges::all_of(awaited, none);
}

}  // namespace emulated::checks
