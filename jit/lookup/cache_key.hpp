// The key of a compile: compiles with equal keys give the same image.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <bascule/jit/compile/nvrtc.hpp>
#include <bascule/jit/files/digest.hpp>
#include <bascule/jit/program/program.hpp>

namespace bascule {

/// The whole key as text, and its hash. Equal keys have equal text; the hash only serves the look-up.
struct CacheKey {
    std::string text;
    Digest hash{};

    bool operator==(const CacheKey& other) const noexcept { return text == other.text; }
};

struct CacheKeyHash {
    std::size_t operator()(const CacheKey& key) const noexcept { return key.hash.low; }
};

/// The key has length-prefixed fields in a fixed order: source, options, instances, architecture, compiler, prelude.
///
/// It does not contain names and places of the source, which only messages use. It does not contain the headers that
/// the text reads either: one key has several header states (HeaderManifest). The driver is not part of it, because
/// entries hold what NVRTC wrote; a driver that translates PTX has its own cache.
CacheKey key_of(const Program& program, const Nvrtc& nvrtc);

/// The number of header states of one key whose images are kept, so that restoring a header is a hit.
inline constexpr int kept_header_states = 8;

/// The fields of a key, for messages; views of the key's text.
struct KeyFields {
    using Pairs = std::vector<std::pair<std::string_view, std::string_view>>;

    std::string_view schema, text;
    std::vector<std::string_view> arguments;
    Pairs headers;              ///< name, text
    Pairs instances;            ///< kernel, expression
    std::uint64_t purpose = 0;  ///< a Program::Purpose
    bool functions_too = false;
    std::string_view arch, nvrtc;
    std::vector<std::string_view> include_paths;
    std::string_view prelude;
};
/// Returns nothing for a text that `key_of` did not write.
std::optional<KeyFields> fields_of(std::string_view key_text);

/// The key with this text, which `key_of` wrote. If `text` comes from a file, check `is_of_this_version`.
CacheKey key_from_text(std::string text);
/// Whether this version of Bascule wrote the text of a key, and thus the entry that has it.
bool is_of_this_version(std::string_view key_text);

}  // namespace bascule
