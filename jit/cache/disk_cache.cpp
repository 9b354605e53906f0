#include <algorithm>

#include <fmt/format.h>

#include <bascule/jit/cache/disk_cache.hpp>
#include <bascule/jit/cache/miss_reason.hpp>
#include <bascule/jit/files/file_identity.hpp>

namespace bascule {
namespace {

bool is_named_for(const CacheKey& key, std::string_view name) {
    return entry_name(key.hash, name.back() - '0') == name;
}

}  // namespace

DiskCache::DiskCache(CachePlace place, WarningHandler warn, CacheLimit limit)
    : place_(std::move(place)),
      directory_(place_.problem.empty() ? place_.path : ""),
      warn_(std::move(warn)),
      limit_problem_(std::move(limit.problem)),
      limit_bytes_(limit.bytes) {}

DiskCache::Found DiskCache::load(const CacheKey& key, const WantedHeaders& wanted) {
    if (!place_.problem.empty()) warn_once(place_.problem);
    if (!is_kept()) return {};
    std::optional<int> free;
    int oldest = 0;
    std::int64_t oldest_ns = INT64_MAX;
    const std::int64_t now = now_ns();
    for (int place = 0; place < kept_header_states; ++place) {
        const std::string name = entry_name(key.hash, place);
        CacheDirectory::File file;
        std::string problem;
        switch (directory_.read(name, file, problem)) {
            // Places are filled in order, and only evictions leave gaps.
            case CacheDirectory::Answer::missing:
            case CacheDirectory::Answer::refused:
                if (!free) free = place;
                continue;
            case CacheDirectory::Answer::unusable:
                warn_once(problem);
                return {{}, free.value_or(place)};
            case CacheDirectory::Answer::read:
                break;
        }
        CacheEntry entry;
        switch (read_entry(file.bytes, key, wanted, entry)) {
            case EntryVerdict::good:
                if (is_outdated(file.modified_ns, now)) directory_.stamp(name, now);
                return {std::move(entry), place};
            case EntryVerdict::useless:
                if (!free) free = place;
                break;
            case EntryVerdict::other_headers:
                if (last_use_ns(file.modified_ns, now) < oldest_ns) {
                    oldest = place;
                    oldest_ns = last_use_ns(file.modified_ns, now);
                }
                break;
        }
    }
    return {{}, free.value_or(oldest)};
}

std::string DiskCache::why_missing(const CacheKey& key, const std::string& source_directory) const {
    return miss_reason(directory_, key, source_directory);
}

std::optional<CacheDirectory::Lock> DiskCache::lock(const CacheKey& key) const {
    constexpr std::chrono::seconds longest{30};
    if (!is_kept() || limit_bytes() == 0) return std::nullopt;
    return directory_.lock(lock_name(key.hash), longest);
}

void DiskCache::store(const CacheKey& key, int place, const HeaderManifest& headers, const Image& image) {
    if (!is_kept()) return;
    if (!limit_problem_.empty() && !warned_of_limit_.exchange(true) && warn_) warn_(limit_problem_);
    const std::string bytes = to_bytes(key, headers, image);
    if (bytes.size() > limit_bytes()) return;
    if (auto problem = directory_.publish(entry_name(key.hash, place), bytes)) warn_once(*problem);
}

void DiskCache::sweep_if_due() {
    if (is_kept()) bascule::sweep_if_due(directory_, limit_bytes());
}

std::vector<DiskCache::Listed> DiskCache::list(std::optional<std::string>& problem) const {
    std::vector<CacheDirectory::Listed> files;
    if (!place_.problem.empty()) problem = place_.problem;
    if (is_kept()) problem = directory_.list(files);
    std::vector<Listed> entries;
    for (const CacheDirectory::Listed& file : files) {
        if (!is_entry_name(file.name)) continue;
        Listed entry{file.name, file.bytes, file.modified_ns, {}};
        CacheDirectory::File content;
        switch (directory_.read(file.name, content, entry.description.problem)) {
            case CacheDirectory::Answer::missing:
                continue;  // another process removed it
            case CacheDirectory::Answer::refused:
                entry.description.problem =
                    "not trusted: another user's, writable by others, or linked to another name";
                break;
            case CacheDirectory::Answer::unusable:
                break;
            case CacheDirectory::Answer::read:
                entry.description = describe_entry(content.bytes);
                if (entry.description.problem.empty() && !is_named_for(entry.description.key, file.name)) {
                    entry.description.problem = "renamed: its name is that of another program";
                }
                break;
        }
        entries.push_back(std::move(entry));
    }
    std::ranges::sort(entries, std::greater(), &Listed::used_ns);
    return entries;
}

std::optional<std::string> DiskCache::bytes_of(const std::string& name) const {
    CacheDirectory::File file;
    std::string problem;
    if (!is_kept() || !is_entry_name(name)) return std::nullopt;
    if (directory_.read(name, file, problem) != CacheDirectory::Answer::read) return std::nullopt;
    return std::move(file.bytes);
}

bool DiskCache::adopt(std::string_view bytes, std::optional<std::string>& problem) {
    const EntryDescription description = describe_entry(bytes);
    if (!description.problem.empty()) {
        problem = description.problem;
        return false;
    }
    for (int place = 0; place < kept_header_states; ++place) {
        const std::string name = entry_name(description.key.hash, place);
        const std::optional<std::string> here = bytes_of(name);
        if (here == bytes) return false;
        if (here && describe_entry(*here).problem.empty()) continue;  // another header state
        problem = directory_.publish(name, bytes);
        return !problem;
    }
    return false;
}

Removed DiskCache::sweep() const {
    return !is_kept() ? Removed{} : bascule::sweep(directory_, limit_bytes());
}
Removed DiskCache::remove_all() const { return !is_kept() ? Removed{} : bascule::sweep(directory_, 0); }

void DiskCache::warn_once(const std::string& problem) {
    if (warned_.exchange(true) || !warn_) return;
    warn_(
        fmt::format("Compiled programs cannot be kept in {}: {}. They are compiled again in each process "
                    "until that is fixed, or another directory is named in BASCULE_CACHE_DIR; set to "
                    "nothing, it turns the cache off.",
                    directory(), problem));
}

}  // namespace bascule
