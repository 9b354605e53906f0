#include <algorithm>
#include <filesystem>
#include <fstream>
#include <optional>
#include <set>
#include <sstream>
#include <string_view>
#include <vector>
#include <xxhash.h>

#include <fmt/format.h>

#include <bascule/jit/user_headers.hpp>

namespace bascule {
namespace {

namespace fs = std::filesystem;

struct Include {
    std::string name;
    bool quoted = false;
    bool computed = false;  ///< #include MACRO
};

/// The #include lines of a text. Comments may hide some or make some up: one too many costs nothing.
std::vector<Include> includes_of(std::string_view text) {
    std::vector<Include> includes;
    for (std::size_t start = 0; start < text.size();) {
        const std::size_t end = std::min(text.find('\n', start), text.size());
        std::string_view line = text.substr(start, end - start);
        start = end + 1;
        const std::size_t hash = line.find('#');
        if (hash == line.npos) continue;
        line.remove_prefix(hash + 1);
        line.remove_prefix(std::min(line.find_first_not_of(" \t"), line.size()));
        if (!line.starts_with("include")) continue;
        line.remove_prefix(std::string_view("include").size());
        if (line.starts_with("_next")) line.remove_prefix(5);
        line.remove_prefix(std::min(line.find_first_not_of(" \t"), line.size()));
        const char close = line.starts_with('"') ? '"' : '>';
        const std::size_t stop = line.empty() ? line.npos : line.find(close, 1);
        const bool literal = stop != line.npos && (line[0] == '"' || line[0] == '<');
        includes.push_back(literal ? Include{std::string(line.substr(1, stop - 1)), close == '"', false}
                                   : Include{{}, false, true});
    }
    return includes;
}

std::optional<std::string> read(const fs::path& path) {
    std::error_code ignored;
    if (!fs::is_regular_file(path, ignored)) return std::nullopt;
    std::ifstream file(path, std::ios::binary);
    std::ostringstream text;
    text << file.rdbuf();
    if (!file) return std::nullopt;
    return text.str();
}

class Scan {
  public:
    Scan(const Source& source, const CompileOptions& options) : options_(options) {
        if (!source.directory.empty()) search_.emplace_back(source.directory);
        for (const std::string& path : options.include_paths) search_.emplace_back(path);
        const bool more_paths =
            std::any_of(options.extra.begin(), options.extra.end(), [](const std::string& option) {
                return option.starts_with("-I") || option.find("include") != option.npos ||
                       option.find("pch") != option.npos;
            });
        if (more_paths) found_.certain = false;
        follow(source.text, source.directory);
        for (const auto& [name, text] : options.headers) follow(text, {});
    }

    UserHeaders result() && { return std::move(found_); }

  private:
    void follow(std::string_view text, const fs::path& directory) {
        for (const Include& include : includes_of(text)) {
            if (include.computed) {
                found_.certain = false;
            } else if (!is_in_memory(include.name)) {
                look_for(include, directory);
            }
        }
    }

    bool is_in_memory(const std::string& name) const {
        return std::any_of(options_.headers.begin(), options_.headers.end(),
                           [&](const auto& header) { return header.first == name; });
    }

    void look_for(const Include& include, const fs::path& directory) {
        std::vector<fs::path> places;
        if (fs::path(include.name).is_absolute()) {
            places.emplace_back(include.name);
        } else {
            if (include.quoted && !directory.empty()) places.push_back(directory / include.name);
            for (const fs::path& path : search_) places.push_back(path / include.name);
        }
        for (const fs::path& place : places) {
            if (const std::optional<std::string> text = read(place)) {
                add(place, *text);
                return;
            }
        }
    }

    void add(const fs::path& path, const std::string& text) {
        if (!seen_.insert(path.lexically_normal().string()).second) return;
        const XXH128_hash_t hash = XXH3_128bits(text.data(), text.size());
        found_.state += fmt::format("{}\n{:016x}{:016x}\n", path.string(), hash.high64, hash.low64);
        follow(text, path.parent_path());
    }

    const CompileOptions& options_;
    std::vector<fs::path> search_;
    std::set<std::string> seen_;
    UserHeaders found_;
};

}  // namespace

UserHeaders scan_user_headers(const Source& source, const CompileOptions& options) {
    return Scan(source, options).result();
}

}  // namespace bascule
