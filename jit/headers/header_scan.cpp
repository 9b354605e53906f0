#include <algorithm>
#include <cerrno>
#include <deque>
#include <set>
#include <unordered_map>
#include <unordered_set>

#include <fmt/format.h>

#include <bascule/interface/errors/error.hpp>
#include <bascule/interface/errors/wording.hpp>
#include <bascule/jit/files/paths.hpp>
#include <bascule/jit/headers/computed_include.hpp>
#include <bascule/jit/headers/header_scan.hpp>
#include <bascule/jit/headers/include_directives.hpp>
#include <bascule/jit/headers/pasted_words.hpp>
#include <bascule/jit/headers/search_path.hpp>
#include <bascule/jit/options/option_table.hpp>
#include <bascule/jit/process/fork_and_exit.hpp>
#include <bascule/jit/process/never_destroyed.hpp>
#include <bascule/jit/text/name_rows.hpp>

namespace bascule {
namespace {

// --- The facts about a header that a scan needs. Each header is read once per process.

struct HeaderFacts {
    FileIdentity identity;
    std::int64_t read_ns = 0;  ///< before it was read
    Digest digest;
    IncludeDirectives directives;
};

using KnownHeaders = std::unordered_map<std::string, std::shared_ptr<const HeaderFacts>>;

constexpr std::size_t most_known = 20'000;  // CUB includes some 700

/// Guarded by fork_safe_mutex().
KnownHeaders& known_headers() { return never_destroyed<KnownHeaders>(); }

/// The facts of the file at `path`, which has this identity. They are remembered, so that the next program that
/// includes CUB need not read it again. Null if the file cannot be read or changes meanwhile. Thread-safe.
std::shared_ptr<const HeaderFacts> facts_of(const std::string& path, const FileIdentity& identity) {
    {
        const std::lock_guard lock(fork_safe_mutex());
        const auto known = known_headers().find(path);
        if (known != known_headers().end() && known->second->identity == identity &&
            identity.changed_ns + 2'000'000'000 < known->second->read_ns)
            return known->second;
    }
    auto facts = std::make_shared<HeaderFacts>();
    facts->identity = identity;
    facts->read_ns = now_ns();
    const std::optional<std::string> text = read_file(path);
    // If the size is not that of the content (/proc), the times are not reliable either.
    if (!text || text->size() != identity.bytes || place_at(path).identity != identity) return nullptr;
    facts->digest = digest_of(*text);
    facts->directives = include_directives(*text);
    const std::lock_guard lock(fork_safe_mutex());
    if (known_headers().size() > most_known) known_headers().clear();
    return known_headers()[path] = std::move(facts);
}

constexpr std::size_t most_files = 20'000;  // CUB includes some 700
constexpr std::size_t most_places = 200'000;
constexpr std::uint64_t most_bytes = 1U << 30;  // of all headers together

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
        const auto wait_for = [&](std::string_view text, const std::string& path, std::string name) {
            auto directives = std::make_shared<const IncludeDirectives>(include_directives(text));
            const bool includes = !directives->includes.empty() || !directives->computed.empty();
            // The directories matter only if the text includes something.
            waiting_.push_back({std::move(directives), includes ? parent_of(absolute(path)) : "",
                                std::move(name), Owner::user, text});
        };
        for (const auto& [name, value] : options.defines)
            wait_for(own_texts_.emplace_back(fmt::format("#define {} {}", name, value)), "",
                     "the define " + name);
        // NVRTC searches the directory of the program's name, even if no such file exists.
        wait_for(source.text, program_name(source, options), "the text");
        for (auto& [name, text] : memory_headers(options))
            wait_for(own_texts_.emplace_back(std::move(text)), name, name);
        do {
            for (; scan_.certain && !waiting_.empty(); waiting_.pop_front()) follow(waiting_.front());
            if (scan_.certain) follow_computed();
        } while (scan_.certain && !waiting_.empty());
        if (scan_.certain && pastes_ && can_paste_probe(fragments_) && may_paste_probe())
            fail("## may join its words to __has_include or the like");
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
    /// The author of a text. The scan gives up if a macro wraps __has_include, except in CCCL's headers. Words that ##
    /// may join to __has_include are collected from the user's texts only.
    enum class Owner : std::uint8_t { user, toolkit, cccl };
    struct Text {
        std::shared_ptr<const IncludeDirectives> directives;
        std::string directory;
        std::string name;  ///< for messages; the path of a file
        Owner owner = Owner::user;
        std::optional<std::string_view> text{};  ///< empty for a file
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

    /// False while files may still be installed: they could change again and yet count as installed.
    bool is_finished(const SearchPath& toolkit) const { return toolkit.installed_ns <= user_.taken_ns; }

    std::string absolute(const std::string& path) {
        if (!path.starts_with('/')) used_working_directory_ = true;
        return absolute_path(path);
    }

    void follow(const Text& text) {
        const IncludeDirectives& directives = *text.directives;
        if (directives.doubtful)
            return fail(text.name +
                        " uses __has_include, #include or __TIME__ as only a preprocessor understands");
        pastes_ = pastes_ || directives.pastes;
        if (text.owner != Owner::cccl && directives.wraps_probe)
            return fail(text.name + " wraps __has_include in a macro");
        if (text.owner == Owner::user)
            fragments_.insert(directives.fragments.begin(), directives.fragments.end());
        for (const Include& include : directives.includes) {
            if (!scan_.certain) return;
            look_for(include, text.directory);
        }
        followed_.push_back(text);
    }

    /// Finds the headers that macros name. They may define macros too, so this is repeated after they are followed.
    void follow_computed() {
        const auto computes = [](const Text& text) { return !text.directives->computed.empty(); };
        if (std::ranges::none_of(followed_, computes)) return;
        MacroDefinitions definitions;
        for (const Text& text : followed_) {
            for (const MacroDefinition& each : text.directives->definitions) {
                std::vector<std::string_view>& known = definitions[each.name];
                if (std::ranges::find(known, each.rest) == known.end()) known.push_back(each.rest);
            }
        }
        for (const Text& text : followed_) {
            for (const ComputedInclude& include : text.directives->computed) {
                const auto named = headers_named_by(include, definitions);
                if (!named) return fail(text.name + " includes what a macro names");
                for (const Include& each : *named) look_for(each, text.directory);
            }
        }
    }

    /// A more exact check, for texts that have a variable for almost every letter: their words can be joined to
    /// __has_include. But ## joins only arguments of macros and words of their bodies.
    bool may_paste_probe() const {
        PastingMacros macros;
        std::set<std::string> fragments;
        for (const Text& text : followed_) {
            for (const MacroDefinition& each : text.directives->definitions) {
                // A toolkit's `#define __host__ __location__(host)` joins nothing that follows it.
                const bool is_call =
                    text.owner != Owner::user && !each.rest.starts_with('(') && each.rest.ends_with(')');
                if (!is_call) macros.add(each);
                if (text.owner == Owner::user) fragments.merge(fragments_of(each));
            }
        }
        if (!macros.close()) return true;
        for (const Text& each : followed_) {
            if (each.owner != Owner::user) continue;
            const std::optional<std::string> file = each.text ? std::nullopt : read_file(each.name);
            if (!each.text && !file) return true;
            auto pasted = pasted_fragments(each.text ? *each.text : *file, macros);
            if (!pasted) return true;
            fragments.merge(*pasted);
        }
        return can_paste_probe(fragments);
    }

    /// Decides by the file's path below the toolkit's root.
    static Owner owner_of(const std::string& path, const SearchPath* root) {
        static constexpr std::string_view of_toolkit =
            "builtin_types* channel_descriptor* common_functions* cooperative_groups* crt* cuComplex* cuda* curand* "
            "device_* driver_* host_* library_types* math_* mma.h* nv* sm_* surface_* texture_* vector_*";
        if (root == nullptr) return Owner::user;
        const std::string part = first_part(path, *root);
        if (fits_one("cub cuda thrust", part)) return Owner::cccl;
        return fits_one(of_toolkit, part) ? Owner::toolkit : Owner::user;
    }

    /// `cub` of `ROOT/cub/block/block_reduce.cuh`.
    static std::string first_part(const std::string& path, const SearchPath& root) {
        return path.substr(root.path.size(), path.find('/', root.path.size()) - root.path.size());
    }

    const SearchPath* root_of(const std::string& path) const {
        const SearchPath* found = nullptr;  // the longest, because CCCL's may be inside another
        for (const SearchPath& root : roots_) {
            const bool longer = found == nullptr || root.path.size() > found->path.size();
            if (longer && path.starts_with(root.path)) found = &root;
        }
        return found;
    }

    /// Searches in the compiler's order up to the first file. For #include_next, which depends on where the including
    /// file was found, all files count.
    void look_for(const Include& include, const std::string& directory) {
        scan_.names_headers = true;
        if (in_memory_.contains(include.name)) return;  // takes precedence over every file
        if (include.name.starts_with('/')) return static_cast<void>(look_at(include.name, include));
        if (include.quoted && look_at(join(directory, include.name), include) && !include.next) return;
        for (const std::string& path : search_) {
            if (look_at(join(path, include.name), include) && !include.next) return;
        }
    }

    /// Records what is at this path. True if it is a file.
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

    /// Refuses a pipe or a device, because NVRTC would open it and wait for its end.
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
        // Files that were added to a toolkit's directory later count as the user's.
        const SearchPath* root = root_of(path);
        const Owner owner = owner_of(path, root);
        const bool installed = owner != Owner::user && identity.changed_ns <= root->installed_ns;
        (installed ? toolkit_ : user_).files.push_back({path, identity, facts->digest});
        // Under another spelling of its path a file is tracked again but not followed again. Otherwise the scan of a
        // file that includes itself as "../here/x.h" would not end.
        const std::string directory = parent_of(path);
        const FileIdentity place = place_at(join(directory, "")).identity;
        const bool is_new =
            known_.insert({identity.device, identity.inode, place.device, place.inode}).second;
        if (is_new) waiting_.push_back({{facts, &facts->directives}, directory, path, owner});
    }

    /// Tracks places in a toolkit too, so that a header that is added there later is noticed.
    void add_place(const std::string& path, PlaceKind kind) {
        if (!places_.insert(path + static_cast<char>(kind)).second) return;
        user_.places.push_back({path, kind});
        kind == PlaceKind::missing ? scan_.manifest.way.add_missing(path) : scan_.manifest.way.add(path);
    }

    /// If directories of the path are missing, the topmost missing one represents all paths below it.
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
    std::vector<SearchPath>
        roots_;  // directories of CUDA's headers, installed or a user's copy; paths end with '/'
    std::set<std::string> in_memory_;
    std::unordered_map<std::string, PlaceKind> kinds_;  // so that a scan takes one stat for each path
    std::unordered_set<std::string> files_, places_;
    std::set<std::array<std::uint64_t, 4>> known_;  // file and directory, by device and inode
    std::deque<std::string> own_texts_;
    std::deque<Text> waiting_;
    std::vector<Text> followed_;
    std::uint64_t bytes_ = 0;
    bool used_working_directory_ = false;
    bool pastes_ = false;              // a text uses ##, the toolkit's included
    std::set<std::string> fragments_;  // of the user's texts
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
    // An installation takes minutes. Files of a package that is installed later count as the user's and are checked
    // each time.
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
