// The initial bytes of a global variable in PTX: probes report layouts through them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace bascule {

/// The bytes of a variable before anything ran; 0 where there is an address.
struct InitialValue {
    struct Address {
        std::uint32_t offset = 0;  ///< in the variable
        std::string symbol;
        std::int64_t addend = 0;  ///< bytes behind the symbol
    };
    std::vector<std::uint8_t> bytes;
    std::vector<Address> addresses;

    std::uint64_t integer(std::size_t offset, std::size_t width) const noexcept;  ///< little-endian
};

/// Nothing when the text has no such variable, or one that is written in a way that we do not know.
std::optional<InitialValue> initial_value(std::string_view ptx, std::string_view variable);

}  // namespace bascule
