#include "machine/warpgroups.hpp"

#include <algorithm>
#include <cstring>

#include "machine/transfers.hpp"

namespace emulated::machine {
namespace {

constexpr std::uint32_t none = ~0u;
constexpr std::size_t register_bytes = 128;  // 32 lanes of 32 bits

}  // namespace

void WarpgroupProducts::clear() noexcept {
    waiting_.clear();
    for (Sums& sums : sums_) sums.outstanding = 0;
    std::ranges::fill(owners_, 0u);
    committed_ = 0;
    fenced = false;
    products = 0;
}

std::uint32_t& WarpgroupProducts::owner(std::uint32_t place) {
    const std::size_t slot = place / 64;
    if (slot >= owners_.size()) owners_.resize(slot + 1, 0);
    return owners_[slot];
}

void WarpgroupProducts::own(std::uint32_t sums, Place place) {
    owner(place.at) = (sums + 1) << 16 | place.index;
    sums_[sums].places.push_back(place);
}

// The index of the outstanding sums that these registers stand for. `none` if there are none, or if their type or shape
// is not that of the product's D.
std::uint32_t WarpgroupProducts::find(const program::Product& product, const std::uint32_t* places,
                                      std::uint32_t count) {
    const std::uint32_t first = owner(places[0]);
    if (first == 0) return none;
    const std::uint32_t found = (first >> 16) - 1;
    const Sums& sums = sums_[found];
    if (sums.outstanding == 0 || sums.product.d != product.d || sums.product.columns != product.columns)
        return none;
    for (std::uint32_t i = 0; i < count; ++i) {
        if (owner(places[i]) != ((found + 1) << 16 | i)) return none;
    }
    return found;
}

WarpgroupProduct& WarpgroupProducts::begin(const WarpgroupArithmetic& arithmetic,
                                           const program::Product& product, bool adds, std::byte* registers,
                                           const std::uint32_t* places, std::uint32_t count) {
    ++products;
    std::uint32_t at = find(product, places, count);
    if (at == none) {
        const auto unused = std::ranges::find(sums_, 0u, &Sums::outstanding);
        at = static_cast<std::uint32_t>(unused - sums_.begin());
        if (unused == sums_.end()) sums_.emplace_back();
        Sums& made = sums_[at];
        made.arithmetic = &arithmetic;
        made.product = product;
        made.blocks.resize(std::size_t{product.rows} * product.columns * 4);  // 64 elements of 32 bits
        for (std::uint32_t i = 0; adds && i < count; ++i)
            arithmetic.load(i, product.d == program::Type::f16, registers + places[i], made.blocks.data());
        for (std::uint32_t i = 0; i < count; ++i)
            std::memset(registers + places[i], poison_byte, register_bytes);
    }
    // Only these registers receive the result; copies of an intermediate result stay poison.
    Sums& sums = sums_[at];
    for (const Place& place : sums.places) {
        if (owner(place.at) == ((at + 1) << 16 | place.index)) owner(place.at) = 0;
    }
    sums.places.clear();
    for (std::uint32_t i = 0; i < count; ++i) own(at, {places[i], i});
    ++sums.outstanding;
    WarpgroupProduct& made = waiting_.emplace_back();
    made.product = product;
    made.adds = adds;
    made.group = committed_;
    made.sums = at;
    return made;
}

void WarpgroupProducts::wait(std::uint32_t recent, std::byte* registers, const std::byte* shared) {
    if (recent >= committed_) return;
    const std::uint32_t end = committed_ - recent;
    std::size_t done = 0;
    for (; done < waiting_.size() && waiting_[done].group < end; ++done) {
        const WarpgroupProduct& product = waiting_[done];
        Sums& sums = sums_[product.sums];
        sums.arithmetic->multiply(product, shared, sums.blocks.data());
        if (--sums.outstanding == 0) write(product.sums, registers);
    }
    waiting_.erase(waiting_.begin(), waiting_.begin() + static_cast<std::ptrdiff_t>(done));
}

// Writes the results to the registers that still stand for them.
void WarpgroupProducts::write(std::uint32_t at, std::byte* registers) {
    const Sums& sums = sums_[at];
    for (const Place& place : sums.places) {
        std::uint32_t& now = owner(place.at);
        if (now != ((at + 1) << 16 | place.index)) continue;
        const bool halves = sums.product.d == program::Type::f16;
        sums.arithmetic->store(place.index, halves, sums.blocks.data(), registers + place.at);
        now = 0;
    }
}

void WarpgroupProducts::copy(std::uint32_t to, std::uint32_t from) {
    const std::uint32_t source = owner(from);
    owner(to) = 0;
    if (source != 0) own((source >> 16) - 1, {to, source & 0xffffu});
}

}  // namespace emulated::machine
