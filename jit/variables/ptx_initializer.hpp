// Reads the initial bytes of a global variable in PTX, by which probes report layouts.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace bascule {

/// The bytes of a variable before any kernel has run; 0 at the places of addresses.
struct InitialValue {
    struct Address {
        std::uint32_t offset = 0;  ///< in the variable
        std::string symbol;
        std::int64_t addend = 0;  ///< bytes after the symbol
    };
    std::vector<std::uint8_t> bytes;
    std::vector<Address> addresses;

    std::uint64_t integer(std::size_t offset, std::size_t width) const noexcept;  ///< little-endian
};

/// Returns nothing if the text has no such variable, or its declaration has an unknown form.
std::optional<InitialValue> initial_value(std::string_view ptx, std::string_view variable);

}  // namespace bascule
