#include <fmt/format.h>

#include <bascule/jit/cache/disk_cache.hpp>

namespace bascule {
namespace {

std::string file_name(const CacheKey& key, int place) {
    return fmt::format("{:016x}{:016x}.{}", key.hash_high, key.hash_low, place);
}

}  // namespace

DiskCache::DiskCache(std::string directory, WarningHandler warn)
    : directory_(std::move(directory)), warn_(std::move(warn)) {}

DiskCache::Found DiskCache::load(const CacheKey& key, const std::string& source_directory) {
    if (directory().empty()) return {};
    std::optional<int> free;
    int oldest = 0;
    std::int64_t oldest_ns = INT64_MAX;
    for (int place = 0; place < variants; ++place) {
        CacheDirectory::File file;
        std::string problem;
        switch (directory_.read(file_name(key, place), file, problem)) {
            // Places fill up in order, and nothing but an eviction leaves a gap.
            case CacheDirectory::Answer::missing:
            case CacheDirectory::Answer::refused:
                if (!free) free = place;
                continue;
            case CacheDirectory::Answer::unusable:
                warn_once(problem);
                return {{}, place};
            case CacheDirectory::Answer::read:
                break;
        }
        CacheEntry entry;
        switch (read_entry(file.bytes, key, source_directory, entry)) {
            case EntryVerdict::good:
                return {std::move(entry), place};
            case EntryVerdict::useless:
                if (!free) free = place;
                break;
            case EntryVerdict::other_headers:
                if (file.modified_ns < oldest_ns) {
                    oldest = place;
                    oldest_ns = file.modified_ns;
                }
                break;
        }
    }
    return {{}, free.value_or(oldest)};
}

void DiskCache::store(const CacheKey& key, int place, const HeaderManifest& headers, const Image& image) {
    if (directory().empty()) return;
    const std::string bytes = to_bytes(key, headers, image);
    if (auto problem = directory_.publish(file_name(key, place), bytes)) warn_once(*problem);
}

void DiskCache::warn_once(const std::string& problem) {
    if (warned_.exchange(true) || !warn_) return;
    warn_(fmt::format(
        "Compiled programs cannot be kept in {}: {}. They are compiled again in each process until that is "
        "fixed, or another directory is named in BASCULE_CACHE_DIR; set to nothing, it turns the cache off.",
        directory(), problem));
}

}  // namespace bascule
