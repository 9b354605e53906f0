// A barrier in shared memory (PTX's mbarrier): the 64 bits of the object, and what happens to it. Programs see the bits as
// opaque. From the lowest: 20 of the arrivals that a phase expects, 20 of those that are pending, 21 of the signed count
// of bytes that asynchronous copies still bring, the parity of the phase, and two that say that this is an mbarrier.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

namespace emulated::machine {

class Mbarrier {
  public:
    static constexpr std::uint32_t most_arrivals = (1u << 20) - 1;
    static constexpr std::int64_t most_bytes = (1 << 20) - 1;

    /// Empty where the bits are not those of an initialised object.
    static std::optional<Mbarrier> read(std::uint64_t bits) noexcept;
    std::uint64_t bits() const noexcept;
    /// The same of an object in shared memory.
    static std::optional<Mbarrier> read_at(const std::byte* at) noexcept;
    void write_at(std::byte* at) const noexcept;

    /// What goes wrong, as the end of a sentence about the mbarrier; null: nothing.
    using Error = const char*;

    static Error check_count(std::uint32_t count) noexcept;
    explicit Mbarrier(std::uint32_t count) noexcept : expected(count), pending(count) {}
    Error expect_bytes(std::int64_t bytes) noexcept;
    Error complete_bytes(std::int64_t bytes) noexcept;
    Error arrive(std::uint32_t count) noexcept;
    /// The phase must not end by it.
    Error arrive_without_completing(std::uint32_t count) noexcept;
    /// One arrival more, in this phase alone.
    Error add_pending() noexcept;
    /// Later phases expect fewer.
    Error drop(std::uint32_t count) noexcept;

    std::uint32_t expected = 0, pending = 0;
    std::int64_t bytes =
        0;  ///< expected and not complete; negative where they were complete before they were expected
    bool odd = false;  ///< the parity of the phase

  private:
    Mbarrier() = default;
    void end_phase_if_complete() noexcept;
};

}  // namespace emulated::machine
