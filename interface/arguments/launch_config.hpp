// How many threads a launch has, and how they are grouped.
#pragma once

#include <concepts>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>

namespace bascule {

/// Extents in x, y and z. It has a constructor so that {8, 128} is a grid and a block of a LaunchConfig, and not two
/// extents of its grid. An integer that does not fit an extent is kept for the error message of the launch. A
/// floating-point number does not compile.
struct Dim3 {
    std::int64_t beyond = 0;  ///< a given extent that 32 bits do not hold; 0: there is none
    std::uint32_t x, y, z;
    template <std::integral X = int, std::integral Y = int, std::integral Z = int>
    constexpr Dim3(X of_x = 1, Y of_y = 1, Z of_z = 1) noexcept  // NOLINT(google-explicit-constructor)
        : x(hold(of_x, beyond)), y(hold(of_y, beyond)), z(hold(of_z, beyond)) {}
    bool operator==(const Dim3&) const = default;
    std::uint64_t count() const noexcept { return std::uint64_t{x} * y * z; }

    /// Returns `given` if 32 bits hold it. Otherwise sets `beyond` to it, or to the largest int64 if it is larger, and
    /// returns the largest number of 32 bits.
    template <std::integral Number>
    static constexpr std::uint32_t hold(Number given, std::int64_t& beyond) noexcept {
        constexpr auto largest = std::numeric_limits<std::uint32_t>::max();
        if (!(given < Number{0}) && static_cast<std::uint64_t>(given) <= largest)
            return static_cast<std::uint32_t>(given);
        const bool is_huge = given > Number{0} && static_cast<std::uint64_t>(given) >> 63 != 0;
        beyond = is_huge ? std::numeric_limits<std::int64_t>::max() : static_cast<std::int64_t>(given);
        return largest;
    }
};

/// A number of bytes, from any integer. One that 32 bits do not hold is kept for the error message of the launch.
struct ByteCount {
    std::int64_t beyond = 0;  ///< as in Dim3
    std::uint32_t value;
    template <std::integral Number = int>
    constexpr ByteCount(Number given = 0) noexcept  // NOLINT(google-explicit-constructor)
        : value(Dim3::hold(given, beyond)) {}
    // NOLINTNEXTLINE(google-explicit-constructor)
    constexpr operator std::uint32_t() const noexcept { return value; }
};

/// One launch's geometry and attributes: {.grid = 8, .block = 128} or {8, 128}, {{8, 8}, {16, 16}}. A value type.
struct LaunchConfig {
    Dim3 grid{};               ///< in blocks
    Dim3 block{};              ///< in threads
    ByteCount shared_bytes{};  ///< dynamic shared memory per block
    bool cooperative = false;  ///< all blocks resident at once, as grid synchronisation needs
    /// Programmatic dependent launch: it may begin before the previous launch on the stream has ended.
    bool programmatic = false;
    Dim3 cluster{};                        ///< in blocks; one block: no clusters
    std::optional<int> priority{};         ///< lower is more urgent; empty: the stream's
    std::optional<int> shared_carveout{};  ///< percent of the on-chip memory to prefer as shared memory

    bool operator==(const LaunchConfig&) const = default;
    /// Whether the launch sets anything other than geometry and shared memory.
    bool has_attributes() const noexcept { return *this != LaunchConfig{grid, block, shared_bytes}; }
};

/// The limits of a device, and of a kernel on it.
struct LaunchLimits {
    Dim3 grid;
    Dim3 block;
    std::uint32_t threads = 0;       ///< per block, the smaller of the device's and the kernel's limit
    std::uint32_t shared_bytes = 0;  ///< dynamic, per block: the opt-in limit less the kernel's static memory
    std::uint32_t static_shared_bytes = 0;  ///< the kernel's, per block; for messages
    std::uint32_t device_threads = 0;       ///< per block of any kernel; for messages
    std::uint32_t registers = 0;            ///< per thread of the kernel; for messages
    std::uint32_t device_registers = 0;     ///< per block of any kernel; for messages
};

/// Throws: ArgumentError that names the member, the value and the limit.
void check(const LaunchConfig& config, const LaunchLimits& limits);

/// "(4096,)" for (4096, 1, 1): omits trailing ones.
std::string to_string(Dim3 extents);

}  // namespace bascule
