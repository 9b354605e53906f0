// Why a program was not found on disk, for the log.
#pragma once

#include <string>

#include <bascule/jit/lookup/cache_directory.hpp>
#include <bascule/jit/lookup/cache_key.hpp>

namespace bascule {

/// Describes what differs between a program that was not found and the most similar entry: a header of the same program
/// that changed; or options, architecture, NVRTC or Bascule version for the same text. Reads up to 256 entries, so it
/// is called only if the log is enabled. Does not throw because of bad entries.
std::string miss_reason(const CacheDirectory& directory, const CacheKey& key,
                        const std::string& source_directory);

}  // namespace bascule
