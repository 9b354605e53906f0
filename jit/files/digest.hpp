// XXH3-128 digests of keys, headers and entries.
#pragma once

#include <compare>
#include <cstdint>
#include <string>
#include <string_view>

namespace bascule {

/// A 128-bit digest of a text. It detects accidental changes, not attacks.
struct Digest {
    std::uint64_t high = 0, low = 0;

    auto operator<=>(const Digest&) const = default;
};

Digest digest_of(std::string_view bytes) noexcept;

std::string to_string(const Digest& digest);  ///< 32 hexadecimal digits

}  // namespace bascule
