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

/// The words behind one '#': an #include, or nothing. What hides behind a comment or a joined line counts as
/// computed.
std::optional<Include> include_behind(std::string_view directive) {
    const auto skip_blanks = [&] {
        directive.remove_prefix(std::min(directive.find_first_not_of(" \t\r"), directive.size()));
    };
    const Include computed{{}, false, true};
    skip_blanks();
    if (directive.starts_with("/") || directive.starts_with("\\")) return computed;
    if (!directive.starts_with("include") && !directive.starts_with("import")) return std::nullopt;
    directive.remove_prefix(
        std::min(directive.find_first_not_of("abcdefghijklmnopqrstuvwxyz_"), directive.size()));
    skip_blanks();
    if (directive.empty() || (directive[0] != '"' && directive[0] != '<')) return computed;
    const bool quoted = directive[0] == '"';
    const std::size_t stop = directive.find(quoted ? '"' : '>', 1);
    if (stop == directive.npos) return computed;
    return Include{std::string(directive.substr(1, stop - 1)), quoted, false};
}

/// The #include lines of a text, whether or not an #if or a comment hides them: one too many costs nothing.
std::vector<Include> includes_of(std::string_view text) {
    std::vector<Include> includes;
    for (std::size_t start = 0; start < text.size();) {
        const std::size_t end = std::min(text.find('\n', start), text.size());
        const std::string_view line = text.substr(start, end - start);
        start = end + 1;
        for (std::size_t hash = line.find('#'); hash != line.npos; hash = line.find('#', hash + 1)) {
            if (auto include = include_behind(line.substr(hash + 1))) includes.push_back(std::move(*include));
        }
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

/// Whether a file in one of these directories may stand before a header of the toolkit: a toolkit header that
/// includes <cuda_fp16.h> then gets the user's.
bool shadows(const std::vector<fs::path>& directories, const std::vector<std::string>& toolkit) {
    std::error_code ignored;
    for (const fs::path& directory : directories) {
        for (const std::string& root : toolkit) {
            if (fs::equivalent(directory, root, ignored)) continue;
            for (const fs::directory_entry& entry : fs::directory_iterator(root, ignored)) {
                if (fs::exists(directory / entry.path().filename(), ignored)) return true;
            }
        }
    }
    return false;
}

class Scan {
  public:
    Scan(const Source& source, const CompileOptions& options, const std::vector<std::string>& toolkit) {
        if (!source.directory.empty()) search_.emplace_back(source.directory);
        for (const std::string& path : options.include_paths) search_.emplace_back(path);
        const bool more_paths =
            std::any_of(options.extra.begin(), options.extra.end(), [](const std::string& option) {
                return option.starts_with("-I") || option.find("include") != option.npos ||
                       option.find("pch") != option.npos;
            });
        if (more_paths) found_.certain = false;
        if (shadows(search_, toolkit)) search_.insert(search_.end(), toolkit.begin(), toolkit.end());
        follow(source.text, source.directory);
        for (const auto& [name, text] : options.headers) follow(text, {});
    }

    UserHeaders result() && { return std::move(found_); }

  private:
    void follow(std::string_view text, const fs::path& directory) {
        // What such a probe does not find today may be there tomorrow.
        if (!search_.empty() && text.find("__has_include") != text.npos) found_.certain = false;
        for (const Include& include : includes_of(text)) {
            if (!found_.certain) return;
            if (include.computed) {
                found_.certain = false;
            } else {
                look_for(include, directory);
            }
        }
    }

    /// Every file of that name counts, not only the one that the compiler takes: a file that appears before
    /// it changes the state too.
    void look_for(const Include& include, const fs::path& directory) {
        if (fs::path(include.name).is_absolute()) return add(include.name);
        if (include.quoted && !directory.empty()) add(directory / include.name);
        for (const fs::path& path : search_) add(path / include.name);
    }

    void add(const fs::path& path) {
        if (seen_.contains(path.lexically_normal().string())) return;
        const std::optional<std::string> text = read(path);
        if (!text) return;
        seen_.insert(path.lexically_normal().string());
        const XXH128_hash_t hash = XXH3_128bits(text->data(), text->size());
        found_.state += fmt::format("{}\n{:016x}{:016x}\n", path.string(), hash.high64, hash.low64);
        follow(*text, path.parent_path());
    }

    std::vector<fs::path> search_;
    std::set<std::string> seen_;
    UserHeaders found_;
};

}  // namespace

UserHeaders scan_user_headers(const Source& source, const CompileOptions& options,
                              const std::vector<std::string>& toolkit) {
    return Scan(source, options, toolkit).result();
}

}  // namespace bascule
