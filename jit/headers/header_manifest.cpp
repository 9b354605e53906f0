#include <algorithm>
#include <filesystem>
#include <mutex>
#include <set>
#include <sys/stat.h>
#include <tuple>

#include <fmt/format.h>

#include <bascule/jit/files/paths.hpp>
#include <bascule/jit/files/record.hpp>
#include <bascule/jit/headers/header_manifest.hpp>
#include <bascule/jit/process/fork_and_exit.hpp>
#include <bascule/jit/process/never_destroyed.hpp>

namespace bascule {

// Record calls these functions and finds them by argument-dependent lookup.

BASCULE_RECORD(Digest, its.high, its.low)
BASCULE_RECORD(FileIdentity, its.device, its.inode, its.bytes, its.modified_ns, its.changed_ns)
BASCULE_RECORD(TrackedFile, its.path, its.identity, its.digest)
BASCULE_RECORD(TrackedPlace, its.path, its.kind)
BASCULE_RECORD(TrackedHeaders, its.taken_ns, its.files, its.places)
BASCULE_RECORD(HeaderManifest, its.directory, its.working_directory, its.user, its.toolkit,
               its.toolkit_digest)

namespace {

template <class T>
std::string bytes_of(T value) {  // a copy, because pass_members takes a non-const reference
    ByteWriter out;
    Record(out).pass(value);
    return std::move(out).take();
}

bool has_known_places(const TrackedHeaders& headers) {
    return std::ranges::all_of(headers.places, [](const TrackedPlace& place) {
        return place.kind == PlaceKind::file || place.kind == PlaceKind::other ||
               place.kind == PlaceKind::missing;
    });
}
bool has_known_places(const HeaderManifest& manifest) { return has_known_places(manifest.user); }

template <class T>
std::optional<T> read(std::string_view bytes) {
    ByteReader in(bytes);
    T value;
    Record(in).pass(value);
    return in.at_end() && has_known_places(value) ? std::optional(std::move(value)) : std::nullopt;
}

/// The longest tick of a file system's clock (FAT).
constexpr std::int64_t tick_ns = 2'000'000'000;

bool may_have_changed_unseen(const FileIdentity& identity, std::int64_t taken_ns) {
    return identity.changed_ns > taken_ns - tick_ns;
}

bool has_content(const TrackedFile& file) {
    const std::optional<std::string> text = read_file(file.path);
    return text && text->size() == file.identity.bytes && digest_of(*text) == file.digest;
}

bool is_as_it_was(const TrackedPlace& place) { return includable_at(place.path) == place.kind; }

/// Whether two paths lead to one file now exactly if they did before. `#pragma once` depends on that.
bool have_same_aliases(const std::vector<TrackedFile>& files, const std::vector<FileIdentity>& now) {
    using File = std::pair<std::uint64_t, std::uint64_t>;
    std::map<File, File> then_to_now, now_to_then;
    for (std::size_t i = 0; i < files.size(); ++i) {
        const File before{files[i].identity.device, files[i].identity.inode};
        const File after{now[i].device, now[i].inode};
        if (then_to_now.emplace(before, after).first->second != after) return false;
        if (now_to_then.emplace(after, before).first->second != before) return false;
    }
    return true;
}

/// The user's and the toolkit's files, because the time of a scan decides which files count as the toolkit's.
std::vector<TrackedFile> all_files(const HeaderManifest& manifest) {
    std::vector<TrackedFile> files = manifest.user.files;
    if (auto toolkit = TrackedHeaders::from_bytes(manifest.toolkit))
        files.insert(files.end(), toolkit->files.begin(), toolkit->files.end());
    std::ranges::sort(files, {}, &TrackedFile::path);
    return files;
}

std::vector<TrackedPlace> sorted_places(const HeaderManifest& manifest) {
    std::vector<TrackedPlace> places = manifest.user.places;
    std::ranges::sort(places, {}, [](const TrackedPlace& place) { return std::tie(place.path, place.kind); });
    return places;
}

/// The digests of the toolkit sections that this process has verified. If a toolkit is replaced meanwhile, the next
/// process notices it, and this process at its next compile. Guarded by fork_safe_mutex().
std::set<Digest>& verified_toolkits() { return never_destroyed<std::set<Digest>>(); }

constexpr int most_links = 40;  // Linux follows no more

std::string directory_of(const std::string& path) {
    const std::size_t slash = path.rfind('/');
    return slash == std::string::npos || path.size() == 1 ? ""
                                                          : path.substr(0, std::max<std::size_t>(slash, 1));
}

bool is_verified(const Digest& toolkit) {
    const std::lock_guard lock(fork_safe_mutex());
    return verified_toolkits().contains(toolkit);
}

}  // namespace

bool TrackedHeaders::hold() const {
    if (!std::ranges::all_of(places, is_as_it_was)) return false;
    std::vector<FileIdentity> now;
    bool replaced = false;
    for (const TrackedFile& file : files) {
        const Place place = place_at(file.path);
        if (place.kind != PlaceKind::file) return false;
        const bool same = place.identity == file.identity;
        const bool believed = same && !may_have_changed_unseen(file.identity, taken_ns);
        if (!believed && (place.identity.bytes != file.identity.bytes || !has_content(file))) return false;
        replaced = replaced || !same;
        now.push_back(place.identity);
    }
    return !replaced || have_same_aliases(files, now);
}

bool TrackedHeaders::untouched() const {
    const auto is_untouched = [&](const TrackedFile& file) {
        const Place place = place_at(file.path);
        if (place.kind != PlaceKind::file || place.identity != file.identity) return false;
        return !may_have_changed_unseen(file.identity, taken_ns) || has_content(file);
    };
    return std::ranges::all_of(places, is_as_it_was) && std::ranges::all_of(files, is_untouched);
}

std::string TrackedHeaders::difference() const {
    for (const TrackedPlace& place : places) {
        if (is_as_it_was(place)) continue;
        return place.kind == PlaceKind::missing
                   ? fmt::format("{} is there now, where a header is looked for first", place.path)
                   : fmt::format("{} is no longer what it was", place.path);
    }
    for (const TrackedFile& file : files) {
        if (place_at(file.path).kind != PlaceKind::file)
            return fmt::format("the header {} is gone", file.path);
        if (!has_content(file)) return fmt::format("the header {} has changed", file.path);
    }
    return {};
}

std::string TrackedHeaders::to_bytes() const { return bytes_of(*this); }

std::optional<TrackedHeaders> TrackedHeaders::from_bytes(std::string_view bytes) {
    return read<TrackedHeaders>(bytes);
}

bool HeaderManifest::holds(const std::string& source_directory) const {
    if (empty()) return true;
    if (directory != source_directory) return false;
    if (!working_directory.empty() && working_directory != bascule::working_directory()) return false;
    if (!user.hold()) return false;
    if (toolkit.empty() || is_verified(toolkit_digest)) return true;
    const std::optional<TrackedHeaders> headers = TrackedHeaders::from_bytes(toolkit);
    if (!headers || !headers->hold()) return false;
    const std::lock_guard lock(fork_safe_mutex());
    verified_toolkits().insert(toolkit_digest);
    return true;
}

bool HeaderManifest::is_equivalent(const HeaderManifest& other) const {
    if (directory != other.directory || working_directory != other.working_directory) return false;
    const std::vector<TrackedFile> ours = all_files(*this), theirs = all_files(other);
    const auto same = [](const TrackedFile& a, const TrackedFile& b) {
        return a.path == b.path && a.digest == b.digest;
    };
    if (!std::equal(ours.begin(), ours.end(), theirs.begin(), theirs.end(), same)) return false;
    std::vector<FileIdentity> identities;
    identities.reserve(theirs.size());
    for (const TrackedFile& file : theirs) identities.push_back(file.identity);
    return have_same_aliases(ours, identities) && sorted_places(*this) == sorted_places(other);
}

bool HeaderManifest::untouched() const {
    if (!working_directory.empty() && working_directory != bascule::working_directory()) return false;
    if (!way.untouched() || !user.untouched()) return false;
    if (toolkit.empty()) return true;
    const std::optional<TrackedHeaders> headers = TrackedHeaders::from_bytes(toolkit);
    return headers && headers->untouched();
}

std::string HeaderManifest::difference(const std::string& source_directory) const {
    if (directory != source_directory)
        return fmt::format("the file of the text was in {}, now {}", directory, source_directory);
    if (!working_directory.empty() && working_directory != bascule::working_directory())
        return fmt::format("the working directory was {}", working_directory);
    std::string found = user.difference();
    if (found.empty()) {
        const std::optional<TrackedHeaders> headers = TrackedHeaders::from_bytes(toolkit);
        if (headers) found = headers->difference();
    }
    return found.empty() ? "a header is another file than it was" : found;
}

std::string HeaderManifest::to_bytes() const { return bytes_of(*this); }

std::optional<HeaderManifest> HeaderManifest::from_bytes(std::string_view bytes) {
    return read<HeaderManifest>(bytes);
}

std::string HeaderManifest::format() {
    FormatText text;
    HeaderManifest manifest;
    TrackedHeaders toolkit;
    Record record(text);
    record.pass(manifest);
    record.pass(toolkit);
    return std::move(text).take();
}

// --- The directories and links on the way

/// All members are zero if nothing exists at `path`.
PathComponents::Component PathComponents::look_at(const std::string& path) {
    struct stat status {};
    if (lstat(path.c_str(), &status) != 0) return {};
    return {status.st_dev,
            status.st_ino,
            nanoseconds(status.st_mtim),
            nanoseconds(status.st_ctim),
            S_ISDIR(status.st_mode),
            (status.st_mode & S_ISVTX) != 0,
            false};
}

std::string PathComponents::resolve(std::string directory, const std::string& path, int links) {
    const std::size_t slash = path.rfind('/');
    std::string name = path;
    if (slash != path.npos) {  // the directory first, because most paths share it
        name = path.substr(slash + 1);
        const std::string before = path.substr(0, slash);
        if (path.starts_with('/')) {
            const auto known = directories_.find(before);
            if (known != directories_.end()) {
                directory = known->second;
            } else {
                directory = before.empty() ? "/" : resolve("/", before, links);
                directories_[before] = directory;
            }
        } else {
            directory = resolve(directory, before, links);
        }
    }
    if (name.empty() || name == ".") return directory;
    if (name == "..") return directory_of(directory).empty() ? "/" : directory_of(directory);
    std::string here = directory == "/" ? directory + name : directory + "/" + name;
    const auto [added, is_new] = components_.try_emplace(here);
    if (is_new) added->second = look_at(here);
    if (added->second.inode == 0 || added->second.is_directory || links == most_links) return here;
    std::error_code no_link;
    const std::filesystem::path target = std::filesystem::read_symlink(here, no_link);
    return no_link ? here : resolve(directory, target.string(), links + 1);
}

void PathComponents::add_missing(const std::string& path) {
    const std::string directory = resolve("/", directory_of(path), 0);
    if (const auto found = components_.find(directory); found != components_.end())
        found->second.entries_count = !found->second.is_shared;
}

bool PathComponents::untouched() const {
    return std::ranges::all_of(components_,
                               [&](const auto& each) { return is_untouched(each.first, each.second); });
}

bool PathComponents::is_untouched(const std::string& path, const Component& then) const {
    Component now = look_at(path);
    now.entries_count = then.entries_count;
    if (now == then) return true;
    const bool same =
        now.is_directory && then.is_directory && now.device == then.device && now.inode == then.inode;
    // If only its change time differs, it was renamed or its permissions changed.
    if (!same || then.entries_count || now.modified_ns == then.modified_ns) return false;
    // An entry was created or removed in it, which sets both times. If its parent has no such change, the directory
    // itself was not exchanged. A shared parent is not checked, because it changes all the time.
    const auto parent = components_.find(directory_of(path));
    return parent == components_.end() || parent->second.is_shared ||
           look_at(parent->first).modified_ns == parent->second.modified_ns;
}

}  // namespace bascule
