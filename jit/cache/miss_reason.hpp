// Why a program was not found on disk, for the log.
#pragma once

#include <string>

#include <bascule/jit/cache/cache_directory.hpp>
#include <bascule/jit/cache/cache_key.hpp>

namespace bascule {

/// What differs between a program that was not found and the entry that is nearest to it: the header of the same
/// program that changed, or the options, architecture, NVRTC or Bascule of the same text. Reads up to 256 entries, so
/// it is asked only where the log is read. Does not throw for what it finds.
std::string miss_reason(const CacheDirectory& directory, const CacheKey& key,
                        const std::string& source_directory);

}  // namespace bascule
