// The key of a compile and its result as bytes: together, the content of a file of the disk cache. Compiles with equal
// keys give the same image.
#pragma once

#include <cstddef>

#include <bascule/jit/compile/nvrtc.hpp>
#include <bascule/jit/files/record.hpp>
#include <bascule/jit/headers/header_manifest.hpp>
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

/// The content of an entry. Format in the file: magic | length | digest of the rest | key | header manifest | image.
/// Only the Bascule version that wrote an entry reads it: the key contains version and format.
struct CacheEntry {
    std::shared_ptr<const Image> image;
    std::shared_ptr<const HeaderManifest> headers;  ///< null: it was made without headers
};

std::string to_bytes(const CacheKey& key, const HeaderManifest& headers, const Image& image);

/// Whether an entry can be used for a key.
enum class EntryVerdict {
    good,
    other_headers,  ///< intact, with this key, but made from other headers
    useless,        ///< damaged, of another Bascule version, or of another key with the same hash
};

/// Reads an entry, verifying everything.
EntryVerdict read_entry(std::string_view bytes, const CacheKey& key, const WantedHeaders& wanted,
                        CacheEntry& entry);

/// The parts of an entry as views of its bytes. Only its digest is verified.
struct EntryOutline {
    std::string_view key, headers;
    ByteReader image;
};
/// Returns nothing if the bytes are damaged.
std::optional<EntryOutline> outline_entry(std::string_view bytes);

/// Describes an entry for users. Does not check whether its headers are unchanged.
struct EntryDescription {
    std::string problem;  ///< why it would never be used; empty when it is intact
    CacheKey key;
    std::optional<Image> image;  ///< without its code; nothing if it would never be used
};

EntryDescription describe_entry(std::string_view bytes);

}  // namespace bascule
