// A barrier in shared memory (PTX's mbarrier): its 64 bits and the operations on them. They are opaque to programs. From
// the lowest bit: 20 bits of expected arrivals, 20 of pending arrivals, 21 of the signed number of bytes still to be
// copied, the parity of the phase, and 2 bits that mark an mbarrier.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

namespace emulated::machine {

class Mbarrier {
  public:
    static constexpr std::uint32_t most_arrivals = (1u << 20) - 1;
    static constexpr std::int64_t most_bytes = (1 << 20) - 1;

    /// Returns nothing if the bits are not those of an initialised object.
    static std::optional<Mbarrier> read(std::uint64_t bits) noexcept;
    std::uint64_t bits() const noexcept;
    /// Reads an object in shared memory.
    static std::optional<Mbarrier> read_at(const std::byte* at) noexcept;
    void write_at(std::byte* at) const noexcept;

    /// An error as the end of a sentence about the mbarrier; null on success.
    using Error = const char*;

    static Error check_count(std::uint32_t count) noexcept;
    explicit Mbarrier(std::uint32_t count) noexcept : expected(count), pending(count) {}
    Error expect_bytes(std::int64_t bytes) noexcept;
    Error complete_bytes(std::int64_t bytes) noexcept;
    Error arrive(std::uint32_t count) noexcept;
    /// Fails if the arrival would complete the phase.
    Error arrive_without_completing(std::uint32_t count) noexcept;
    /// Adds one pending arrival in this phase only.
    Error add_pending() noexcept;
    /// Lowers the expected arrivals of later phases.
    Error drop(std::uint32_t count) noexcept;

    std::uint32_t expected = 0, pending = 0;
    std::int64_t bytes = 0;  ///< pending; negative if bytes completed before they were expected
    bool odd = false;        ///< the parity of the phase

  private:
    Mbarrier() = default;
    void end_phase_if_complete() noexcept;
};

}  // namespace emulated::machine
