#include <algorithm>
#include <cstdlib>
#include <vector>

#include <fmt/format.h>

#include <bascule/jit/files/byte_size.hpp>
#include <bascule/jit/files/file_identity.hpp>
#include <bascule/jit/lookup/cache_key.hpp>
#include <bascule/jit/lookup/cache_sweep.hpp>

namespace bascule {
namespace {

constexpr std::int64_t hour_ns = std::int64_t{3600} * 1'000'000'000;
constexpr const char* marker_name = "swept";
constexpr std::string_view lock_suffix = ".lock";

bool is_lock_name(std::string_view name) {
    return name.size() == 32 + lock_suffix.size() && name.ends_with(lock_suffix) &&
           name.find_first_not_of("0123456789abcdef") == 32;
}

}  // namespace

CacheLimit default_cache_limit() {
    CacheLimit limit;
    const char* named = std::getenv("BASCULE_CACHE_LIMIT");
    if (named == nullptr || *named == '\0') return limit;
    if (std::string_view(named) == "unlimited") {
        limit.bytes = CacheLimit::unlimited;
    } else if (const auto bytes = parse_byte_size(named)) {
        limit.bytes = *bytes;
    } else {
        limit.problem = fmt::format(
            "BASCULE_CACHE_LIMIT is \"{}\", which is not a size: write a number with kB, MB, GB, KiB, MiB or "
            "GiB behind it, such as 500MB, or unlimited. The limit is {} GiB until then.",
            named, CacheLimit::default_bytes >> 30);
    }
    return limit;
}

std::string entry_name(const Digest& key, int place) { return fmt::format("{}.{}", to_string(key), place); }

bool is_entry_name(std::string_view name) {
    return name.size() == 34 && name.find_first_not_of("0123456789abcdef") == 32 && name[32] == '.' &&
           name[33] >= '0' && name[33] < '0' + kept_header_states;
}

std::string lock_name(const Digest& key) { return to_string(key).append(lock_suffix); }

bool is_outdated(std::int64_t stamp_ns, std::int64_t now_ns) noexcept {
    return stamp_ns <= now_ns - hour_ns || stamp_ns >= now_ns + hour_ns;
}

std::int64_t last_use_ns(std::int64_t stamp_ns, std::int64_t now_ns) noexcept {
    return stamp_ns >= now_ns + hour_ns ? INT64_MIN : stamp_ns;
}

Removed sweep(const CacheDirectory& directory, std::uint64_t limit_bytes) {
    std::vector<CacheDirectory::Listed> files;
    Removed removed{.problem = directory.list(files)};
    const std::int64_t now = now_ns();
    std::vector<CacheDirectory::Listed> entries, unwanted;
    for (CacheDirectory::Listed& file : files) {
        if (is_entry_name(file.name)) {
            entries.push_back(std::move(file));
        } else if ((CacheDirectory::is_temporary(file.name) || is_lock_name(file.name)) &&
                   is_outdated(file.modified_ns, now)) {
            unwanted.push_back(std::move(file));
        }
    }
    std::ranges::sort(entries, std::greater(), [now](const CacheDirectory::Listed& entry) {
        return last_use_ns(entry.modified_ns, now);
    });
    std::uint64_t kept = 0;
    bool full = false;
    for (CacheDirectory::Listed& entry : entries) {
        const std::uint64_t bytes = std::max(entry.bytes, std::uint64_t{1});  // a damaged one may be empty
        full = full || bytes > limit_bytes - kept;
        if (!full) {
            kept += bytes;
            continue;
        }
        ++removed.entries;
        removed.bytes += entry.bytes;
        unwanted.push_back(std::move(entry));
    }
    if (auto problem = directory.remove(unwanted); problem && !removed.problem) removed.problem = problem;
    return removed;
}

void sweep_if_due(const CacheDirectory& directory, std::uint64_t limit_bytes) {
    CacheDirectory::File marker;
    std::string problem;
    const CacheDirectory::Answer answer = directory.read(marker_name, marker, problem);
    if (answer == CacheDirectory::Answer::unusable) return;
    if (answer == CacheDirectory::Answer::read && !is_outdated(marker.modified_ns, now_ns())) return;
    // Written before the sweep, so that other processes do not sweep too. If it cannot be written, files cannot be
    // removed either.
    if (directory.publish(marker_name, {})) return;
    directory.stamp(marker_name, now_ns());  // by this clock, because a file server's may differ
    sweep(directory, limit_bytes);
}

}  // namespace bascule
