#include <algorithm>
#include <array>
#include <cerrno>
#include <filesystem>
#include <memory>
#include <set>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include <fmt/format.h>

#include <bascule/interface/errors/error.hpp>
#include <bascule/interface/errors/language.hpp>
#include <bascule/jit/files/paths.hpp>
#include <bascule/jit/headers/header_facts.hpp>
#include <bascule/jit/headers/header_scan.hpp>
#include <bascule/jit/headers/include_directives.hpp>
#include <bascule/jit/headers/search_path.hpp>
#include <bascule/jit/text/lexer.hpp>
#include <bascule/jit/text/name_rows.hpp>
#include <bascule/jit/text/nvrtc_options.hpp>

namespace bascule {
namespace {

constexpr std::size_t most_files = 20'000;  // CUB reaches some 700
constexpr std::size_t most_places = 200'000;
constexpr std::uint64_t most_bytes = 1U << 30;  // of all headers together

/// The words of a path, which a macro of that name would change where the path is composed.
std::vector<std::string> words_of_path(const std::string& path) {
    std::vector<std::string> words;
    std::string word;
    for (const char c : path + "/") {
        if (continues_word(c)) {
            word += c;
        } else {
            words.push_back(std::exchange(word, {}));
        }
    }
    return words;
}

/// A directory of CUDA's headers: an installation's or a user's copy.
struct ToolkitRoot {
    std::string path;  ///< ends with '/'
    std::int64_t installed_ns = 0;
};

class Scan {
  public:
    Scan(const Source& source, const CompileOptions& options, std::span<const SearchPath> toolkit) {
        user_.taken_ns = toolkit_.taken_ns = now_ns();
        if (!source.directory.empty()) {
            scan_.manifest.directory = absolute_path(source.directory);
            search_.push_back(scan_.manifest.directory);
        }
        for (const std::string& path : options.include_paths) add_search_path({path});
        for (const SearchPath& path : toolkit) add_search_path(path);
        for (const auto& [name, text] : options.headers) in_memory_.insert(name);
        for (const std::string& option : options.extra) {
            if (!leaves_files_alone(option)) fail(fmt::format("the option {} may name files", option));
        }
        for (const auto& [name, value] : options.defines) {
            follow(include_directives(fmt::format("#define {} {}", name, value)), "", Owner::user,
                   "the define " + name);
        }

        // NVRTC looks beside the file that the program's name is, whether or not there is one.
        follow(include_directives(source.text), parent_of(program_name(source, options)), Owner::user,
               "the text");
        for (const auto& [name, text] : memory_headers(options)) {
            const IncludeDirectives directives = include_directives(text);
            // Without an #include it does not matter where the header is, nor what the working directory is.
            const std::string directory = directives.includes.empty() ? "" : parent_of(absolute(name));
            follow(directives, directory, Owner::user, name);
        }
        while (scan_.certain && !waiting_.empty()) {
            const Waiting next = std::move(waiting_.back());
            waiting_.pop_back();
            follow(next.facts->directives, next.directory, next.owner, next.path);
        }
        if (pastes_ && can_paste_probe(fragments_))
            fail("## may join its words to __has_include or the like");
        if (may_change_composed_names())
            fail("one of its macros may be part of a name that the CUDA headers compose");
    }

    HeaderScan result() && {
        if (!scan_.certain) return {.certain = false, .manifest = {}, .doubt = std::move(scan_.doubt)};
        const bool reached = !user_.empty() || !toolkit_.empty();
        if (!reached) return {.names_headers = scan_.names_headers, .manifest = {}};
        scan_.manifest.working_directory = used_working_directory_ ? working_directory() : "";
        scan_.manifest.user = std::move(user_);
        if (!toolkit_.empty()) scan_.manifest.toolkit = toolkit_.to_bytes();
        scan_.manifest.toolkit_digest = digest_of(scan_.manifest.toolkit);
        return std::move(scan_);
    }

  private:
    /// CCCL's headers wrap __has_include and compose names; any others that do make a program doubtful. What
    /// words a toolkit uses and which macros it defines does not.
    enum class Owner : std::uint8_t { user, toolkit, cccl };
    struct Waiting {
        std::shared_ptr<const HeaderFacts> facts;
        std::string directory;
        Owner owner = Owner::user;
        std::string path{};
    };

    void fail(std::string why) {
        if (scan_.certain) scan_.doubt = std::move(why);
        scan_.certain = false;
    }

    void add_search_path(const SearchPath& added) {
        search_.push_back(absolute(added.path));
        if (has_cuda_headers(search_.back()))
            roots_.push_back({join(search_.back(), ""), is_finished(added) ? added.installed_ns : 0});
    }

    /// What is being installed may still change without a later time than that of the installation.
    bool is_finished(const SearchPath& toolkit) const { return toolkit.installed_ns <= user_.taken_ns; }

    std::string absolute(const std::string& path) {
        if (!path.starts_with('/')) used_working_directory_ = true;
        return absolute_path(path);
    }

    /// `directory`: of the text; `name`: for people.
    void follow(const IncludeDirectives& directives, const std::string& directory, Owner owner,
                const std::string& name) {
        if (directives.doubtful)
            return fail(name +
                        " uses __has_include, #include or __TIME__ as only a preprocessor understands");
        pastes_ = pastes_ || directives.pastes;
        if (owner != Owner::cccl && directives.computed) return fail(name + " includes what a macro names");
        if (owner != Owner::cccl && directives.wraps_probe)
            return fail(name + " wraps __has_include in a macro");
        if (owner == Owner::user) {
            fragments_.insert(directives.fragments.begin(), directives.fragments.end());
            macros_.insert(directives.macros.begin(), directives.macros.end());
        }
        if (directives.computed) follow_composed(directory);
        for (const Include& include : directives.includes) {
            if (!scan_.certain) return;
            look_for(include, directory);
        }
    }

    /// Thrust, which CUB uses, composes names of its own headers from macros. All that the toolkit has of that
    /// library is then taken for reached.
    void follow_composed(const std::string& directory) {
        const ToolkitRoot& root = *root_of(directory);
        const std::string library = first_part(directory, root);
        if (!composing_libraries_.insert(root.path + library).second) return;
        for (const std::string& path : search_) {
            if (join(path, "") == root.path) break;
            if (is_host_headers(path)) continue;  // Thrust composes none of their names
            // A part of the library in a directory that is searched first: any of its headers may be taken.
            const std::string shadow = join(path, library);
            if (kind_of(shadow) != PlaceKind::missing)
                return fail(shadow + " may replace headers whose names are composed");
            add_place(shadow, PlaceKind::missing);
        }
        std::error_code error;
        std::vector<std::string> files;
        for (std::filesystem::recursive_directory_iterator entry(root.path + library, error), end;
             !error && entry != end; entry.increment(error)) {
            if (entry->is_regular_file(error)) files.push_back(entry->path().string());
        }
        if (error) return fail(root.path + library + " cannot be read");
        std::ranges::sort(files);
        for (const std::string& file : files) {
            for (const std::string& word : words_of_path(file.substr(root.path.size())))
                composing_words_.insert(word);
            add_file(file);
        }
    }

    /// Whether a macro of the user's can be part of a name that the toolkit composes.
    bool may_change_composed_names() const {
        if (composing_libraries_.empty()) return false;
        return std::ranges::any_of(macros_, [&](const std::string& macro) {
            return macro.find("THRUST") != macro.npos || composing_words_.contains(macro);
        });
    }

    /// By its name.
    static Owner owner_of(const std::string& path, const ToolkitRoot* root) {
        static constexpr std::string_view of_toolkit =
            "builtin_types* channel_descriptor* common_functions* cooperative_groups* crt* cuComplex* cuda* curand* "
            "device_* driver_* host_* library_types* math_* mma.h* nv* sm_* surface_* texture_* vector_*";
        if (root == nullptr) return Owner::user;
        const std::string part = first_part(path, *root);
        if (fits_one("cub cuda thrust", part)) return Owner::cccl;
        return fits_one(of_toolkit, part) ? Owner::toolkit : Owner::user;
    }

    /// `cub` of `ROOT/cub/block/block_reduce.cuh`.
    static std::string first_part(const std::string& path, const ToolkitRoot& root) {
        return path.substr(root.path.size(), path.find('/', root.path.size()) - root.path.size());
    }

    const ToolkitRoot* root_of(const std::string& path) const {
        const ToolkitRoot* found = nullptr;  // the longest: CCCL's may be in another
        for (const ToolkitRoot& root : roots_) {
            const bool longer = found == nullptr || root.path.size() > found->path.size();
            if (longer && path.starts_with(root.path)) found = &root;
        }
        return found;
    }

    /// In the compiler's order, up to the first file. What #include_next means depends on who asks: all
    /// count.
    void look_for(const Include& include, const std::string& directory) {
        scan_.names_headers = true;
        if (in_memory_.contains(include.name)) return;  // it wins over every file
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
        if (kind == PlaceKind::other) {
            if (is_endless(path)) refuse_endless(path);
            add_place(path, PlaceKind::other);
        }
        if (kind == PlaceKind::missing) add_missing(path);
        if (kind == PlaceKind::unknown) fail(path + " cannot be looked at");
        return is_file;
    }

    /// NVRTC would open it and wait for its end.
    [[noreturn]] static void refuse_endless(const std::string& path) {
        throw FileError(
            fmt::format("the header {} is a pipe or a device, which may have no end. Make it a file, or pass "
                        "its text: {}.",
                        path,
                        advice("CompileOptions(headers={\"name.h\": text})", "CompileOptions::headers")),
            path, EINVAL);
    }

    PlaceKind kind_of(const std::string& path) {
        const auto known = kinds_.find(path);
        if (known != kinds_.end()) return known->second;
        if (kinds_.size() > most_places) {
            fail("headers are looked for in too many places");
            return PlaceKind::unknown;
        }
        return kinds_[path] = includable_at(path);
    }

    void add_file(const std::string& path) {
        if (!files_.insert(path).second) return;
        scan_.manifest.way.add(path);  // before it is read
        const FileIdentity identity = place_at(path).identity;
        const std::shared_ptr<const HeaderFacts> facts = facts_of(path, identity);
        bytes_ += identity.bytes;
        if (facts == nullptr) return fail(path + " cannot be read");
        if (files_.size() > most_files || bytes_ > most_bytes)
            return fail("it includes too many headers, or too large ones");
        // What came into a toolkit's directory later is a user's, and so is what no toolkit has.
        const ToolkitRoot* root = root_of(path);
        const Owner owner = owner_of(path, root);
        const bool installed = owner != Owner::user && identity.changed_ns <= root->installed_ns;
        (installed ? toolkit_ : user_).files.push_back({path, identity, facts->digest});
        // Under another spelling of its path a file is tracked again, and not followed again: else one that
        // includes itself as "../here/x.h" would never end.
        const std::string directory = parent_of(path);
        const FileIdentity place = place_at(join(directory, "")).identity;
        const bool is_new =
            followed_.insert({identity.device, identity.inode, place.device, place.inode}).second;
        if (is_new) waiting_.push_back({facts, directory, owner, path});
    }

    /// A place in a toolkit too: a header that comes there later is noticed.
    void add_place(const std::string& path, PlaceKind kind) {
        if (!places_.insert(path + static_cast<char>(kind)).second) return;
        user_.places.push_back({path, kind});
        kind == PlaceKind::missing ? scan_.manifest.way.add_missing(path) : scan_.manifest.way.add(path);
    }

    /// The shallowest of its directories that is missing represents all that is looked for below it.
    void add_missing(const std::string& path) {
        for (std::size_t slash = path.find('/', 1); slash != path.npos; slash = path.find('/', slash + 1)) {
            const std::string ancestor = path.substr(0, slash);
            if (kind_of(ancestor) == PlaceKind::missing) return add_place(ancestor, PlaceKind::missing);
        }
        add_place(path, PlaceKind::missing);
    }

    HeaderScan scan_;
    TrackedHeaders user_, toolkit_;
    std::vector<std::string> search_;
    std::vector<ToolkitRoot> roots_;
    std::set<std::string> in_memory_;
    std::unordered_map<std::string, PlaceKind> kinds_;  // one stat a path in a scan
    std::unordered_set<std::string> files_, places_;
    std::set<std::array<std::uint64_t, 4>> followed_;  // file and directory, by device and inode
    std::vector<Waiting> waiting_;
    std::uint64_t bytes_ = 0;
    bool used_working_directory_ = false;
    bool pastes_ = false;                        // anything, a toolkit's macro too
    std::set<std::string> fragments_, macros_;   // of the user's texts
    std::set<std::string> composing_libraries_;  // directories
    std::set<std::string> composing_words_;      // of which those compose names
};

void add_templates(const std::string& text, std::vector<KernelDeclaration>& templates) {
    for (KernelDeclaration& declaration : find_kernels(text)) {
        const bool is_known = std::ranges::any_of(templates, [&](const KernelDeclaration& each) {
            return each.name == declaration.name && each.parameter_types == declaration.parameter_types &&
                   each.template_parameters == declaration.template_parameters;
        });
        if (declaration.is_template && !is_known) templates.push_back(std::move(declaration));
    }
}

}  // namespace

std::int64_t installed_ns(const std::string& directory) {
    // An installation writes a directory within minutes; a package that is installed later looks like a
    // user's files, which are looked at each time.
    constexpr std::int64_t duration_ns = 300'000'000'000;
    std::int64_t newest = 0;
    for (const char* header : cuda_headers) {
        const Place place = place_at(join(directory, header));
        if (place.kind == PlaceKind::file) newest = std::max(newest, place.identity.changed_ns + duration_ns);
    }
    return newest;
}

HeaderScan scan_headers(const Source& source, const CompileOptions& options,
                        std::span<const SearchPath> toolkit) {
    return Scan(source, options, toolkit).result();
}

std::vector<KernelDeclaration> header_templates(const Source& source, const CompileOptions& options) {
    std::vector<KernelDeclaration> templates;
    for (const auto& [name, text] : options.headers) add_templates(text, templates);
    for (const TrackedFile& header : scan_headers(source, options, {}).manifest.user.files) {
        if (const auto text = read_file(header.path)) add_templates(*text, templates);
    }
    return templates;
}

}  // namespace bascule
