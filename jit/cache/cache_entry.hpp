// One compile's outcome as bytes: what a file of the disk cache holds.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <bascule/jit/cache/cache_key.hpp>
#include <bascule/jit/compile/image.hpp>
#include <bascule/jit/files/byte_record.hpp>
#include <bascule/jit/headers/header_manifest.hpp>

namespace bascule {

/// magic | length | digest of the rest | key | header manifest | image. Read as by the Bascule that wrote it: the
/// key holds the version and the format.
struct CacheEntry {
    std::shared_ptr<const HeaderManifest> headers;  ///< null: it was made from none
    std::shared_ptr<const Image> image;
};

std::string to_bytes(const CacheKey& key, const HeaderManifest& headers, const Image& image);

/// What an entry is worth to a program of this key.
enum class EntryVerdict {
    good,
    other_headers,  ///< intact, of this key, and made from other headers
    useless,        ///< damaged, of another version of ours, or of another key with the same hash
};

/// Believes nothing that it has not verified.
EntryVerdict read_entry(std::string_view bytes, const CacheKey& key, const WantedHeaders& wanted,
                        CacheEntry& entry);

/// An entry in its parts, unverified but for its digest; views of its bytes.
struct EntryOutline {
    std::string_view key, headers;
    ByteReader image;
};
/// Nothing for what is damaged.
std::optional<EntryOutline> outline_entry(std::string_view bytes);

/// What an entry is, for people. Whether its headers are still the same is not looked at.
struct EntryDescription {
    std::string problem;  ///< why it would never be used; empty when it is intact
    CacheKey key;
    std::vector<std::string> kernels;  ///< as they were asked for: "ns::scale<float>"
    std::string arch;                  ///< "sm_90"
    std::string nvrtc_version;         ///< "13.0"
};

EntryDescription describe_entry(std::string_view bytes);

}  // namespace bascule
