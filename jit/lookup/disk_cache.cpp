#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <bascule/jit/lookup/disk_cache.hpp>

namespace bascule {
namespace {

constexpr std::int64_t hour_ns = std::int64_t{3600} * 1'000'000'000;
constexpr const char* marker_name = "swept";
constexpr std::string_view lock_suffix = ".lock";

bool is_lock_name(std::string_view name) {
    return name.size() == 32 + lock_suffix.size() && name.ends_with(lock_suffix) &&
           name.find_first_not_of("0123456789abcdef") == 32;
}

bool is_named_for(const CacheKey& key, std::string_view name) {
    return entry_name(key.hash, name.back() - '0') == name;
}

constexpr std::size_t most_entries_read = 256;

/// The elements of `these` that `those` lack.
template <class T>
std::vector<T> only_in(const std::vector<T>& these, const std::vector<T>& those) {
    std::vector<T> only;
    std::ranges::copy_if(these, std::back_inserter(only),
                         [&](const T& each) { return std::ranges::find(those, each) == those.end(); });
    return only;
}

template <class T>
std::string list_or_none(const std::vector<T>& elements) {
    return elements.empty() ? "none" : fmt::format("{}", fmt::join(elements, " "));
}

std::vector<std::string_view> expressions_of(const KeyFields& fields) {
    std::vector<std::string_view> expressions;
    for (const auto& [kernel, expression] : fields.instances) expressions.push_back(expression);
    return expressions;
}

/// The fields that differ: "options -DN=3, now -DN=4".
std::vector<std::string> differences(const KeyFields& theirs, const KeyFields& ours) {
    std::vector<std::string> found;
    const auto compare = [&](std::string_view what, std::string_view before, std::string_view now) {
        if (before != now) found.push_back(fmt::format("{} {}, now {}", what, before, now));
    };
    const auto compare_lists = [&](std::string_view what, const auto& before, const auto& now) {
        if (before == now) return;
        const auto dropped = only_in(before, now), added = only_in(now, before);
        if (dropped.empty() && added.empty()) {
            found.push_back(fmt::format("{} in another order", what));
        } else {
            compare(what, list_or_none(dropped), list_or_none(added));
        }
    };
    compare("version", theirs.schema, ours.schema);
    compare("architecture", theirs.arch, ours.arch);
    compare_lists("options", theirs.arguments, ours.arguments);
    compare_lists("instances", expressions_of(theirs), expressions_of(ours));
    compare_lists("directories of CUDA headers", theirs.include_paths, ours.include_paths);
    if (theirs.headers != ours.headers) found.emplace_back("other texts in the option `headers`");
    if (theirs.nvrtc != ours.nvrtc) found.emplace_back("another NVRTC library");
    if (theirs.prelude != ours.prelude) found.emplace_back("another build of Bascule");
    if (theirs.purpose != ours.purpose || theirs.functions_too != ours.functions_too)
        found.emplace_back("other parts of the program were asked for");
    return found;
}

std::optional<EntryOutline> outline_of(const CacheDirectory& directory, const std::string& name,
                                       std::string& bytes) {
    CacheDirectory::File file;
    std::string problem;
    if (directory.read(name, file, problem) != CacheDirectory::Answer::read) return std::nullopt;
    bytes = std::move(file.bytes);
    return outline_entry(bytes);
}

}  // namespace

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
        const CacheDirectory::Answer answer = directory_.read(name, file, problem);
        if (answer == CacheDirectory::Answer::unusable) {
            warn_once(problem);
            return {{}, free.value_or(place)};
        }
        CacheEntry entry;
        const EntryVerdict verdict = answer == CacheDirectory::Answer::read
                                         ? read_entry(file.bytes, key, wanted, entry)
                                         : EntryVerdict::useless;
        if (verdict == EntryVerdict::good) {
            if (is_outdated(file.modified_ns, now)) directory_.stamp(name, now);
            return {std::move(entry), place};
        }
        // Places are filled in order, but an eviction may leave a gap, so the search goes on.
        if (verdict == EntryVerdict::useless) {
            if (!free) free = place;
        } else if (last_use_ns(file.modified_ns, now) < oldest_ns) {
            oldest = place;
            oldest_ns = last_use_ns(file.modified_ns, now);
        }
    }
    return {{}, free.value_or(oldest)};
}

std::string DiskCache::why_missing(const CacheKey& key, const std::string& source_directory) const {
    if (directory_.path().empty()) return "there is no cache on disk";
    std::vector<CacheDirectory::Listed> files;
    if (const auto problem = directory_.list(files))
        return fmt::format("the cache in {} cannot be read: {}", directory_.path(), *problem);
    std::erase_if(files, [](const CacheDirectory::Listed& file) { return !is_entry_name(file.name); });
    std::ranges::sort(files, std::greater(), &CacheDirectory::Listed::modified_ns);
    std::string bytes;

    const std::string own = to_string(key.hash);
    for (const CacheDirectory::Listed& file : files) {
        if (!file.name.starts_with(own)) continue;
        const std::optional<EntryOutline> entry = outline_of(directory_, file.name, bytes);
        if (!entry) return "its entry on disk is damaged, or not to be trusted";
        const std::optional<HeaderManifest> headers = HeaderManifest::from_bytes(entry->headers);
        if (entry->key == key.text && headers) return headers->difference(source_directory);
    }

    const std::optional<KeyFields> ours = fields_of(key.text);
    std::optional<std::vector<std::string>> least;
    if (files.size() > most_entries_read) files.resize(most_entries_read);
    for (const CacheDirectory::Listed& file : files) {
        const std::optional<EntryOutline> entry = outline_of(directory_, file.name, bytes);
        const std::optional<KeyFields> theirs = entry ? fields_of(entry->key) : std::nullopt;
        if (!theirs || !ours || theirs->text != ours->text) continue;
        std::vector<std::string> found = differences(*theirs, *ours);
        if (!least || found.size() < least->size()) least = std::move(found);
    }
    if (!least) return "no program of this text is on disk";
    return fmt::format("the nearest program on disk has the same text and {}", fmt::join(*least, "; "));
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
