#include "machine/mbarrier.hpp"

#include <cstring>

namespace emulated::machine {
namespace {

constexpr unsigned pending_shift = 20, bytes_shift = 40, parity_shift = 61, mark_shift = 62;
constexpr std::uint64_t counts_in_bits = Mbarrier::most_arrivals, bytes_in_bits = (1u << 21) - 1;
constexpr std::uint64_t initialised_mark = 2;  // uninitialised memory is mostly all zeros or all ones

}  // namespace

std::optional<Mbarrier> Mbarrier::read(std::uint64_t bits) noexcept {
    if (bits >> mark_shift != initialised_mark) return std::nullopt;
    Mbarrier made;
    made.expected = static_cast<std::uint32_t>(bits & counts_in_bits);
    made.pending = static_cast<std::uint32_t>(bits >> pending_shift & counts_in_bits);
    const auto stored = static_cast<std::int64_t>(bits >> bytes_shift & bytes_in_bits);
    made.bytes = stored > most_bytes ? stored - static_cast<std::int64_t>(bytes_in_bits) - 1 : stored;
    made.odd = (bits >> parity_shift & 1) != 0;
    return made;
}

std::uint64_t Mbarrier::bits() const noexcept {
    return expected | std::uint64_t{pending} << pending_shift |
           (static_cast<std::uint64_t>(bytes) & bytes_in_bits) << bytes_shift |
           std::uint64_t{odd} << parity_shift | initialised_mark << mark_shift;
}

std::optional<Mbarrier> Mbarrier::read_at(const std::byte* at) noexcept {
    std::uint64_t stored = 0;
    std::memcpy(&stored, at, sizeof stored);
    return read(stored);
}

void Mbarrier::write_at(std::byte* at) const noexcept {
    const std::uint64_t made = bits();
    std::memcpy(at, &made, sizeof made);
}

void Mbarrier::end_phase_if_complete() noexcept {
    if (pending != 0 || bytes != 0) return;
    odd = !odd;
    pending = expected;
}

Mbarrier::Error Mbarrier::check_count(std::uint32_t count) noexcept {
    return count >= 1 && count <= most_arrivals ? nullptr : "a count is 1 to 2^20 - 1";
}

Mbarrier::Error Mbarrier::expect_bytes(std::int64_t more) noexcept {
    if (more < 0 || more > most_bytes || bytes + more > most_bytes)
        return "more than 2^20 - 1 bytes are expected in a phase";
    bytes += more;
    return nullptr;
}

Mbarrier::Error Mbarrier::complete_bytes(std::int64_t done) noexcept {
    if (done < 0 || done > most_bytes || bytes - done < -most_bytes)
        return "more than 2^20 - 1 bytes are complete that nothing expected";
    bytes -= done;
    end_phase_if_complete();
    return nullptr;
}

Mbarrier::Error Mbarrier::arrive(std::uint32_t count) noexcept {
    if (const Error error = check_count(count)) return error;
    if (count > pending) return "more arrivals than the phase still expects";
    pending -= count;
    end_phase_if_complete();
    return nullptr;
}

Mbarrier::Error Mbarrier::arrive_without_completing(std::uint32_t count) noexcept {
    if (count != 0 && count == pending) return "an arrival with .noComplete would complete the phase";
    return arrive(count);
}

Mbarrier::Error Mbarrier::add_pending() noexcept {
    if (pending == most_arrivals) return "more than 2^20 - 1 arrivals are pending";
    ++pending;
    return nullptr;
}

Mbarrier::Error Mbarrier::drop(std::uint32_t count) noexcept {
    if (count > expected) return "more threads are dropped than a phase expects";
    expected -= count;
    return nullptr;
}

}  // namespace emulated::machine
