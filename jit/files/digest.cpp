#include <xxhash.h>

#include <fmt/format.h>

#include <bascule/jit/files/digest.hpp>

namespace bascule {

Digest digest_of(std::string_view bytes) noexcept {
    const XXH128_hash_t hash = XXH3_128bits(bytes.data(), bytes.size());
    return {hash.high64, hash.low64};
}

std::string to_string(const Digest& digest) { return fmt::format("{:016x}{:016x}", digest.high, digest.low); }

}  // namespace bascule
