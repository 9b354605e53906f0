// Sizes in bytes as people write them: 500MB, 1.5GiB.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace bascule {

/// A number without a sign and a unit: B or none, kB, MB, GB and TB (powers of 1000), KiB, MiB, GiB and TiB
/// (powers of 1024); in either case, with or without a space. Nothing for any other text, and for sizes of
/// 2^63 bytes and more.
std::optional<std::uint64_t> parse_byte_size(std::string_view text);

}  // namespace bascule
