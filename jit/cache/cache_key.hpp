// What makes two compiles the same.
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
#include <bascule/jit/text/program.hpp>

namespace bascule {

/// The whole key as text, and its hash. Equal keys have equal text; the hash only finds them.
struct CacheKey {
    std::string text;
    Digest hash{};

    bool operator==(const CacheKey& other) const noexcept { return text == other.text; }
};

struct CacheKeyHash {
    std::size_t operator()(const CacheKey& key) const noexcept { return key.hash.low; }
};

/// Length-prefixed fields in a fixed order: source, options, instances, architecture, compiler, prelude.
///
/// Not in it: names and places of the source, which are for people; the headers that the text reaches, of
/// which one key has several states (HeaderManifest); and the driver, because what is kept is what NVRTC
/// wrote, which no driver changes. A driver that translates PTX keeps its own cache of that.
CacheKey key_of(const Program& program, const Nvrtc& nvrtc);

/// What the text of a key has, for people; views of that text.
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
/// Nothing for a text that `key_of` did not write.
std::optional<KeyFields> fields_of(std::string_view key_text);

/// The key of this text, which `key_of` wrote. `text` may come from a file: see `is_of_this_version`.
CacheKey key_from_text(std::string text);
/// Whether this version of Bascule wrote the text of a key, and thus the entry that has it.
bool is_of_this_version(std::string_view key_text);

}  // namespace bascule
