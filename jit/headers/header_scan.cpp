#include <algorithm>
#include <array>
#include <concepts>
#include <filesystem>
#include <memory>
#include <mutex>
#include <set>
#include <unordered_map>
#include <unordered_set>

#include <bascule/jit/headers/header_scan.hpp>
#include <bascule/jit/headers/include_directives.hpp>
#include <bascule/jit/process/fork_safety.hpp>

namespace bascule {
namespace {

constexpr std::size_t most_files = 20'000;  // CUB reaches some 700
constexpr std::size_t most_places = 200'000;
constexpr std::uint64_t most_bytes = 1U << 30;  // of all headers together

/// A header's content, reduced to what a scan needs of it.
struct HeaderFacts {
    FileIdentity identity;
    std::int64_t read_ns = 0;  ///< before it was read
    Digest digest;
    IncludeDirectives directives;
};
using HeaderFactsPointer = std::shared_ptr<const HeaderFacts>;

/// Facts of the headers that this process has read: the next program that reaches CUB need not read it again.
class KnownHeaders {
  public:
    HeaderFactsPointer find(const std::string& path, const FileIdentity& identity) {
        const std::lock_guard lock(fork_safe_mutex());
        const auto known = facts_.find(path);
        if (known == facts_.end() || known->second->identity != identity) return nullptr;
        const bool settled = identity.changed_ns + 2'000'000'000 < known->second->read_ns;
        return settled ? known->second : nullptr;
    }
    void add(const std::string& path, HeaderFactsPointer facts) {
        const std::lock_guard lock(fork_safe_mutex());
        if (facts_.size() > most_files) facts_.clear();
        facts_[path] = std::move(facts);
    }

  private:
    std::unordered_map<std::string, HeaderFactsPointer> facts_;
};

KnownHeaders& known_headers() {
    static KnownHeaders& headers = *new KnownHeaders;
    return headers;
}

/// Null when the file cannot be read, or changes while it is.
HeaderFactsPointer facts_of(const std::string& path, const FileIdentity& identity) {
    if (HeaderFactsPointer known = known_headers().find(path, identity)) return known;
    auto facts = std::make_shared<HeaderFacts>();
    facts->identity = identity;
    facts->read_ns = now_ns();
    const std::optional<std::string> text = read_file(path);
    if (!text || place_at(path).identity != identity) return nullptr;
    facts->digest = digest_of(*text);
    facts->directives = include_directives(*text);
    known_headers().add(path, facts);
    return facts;
}

std::string parent_of(const std::string& path) {
    const std::size_t slash = path.rfind('/');
    return slash == std::string::npos ? "" : path.substr(0, slash);
}

std::string join(const std::string& directory, const std::string& name) {
    return directory.ends_with('/') ? directory + name : directory + "/" + name;
}

/// The directories that raw options name; false when one may read files in another way.
bool read_search_options(const std::vector<std::string>& extra, std::vector<std::string>& directories) {
    for (std::size_t i = 0; i < extra.size(); ++i) {
        const std::string& option = extra[i];
        if (option == "-I" || option == "--include-path" || option == "-include-path") {
            if (++i == extra.size()) return false;
            directories.push_back(extra[i]);
        } else if (option.starts_with("-I")) {
            directories.push_back(option.substr(2));
        } else if (option.starts_with("--include-path=") || option.starts_with("-include-path=")) {
            directories.push_back(option.substr(option.find('=') + 1));
        } else if (option.starts_with("-D") || option.starts_with("--define-macro")) {
            if (option.find("has_include") != option.npos) return false;
        } else {
            for (const char* word : {"include", "pch", "time", "file", "@"}) {
                if (option.find(word) != option.npos) return false;
            }
        }
    }
    return true;
}

/// One that has CUDA's headers; others that people list among the toolkit's are theirs, and may be edited.
bool is_toolkit(const std::string& directory) {
    for (const char* header : {"cuda_runtime.h", "cuda_fp16.h", "cub/cub.cuh", "cuda/std/version"}) {
        if (place_at(join(directory, header)).kind == PlaceKind::file) return true;
    }
    return false;
}

class Scan {
  public:
    Scan(const Source& source, const CompileOptions& options, const std::vector<std::string>& toolkit) {
        user_.taken_ns = toolkit_.taken_ns = now_ns();
        if (!source.directory.empty()) {
            scan_.manifest.directory = absolute_path(source.directory);
            search_.push_back(scan_.manifest.directory);
        }
        std::vector<std::string> named = options.include_paths;
        if (!read_search_options(options.extra, named)) fail();
        for (const std::string& path : named) search_.push_back(absolute(path));
        for (const std::string& path : toolkit) {
            search_.push_back(absolute(path));
            if (is_toolkit(search_.back())) toolkit_roots_.push_back(join(search_.back(), ""));
        }
        for (const auto& [name, text] : options.headers) in_memory_.insert(name);
        for (const auto& [name, value] : options.defines) {
            if (value.find("has_include") != value.npos) fail();
        }

        const auto mentions_thrust = [](const std::string& text) {
            return text.find("__THRUST_") != text.npos;
        };
        user_composes_ = mentions_thrust(source.text) ||
                         std::any_of(options.extra.begin(), options.extra.end(), mentions_thrust) ||
                         std::any_of(options.defines.begin(), options.defines.end(),
                                     [&](const auto& define) { return mentions_thrust(define.first); }) ||
                         std::any_of(options.headers.begin(), options.headers.end(),
                                     [&](const auto& header) { return mentions_thrust(header.second); });

        // The canonical name of a program is a path of this directory, and NVRTC looks beside it.
        follow(include_directives(source.text), std::string("/bascule"));
        for (const auto& header : options.headers) {
            follow(include_directives(header.second), [&] { return parent_of(absolute(header.first)); });
        }
        while (scan_.certain && !waiting_.empty()) {
            const auto [facts, directory] = std::move(waiting_.back());
            waiting_.pop_back();
            follow(facts->directives, directory);
        }
    }

    HeaderScan result() && {
        if (!scan_.certain) return {false, {}};
        const bool reached = !user_.empty() || !toolkit_.empty();
        if (!reached) return {};
        scan_.manifest.working_directory = used_working_directory_ ? working_directory() : "";
        scan_.manifest.user = std::move(user_);
        if (!toolkit_.empty()) scan_.manifest.toolkit = toolkit_.to_bytes();
        scan_.manifest.toolkit_digest = digest_of(scan_.manifest.toolkit);
        return std::move(scan_);
    }

  private:
    void fail() { scan_.certain = false; }

    std::string absolute(const std::string& path) {
        if (!path.starts_with('/')) used_working_directory_ = true;
        return absolute_path(path);
    }

    void follow(const IncludeDirectives& directives, const std::string& directory) {
        follow(directives, [&] { return directory; });
    }

    /// `directory`: of the text, asked for only when the text includes something.
    template <std::invocable Directory>
    void follow(const IncludeDirectives& directives, const Directory& directory) {
        if (directives.has_time) return fail();
        if (directives.computed) follow_computed(directory());
        for (const Include& include : directives.includes) {
            if (!scan_.certain) return;
            look_for(include, directory());
        }
    }

    /// Thrust, which CUB uses, composes names of its own headers from macros. All that a toolkit has of that
    /// library is then taken for reached; what others compose is unknown.
    void follow_computed(const std::string& directory) {
        const auto root =
            std::find_if(toolkit_roots_.begin(), toolkit_roots_.end(), [&](const std::string& each) {
                return directory.starts_with(each) && directory.size() > each.size();
            });
        if (root == toolkit_roots_.end() || user_composes_) return fail();
        const std::string library =
            directory.substr(root->size(), directory.find('/', root->size()) - root->size());
        if (!followed_libraries_.insert(*root + library).second) return;
        for (const std::string& path : search_) {
            if (join(path, "") == *root) break;
            // A part of the library in a directory that is searched first: any of its headers may be taken.
            const std::string shadow = join(path, library);
            if (kind_of(shadow) != PlaceKind::missing) return fail();
            add_place(shadow, PlaceKind::missing);
        }
        std::error_code error;
        std::vector<std::string> files;
        for (std::filesystem::recursive_directory_iterator entry(*root + library, error), end;
             !error && entry != end; entry.increment(error)) {
            if (entry->is_regular_file(error)) files.push_back(entry->path().string());
        }
        if (error) return fail();
        std::sort(files.begin(), files.end());
        for (const std::string& file : files) add_file(file);
    }

    /// In the compiler's order, up to the first file. What #include_next means depends on who asks: all
    /// count.
    void look_for(const Include& include, const std::string& directory) {
        if (in_memory_.contains(include.name)) return;  // it wins over every file
        if (include.name.empty()) return;
        if (include.name.starts_with('/')) return static_cast<void>(look_at(include.name, include));
        if (include.quoted && look_at(join(directory, include.name), include) && !include.next) return;
        for (const std::string& path : search_) {
            if (look_at(join(path, include.name), include) && !include.next) return;
        }
    }

    /// Whether a file is there.
    bool look_at(const std::string& path, const Include& include) {
        const PlaceKind kind = kind_of(path);
        const bool is_file = kind == PlaceKind::file;
        if (is_file && !include.is_probe) add_file(path);
        if (is_file && include.is_probe) add_place(path, PlaceKind::file);
        if (kind == PlaceKind::other) add_place(path, PlaceKind::other);
        if (kind == PlaceKind::missing) add_missing(path);
        if (kind == PlaceKind::unknown) fail();
        return is_file;
    }

    PlaceKind kind_of(const std::string& path) {
        const auto known = kinds_.find(path);
        if (known != kinds_.end()) return known->second;
        if (kinds_.size() > most_places) {
            fail();
            return PlaceKind::unknown;
        }
        return kinds_[path] = place_at(path).kind;
    }

    void add_file(const std::string& path) {
        if (!files_.insert(path).second) return;
        const FileIdentity identity = place_at(path).identity;
        const HeaderFactsPointer facts = facts_of(path, identity);
        bytes_ += identity.bytes;
        if (facts == nullptr || files_.size() > most_files || bytes_ > most_bytes) return fail();
        section(path).files.push_back({path, identity, facts->digest});
        // Under another spelling of its path a file is tracked again, and not followed again: else one that
        // includes itself as "../here/x.h" would never end.
        const std::string directory = parent_of(path);
        const FileIdentity place = place_at(join(directory, "")).identity;
        const bool is_new =
            followed_.insert({identity.device, identity.inode, place.device, place.inode}).second;
        if (is_new) waiting_.emplace_back(facts, directory);
    }

    void add_place(const std::string& path, PlaceKind kind) {
        if (places_.insert(path + static_cast<char>(kind)).second)
            section(path).places.push_back({path, kind});
    }

    /// The shallowest of its directories that is missing represents all that is looked for below it.
    void add_missing(const std::string& path) {
        for (std::size_t slash = path.find('/', 1); slash != path.npos; slash = path.find('/', slash + 1)) {
            const std::string ancestor = path.substr(0, slash);
            if (kind_of(ancestor) == PlaceKind::missing) return add_place(ancestor, PlaceKind::missing);
        }
        add_place(path, PlaceKind::missing);
    }

    TrackedHeaders& section(const std::string& path) {
        const bool in_toolkit = std::any_of(toolkit_roots_.begin(), toolkit_roots_.end(),
                                            [&](const std::string& root) { return path.starts_with(root); });
        return in_toolkit ? toolkit_ : user_;
    }

    HeaderScan scan_;
    TrackedHeaders user_, toolkit_;
    std::vector<std::string> search_, toolkit_roots_;
    std::set<std::string> in_memory_;
    std::unordered_map<std::string, PlaceKind> kinds_;  // one stat a path in a scan
    std::unordered_set<std::string> files_, places_;
    std::set<std::array<std::uint64_t, 4>> followed_;  // file and directory, by device and inode
    std::vector<std::pair<HeaderFactsPointer, std::string>> waiting_;
    std::uint64_t bytes_ = 0;
    bool used_working_directory_ = false;
    bool user_composes_ = false;  // may have a say in the names that Thrust composes
    std::set<std::string> followed_libraries_;
};

}  // namespace

HeaderScan scan_headers(const Source& source, const CompileOptions& options,
                        const std::vector<std::string>& toolkit) {
    return Scan(source, options, toolkit).result();
}

}  // namespace bascule
