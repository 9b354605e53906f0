// One compile's outcome as bytes: what a file of the disk cache holds.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include <bascule/jit/cache/cache_key.hpp>
#include <bascule/jit/compile/image.hpp>
#include <bascule/jit/headers/header_manifest.hpp>

namespace bascule {

/// magic | length of the header | its digest | header (JSON) | key | manifest | log | PTX | cubin.
/// The header has the length and the digest of each section, so that every byte of an entry is vouched for.
struct CacheEntry {
    std::shared_ptr<const HeaderManifest> headers;  ///< null: it was made from none
    std::shared_ptr<const Image> image;
};

/// Nothing when the image has names that are no UTF-8: then it cannot be stored.
std::optional<std::string> to_bytes(const CacheKey& key, const HeaderManifest& headers, const Image& image);

/// What an entry is worth to somebody who asks for `key`.
enum class EntryVerdict {
    good,
    other_headers,  ///< intact, of this key, and made from headers that are not the ones here and now
    useless,        ///< damaged, of another version of ours, or of another key with the same hash
};

/// Believes nothing that it has not verified. `source_directory`: of the program that asks.
EntryVerdict read_entry(std::string_view bytes, const CacheKey& key, const std::string& source_directory,
                        CacheEntry& entry);

}  // namespace bascule
