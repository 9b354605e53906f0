#include <algorithm>
#include <functional>
#include <optional>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <bascule/jit/lookup/cache_entry.hpp>
#include <bascule/jit/lookup/cache_sweep.hpp>
#include <bascule/jit/lookup/miss_reason.hpp>

namespace bascule {
namespace {

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

std::string miss_reason(const CacheDirectory& directory, const CacheKey& key,
                        const std::string& source_directory) {
    if (directory.path().empty()) return "there is no cache on disk";
    std::vector<CacheDirectory::Listed> files;
    if (const auto problem = directory.list(files))
        return fmt::format("the cache in {} cannot be read: {}", directory.path(), *problem);
    std::erase_if(files, [](const CacheDirectory::Listed& file) { return !is_entry_name(file.name); });
    std::ranges::sort(files, std::greater(), &CacheDirectory::Listed::modified_ns);
    std::string bytes;

    const std::string own = to_string(key.hash);
    for (const CacheDirectory::Listed& file : files) {
        if (!file.name.starts_with(own)) continue;
        const std::optional<EntryOutline> entry = outline_of(directory, file.name, bytes);
        if (!entry) return "its entry on disk is damaged, or not to be trusted";
        const std::optional<HeaderManifest> headers = HeaderManifest::from_bytes(entry->headers);
        if (entry->key == key.text && headers) return headers->difference(source_directory);
    }

    const std::optional<KeyFields> ours = fields_of(key.text);
    std::optional<std::vector<std::string>> least;
    if (files.size() > most_entries_read) files.resize(most_entries_read);
    for (const CacheDirectory::Listed& file : files) {
        const std::optional<EntryOutline> entry = outline_of(directory, file.name, bytes);
        const std::optional<KeyFields> theirs = entry ? fields_of(entry->key) : std::nullopt;
        if (!theirs || !ours || theirs->text != ours->text) continue;
        std::vector<std::string> found = differences(*theirs, *ours);
        if (!least || found.size() < least->size()) least = std::move(found);
    }
    if (!least) return "no program of this text is on disk";
    return fmt::format("the nearest program on disk has the same text and {}", fmt::join(*least, "; "));
}

}  // namespace bascule
