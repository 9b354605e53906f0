#include "races/access_log.hpp"

#include <algorithm>
#include <bit>

namespace emulated::races {
namespace {

/// Calls `change(word, mask)` for `count` bits from bit `first`.
template <class Change>
void for_words(std::uint64_t first, std::uint64_t count, const Change& change) {
    while (count > 0) {
        const std::uint64_t bit = first % 64, taken = std::min(count, 64 - bit);
        const std::uint64_t mask = taken == 64 ? ~std::uint64_t{0} : ((std::uint64_t{1} << taken) - 1) << bit;
        change(first / 64, mask);
        first += taken;
        count -= taken;
    }
}

}  // namespace

void Page::add(std::uint64_t first, std::uint64_t bytes, Access access) noexcept {
    Bits& bits = of[static_cast<std::size_t>(access)];
    for_words(first, bytes, [&](std::uint64_t word, std::uint64_t mask) { bits[word] |= mask; });
}

void Page::remove(std::uint64_t first, std::uint64_t bytes) noexcept {
    for (Bits& bits : of)
        for_words(first, bytes, [&](std::uint64_t word, std::uint64_t mask) { bits[word] &= ~mask; });
}

void Page::add(const Page& other) noexcept {
    for (std::size_t kind = 0; kind < of.size(); ++kind) {
        for (std::size_t word = 0; word < words; ++word) of[kind][word] |= other.of[kind][word];
    }
}

bool Page::empty() const noexcept {
    return std::all_of(of.begin(), of.end(), [](const Bits& bits) {
        return std::all_of(bits.begin(), bits.end(), [](std::uint64_t word) { return word == 0; });
    });
}

Page& AccessLog::page(std::uint64_t number) {
    Recent& recent = recent_[number % recent_.size()];
    if (recent.number != number) {
        std::unique_ptr<Page>& slot = pages_[number];
        if (slot == nullptr) slot = std::make_unique<Page>();
        recent = {number, slot.get()};
    }
    return *recent.page;
}

void AccessLog::add(std::uint64_t address, std::uint64_t bytes, Access access) {
    for_pages(address, bytes, [&](std::uint64_t number, std::uint64_t first, std::uint64_t taken) {
        page(number).add(first, taken, access);
    });
}

void AccessLog::add_lanes(const std::uint64_t* addresses, std::uint32_t mask, std::uint64_t bytes,
                          Access access, std::uint64_t skip, std::uint64_t skip_end) {
    for (; mask != 0; mask &= mask - 1) {
        const std::uint64_t address = addresses[__builtin_ctz(mask)];
        if (address >= skip && address < skip_end) continue;
        add(address, bytes, access);
    }
}

void AccessLog::remove(std::uint64_t address, std::uint64_t bytes) {
    for_pages(address, bytes, [&](std::uint64_t number, std::uint64_t first, std::uint64_t taken) {
        const auto found = pages_.find(number);
        if (found != pages_.end()) found->second->remove(first, taken);
    });
}

void AccessLog::take(AccessLog& other) {
    for (auto& [number, page] : other.pages_) {
        std::unique_ptr<Page>& mine = pages_[number];
        if (mine == nullptr) {
            mine = std::move(page);
        } else {
            mine->add(*page);
        }
    }
    other.clear();
}

void AccessLog::clear() {
    pages_.clear();
    recent_.fill({});
}

std::uint64_t AccessLog::written_bytes() const noexcept {
    std::uint64_t bytes = 0;
    for (const auto& [number, page] : pages_) {
        const Page::Bits& plain = page->of[static_cast<std::size_t>(Access::write)];
        const Page::Bits& strong = page->of[static_cast<std::size_t>(Access::strong_write)];
        for (std::size_t word = 0; word < Page::words; ++word)
            bytes += static_cast<std::uint64_t>(std::popcount(plain[word] | strong[word]));
    }
    return bytes;
}

}  // namespace emulated::races
