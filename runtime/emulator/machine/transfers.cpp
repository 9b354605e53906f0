#include "machine/transfers.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "machine/mbarrier.hpp"

namespace emulated::machine {

// --- cp.async ----------------------------------------------------------------------------------------------

LaneCopies::Copy& LaneCopies::add(std::uint32_t lanes, std::uint32_t bytes) {
    Copy& made = copies_.emplace_back();
    made.lanes = lanes;
    made.bytes = bytes;
    made.group = committed_;
    return made;
}

void LaneCopies::commit(std::uint32_t lanes) noexcept {
    for (; lanes != 0; lanes &= lanes - 1) ++committed_[static_cast<unsigned>(__builtin_ctz(lanes))];
}

void LaneCopies::perform(Copy& copy, unsigned lane) noexcept {
    std::byte* to = copy.to[lane];
    const std::uint32_t valid = copy.valid[lane];
    if (valid != 0) std::memcpy(to, copy.from[lane], valid);
    std::memset(to + valid, 0, copy.bytes - valid);
    copy.lanes &= ~(1u << lane);
}

void LaneCopies::wait(unsigned lane, std::uint32_t recent) noexcept {
    const std::uint32_t committed = committed_[lane];
    if (recent > committed) return;
    for (Copy& copy : copies_) {
        if ((copy.lanes >> lane & 1) != 0 && copy.group[lane] < committed - recent) perform(copy, lane);
    }
    forget_done();
}

void LaneCopies::finish(std::uint32_t lanes) noexcept {
    for (; lanes != 0; lanes &= lanes - 1)
        finish_before(static_cast<unsigned>(__builtin_ctz(lanes)), issued());
}

void LaneCopies::finish_before(unsigned lane, std::uint64_t end) noexcept {
    for (std::size_t i = 0; i < copies_.size() && forgotten_ + i < end; ++i) {
        if ((copies_[i].lanes >> lane & 1) != 0) perform(copies_[i], lane);
    }
    forget_done();
}

// Removes completed copies from the front only, so that the other copies keep their numbers.
void LaneCopies::forget_done() noexcept {
    const auto first = std::ranges::find_if(copies_, [](const Copy& copy) { return copy.lanes != 0; });
    forgotten_ += static_cast<std::uint64_t>(first - copies_.begin());
    copies_.erase(copies_.begin(), first);
}

void LaneCopies::clear() noexcept {
    forgotten_ += copies_.size();
    copies_.clear();
    committed_ = {};
}

// --- bulk copies, and what signals an mbarrier -------------------------------------------------------------

namespace {

/// Rounds to nearest, ties to even. Every NaN becomes the same one.
std::uint32_t to_tf32(std::uint32_t bits) {
    constexpr std::uint32_t infinity = 0x7f80'0000, dropped = (1u << 13) - 1;
    const std::uint32_t magnitude = bits & 0x7fff'ffff;
    if (magnitude > infinity) return 0x7fff'e000;
    if (magnitude == infinity) return bits;
    return (bits + (dropped >> 1) + (bits >> 13 & 1)) & ~dropped;
}

}  // namespace

void Tile::load(std::byte* to) const noexcept {
    for (const Run& run : runs) {
        std::byte* at = to + run.shared;
        if (run.global == nullptr) {
            std::memset(at, 0, run.bytes);
            for (std::uint32_t k = 0; fill != 0 && k < run.bytes; k += sizeof fill)
                std::memcpy(at + k, &fill, sizeof fill);
            continue;
        }
        std::memcpy(at, run.global, run.bytes);
        for (std::uint32_t k = 0; rounds && k < run.bytes; k += 4) {
            std::uint32_t bits = 0;
            std::memcpy(&bits, at + k, sizeof bits);
            bits = to_tf32(bits);
            std::memcpy(at + k, &bits, sizeof bits);
        }
    }
}

void Tile::store(const std::byte* from, Reduction reduce) const noexcept {
    for (const Run& run : runs) {
        if (reduce != nullptr)
            reduce(run.global, from + run.shared, run.bytes);
        else
            std::memcpy(run.global, from + run.shared, run.bytes);
    }
}

void Transfer::take() {
    if (taken.empty() && from != nullptr) taken.assign(from, from + bytes);
}

void Transfer::perform() const noexcept {
    if (before != nullptr) return before->finish_before(lane, issued);
    write();
    if (view != nullptr) std::memcpy(view, to, view_bytes);
}

void Transfer::write() const noexcept {
    const std::byte* source = taken.empty() ? from : taken.data();
    if (tile != nullptr) return to != nullptr ? tile->load(to) : tile->store(source, reduce);
    if (reduce != nullptr)
        reduce(to, source, bytes);
    else
        std::memmove(to, source, bytes);
}

const char* Transfers::signal(const std::byte* barrier) {
    for (std::size_t i = 0; i < waiting_.size();) {
        if (waiting_[i].barrier != barrier) {
            ++i;
            continue;
        }
        const Transfer transfer = std::move(waiting_[i]);
        waiting_.erase(waiting_.begin() + static_cast<std::ptrdiff_t>(i));
        transfer.perform();
        auto state = Mbarrier::read_at(transfer.barrier);
        if (!state) return "it is not initialised any more, and a copy that it waits for goes on";
        const bool phase = state->odd;
        const auto error =
            transfer.before != nullptr ? state->arrive(1) : state->complete_bytes(transfer.bytes);
        if (error != nullptr) return error;
        state->write_at(transfer.barrier);
        if (state->odd != phase) break;  // later transfers belong to the next phase
    }
    return nullptr;
}

template <class Of>
void Transfers::finish(const Of& of) {
    std::erase_if(waiting_, [&](const Transfer& transfer) {
        if (transfer.barrier != nullptr || !of(transfer)) return false;
        transfer.perform();
        return true;
    });
}

void Transfers::finish_groups(const void* warp, unsigned lane, std::uint32_t end) {
    finish([&](const Transfer& transfer) {
        return transfer.warp == warp && transfer.lane == lane && transfer.group < end;
    });
}

void Transfers::take_groups(const void* warp, unsigned lane, std::uint32_t end) {
    for (Transfer& transfer : waiting_) {
        const bool is_of = transfer.barrier == nullptr && transfer.warp == warp && transfer.lane == lane;
        if (is_of && transfer.group < end) transfer.take();
    }
}

void Transfers::finish_thread(const void* warp, std::uint32_t lanes) {
    finish(
        [&](const Transfer& transfer) { return transfer.warp == warp && (lanes >> transfer.lane & 1) != 0; });
}

}  // namespace emulated::machine
