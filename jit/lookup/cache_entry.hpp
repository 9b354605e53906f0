// The result of one compile as bytes: the content of a file of the disk cache.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include <bascule/jit/compile/image.hpp>
#include <bascule/jit/files/record.hpp>
#include <bascule/jit/headers/header_manifest.hpp>
#include <bascule/jit/lookup/cache_key.hpp>

namespace bascule {

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
