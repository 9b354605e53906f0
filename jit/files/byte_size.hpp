// Sizes in bytes as people write them: 500MB, 1.5GiB.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace bascule {

/// Parses a number without a sign and a unit: B or nothing, kB, MB, GB and TB (powers of 1000), KiB, MiB, GiB and TiB
/// (powers of 1024). Case does not matter, and a space may precede the unit. Returns nothing for other text, and for
/// 2^63 bytes or more.
std::optional<std::uint64_t> parse_byte_size(std::string_view text);

}  // namespace bascule
