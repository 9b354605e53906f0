// One look-up from top to bottom: Cache::image finds in memory; else one thread of the process, then one process of the
// machine, finds on disk or compiles, keeps the image in memory and publishes it on disk.
#include <array>
#include <atomic>
#include <cstdio>
#include <exception>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <bascule/jit/cache/cache.hpp>
#include <bascule/jit/cache/cache_key.hpp>
#include <bascule/jit/cache/disk_cache.hpp>
#include <bascule/jit/cache/memory_cache.hpp>
#include <bascule/jit/compile/compile.hpp>
#include <bascule/jit/files/paths.hpp>
#include <bascule/jit/headers/header_scan.hpp>
#include <bascule/jit/process/compile_watch.hpp>
#include <bascule/jit/process/fork_safety.hpp>
#include <bascule/jit/process/log.hpp>

namespace bascule {
namespace {

std::atomic<int> disabled{0};  // how many Cache::Disabled live
std::atomic<Cache::Observer> lookup_observer{nullptr};

/// Of one program while its headers are being edited, because an image may be made in several runs of the compiler.
constexpr int most_compiles_in_a_row = 3;

void print(const std::string& warning) { std::fprintf(stderr, "bascule: %s\n", warning.c_str()); }

HeaderScan scan_headers_of(const Program& program, const Nvrtc& nvrtc) {
    if (program.maker != nullptr) return {};  // it reads none
    std::vector<SearchPath> toolkit;
    for (const std::string& path : nvrtc.include_paths())
        toolkit.push_back({path, nvrtc.found_include_paths() ? installed_ns(path) : 0});
    return scan_headers(program.source, program.options, toolkit);
}

/// What the program is called for people who wait for it.
std::string description_of(const Program& program) {
    if (program.instances.empty()) return program.source.name;
    std::string names = program.instances.front().expression;
    if (program.instances.size() > 1) names += fmt::format(" and {} more", program.instances.size() - 1);
    return fmt::format("{} of {}", names, program.source.name);
}

/// Of `Program::headers`: it concerns the thread that asked with these, and not those that wait for the same key.
struct HeadersChanged : Error {
    using Error::Error;
};

[[noreturn]] void fail_changed(const Program& program, const std::string& what) {
    throw HeadersChanged(
        fmt::format("{} since {}:{} was compiled, so the compiler can no longer be asked about its structs "
                    "and variables. Compile the text again, or restore the header.",
                    what, program.source.name, program.source.first_line));
}

std::string absolute_or_empty(const std::string& directory) {
    return directory.empty() ? directory : absolute_path(directory);
}

/// What the log says of one look-up. `why` it was compiled; an empty key: the cache was not asked.
void report(const Program& program, const Cache::Lookup& lookup, const CacheKey& key,
            const std::string& why) {
    const LogLevel level = lookup.origin == Origin::memory ? LogLevel::debug : LogLevel::info;
    logs(cache_logger, LogLevel::debug);  // from now on hits in memory are logged, or not
    if (!logs(cache_logger, level)) return;
    std::vector<std::string_view> names;
    for (const KernelImage& kernel : lookup.image->kernels)
        names.push_back(kernel.expression.empty() ? kernel.name : kernel.expression);
    std::string text = fmt::format(
        "{} of {}:{} for {}: {}", names.empty() ? "no kernel" : fmt::format("{}", fmt::join(names, ", ")),
        program.source.name, program.source.first_line, to_string(program.arch),
        lookup.origin == Origin::compiled
            ? fmt::format("compiled in {:.0f} ms, because {}", lookup.image->compile_milliseconds,
                          why.empty() ? "the cache is disabled" : why)
            : fmt::format("from {}", to_string(lookup.origin)));
    if (!key.text.empty()) text += fmt::format(" [key {}]", to_string(key.hash));
    log(cache_logger, level, text);
}

}  // namespace

/// What all look-ups share.
struct Cache::State {
    State(ToolkitLocation location, CachePlace place, CacheLimit limit)
        : toolkit(std::move(location)),
          disk(
              std::move(place), [this](const std::string& text) { warn(text); }, std::move(limit)) {}

    void count(Origin origin) noexcept {
        counts[static_cast<std::size_t>(origin)].fetch_add(1, std::memory_order_relaxed);
    }
    std::uint64_t count_of(Origin origin) const noexcept {
        return counts[static_cast<std::size_t>(origin)].load(std::memory_order_relaxed);
    }

    void warn(const std::string& text) {
        WarningHandler current;
        {
            const std::lock_guard lock(fork_safe_mutex());
            if (is_compile_thread()) return postponed.push_back(text);
            current = handler;
        }
        current(text);
    }

    /// What `disk` says on a compile's own thread; a program wants to hear it on the thread that asked.
    void warn_of_compile_threads() {
        std::vector<std::string> texts;
        {
            const std::lock_guard lock(fork_safe_mutex());
            texts.swap(postponed);
        }
        for (const std::string& text : texts) warn(text);
    }

    std::mutex nvrtc_mutex;
    ToolkitLocation toolkit;  // guarded by nvrtc_mutex, as are the next two
    DriverLimit driver_limit;
    std::shared_ptr<const Nvrtc> nvrtc;  // null: not loaded yet
    MemoryCache memory;
    DiskCache disk;
    std::vector<std::string> postponed;  // guarded by fork_safe_mutex(), as is the next
    WarningHandler handler = print;
    std::array<std::atomic<std::uint64_t>, 3> counts{};  // by Origin
};

/// The look-up of a program that is not in memory. It owns what it uses: its compile goes on when the wait for it was
/// interrupted, and then nothing looks at what came of it.
struct Cache::Search final : MemoryCache::Job, std::enable_shared_from_this<Search> {
    Search(std::shared_ptr<State> the_state, Program the_program, std::shared_ptr<const Nvrtc> the_nvrtc,
           CacheKey the_key, WantedHeaders the_headers)
        : state(std::move(the_state)),
          program(std::move(the_program)),
          nvrtc(std::move(the_nvrtc)),
          key(std::move(the_key)),
          wanted(std::move(the_headers)) {}

    // --- The steps, in their order

    /// Among the threads of the process one finds or compiles, and the others wait.
    Lookup find_or_compile_once() {
        // Ends: a round without an outcome is one in which another thread made the image of other headers than ours.
        while (!outcome) {
            state->memory.run_once(key, description_of(program), shared_from_this());
            if (headers_changed) std::rethrow_exception(headers_changed);
            // The headers are not known, so nothing can be shared: each thread compiles its own, at the same time.
            if (!doubt.empty()) return compile_unshared();
            if (!outcome) outcome = find_in_memory(*state, key, wanted);
        }
        if (outcome->origin == Origin::compiled) state->disk.sweep_if_due();
        return *outcome;
    }

    static std::optional<Lookup> find_in_memory(State& state, const CacheKey& key,
                                                const WantedHeaders& wanted) {
        const MemoryCache::Entry known = state.memory.find(key, wanted);
        if (known.image == nullptr) return std::nullopt;
        return Lookup{known.image, Origin::memory, known.headers};
    }

    bool find() override {
        outcome = find_in_memory(*state, key, wanted);  // another thread may have made it meanwhile
        if (!outcome) find_on_disk();
        if (!outcome && logs(cache_logger, LogLevel::info))
            why = state->disk.why_missing(key, wanted.source_directory);
        return outcome.has_value();
    }

    void find_on_disk() {
        const DiskCache::Found found = state->disk.load(key, wanted);
        place = found.place;
        if (found.entry.image == nullptr) return;
        state->memory.keep(key, {found.entry.image, found.entry.headers});
        outcome = {found.entry.image, Origin::disk, found.entry.headers};
    }

    void make() override {
        HeaderScan scan = scan_headers_of(program, *nvrtc);
        doubt = scan.doubt;
        if (!scan.certain) why = "it is compiled each time, because " + doubt;
        if (!scan.certain) return;
        const auto lock = lock_among_processes();
        if (lock) find_on_disk();  // the process that had the lock before has most likely stored it
        if (outcome) return;
        if (!scan.manifest.untouched()) {  // that took its time
            HeaderScan now = scan_headers_of(program, *nvrtc);
            if (now.certain) scan = std::move(now);
        }
        try {
            compile_and_keep(std::move(scan));
        } catch (const HeadersChanged&) {
            headers_changed = std::current_exception();
        }
    }

    std::optional<CacheDirectory::Lock> lock_among_processes() const {
        return is_stored() ? state->disk.lock(key) : std::nullopt;
    }

    /// Again while headers are being edited.
    void compile_and_keep(HeaderScan scan) {
        for (int left = most_compiles_in_a_row; left > 0; --left) {
            outcome = compile_from(scan, &scan.manifest);
            if (outcome->headers_known) return keep_and_publish(scan.manifest);
            HeaderScan now = scan_headers_of(program, *nvrtc);
            if (!now.certain || now.manifest.is_equivalent(scan.manifest)) return;
            scan = std::move(now);
        }
    }

    Image make_image(const HeaderManifest* reached) const {
        return program.maker != nullptr ? program.maker->make(program.arch)
                                        : compile(program, *nvrtc, reached);
    }

    /// `reached`: for precompiled headers, or null.
    Lookup compile_from(const HeaderScan& scan, const HeaderManifest* reached) const {
        if (program.headers != nullptr && scan.certain && !scan.manifest.is_equivalent(*program.headers))
            fail_changed(program, program.headers->difference(scan.manifest.directory));
        Lookup made{.image = std::make_shared<const Image>(make_image(reached))};
        state->count(Origin::compiled);  // here: the wait for it may have ended
        // A header that was edited during the compile: the image may be of either text.
        made.headers_known = scan.certain && scan.manifest.untouched();
        if (program.headers != nullptr && !made.headers_known) fail_changed(program, "a header has changed");
        if (made.headers_known && !scan.manifest.empty())
            made.headers = std::make_shared<const HeaderManifest>(scan.manifest);
        return made;
    }

    void keep_and_publish(const HeaderManifest& headers) {
        state->memory.keep(key, {outcome->image, outcome->headers});
        if (is_stored()) state->disk.store(key, place, headers, *outcome->image);
    }

    /// For this caller and no other.
    Lookup compile_unshared() {
        run_watched(description_of(program), [search = shared_from_this()] {
            search->outcome = search->compile_from(scan_headers_of(search->program, *search->nvrtc), nullptr);
        });
        return *outcome;
    }

    // --- What they need

    /// A library without an identity may be another one in another process.
    bool is_stored() const { return !nvrtc->identity().empty(); }

    std::shared_ptr<State> state;
    Program program;
    std::shared_ptr<const Nvrtc> nvrtc;
    CacheKey key;
    WantedHeaders wanted;

    // What came of it.
    std::optional<Lookup> outcome{};
    int place = 0;                         // on disk, of a new entry
    std::string doubt{};                   // why it is not known which headers it reads; empty: it is
    std::exception_ptr headers_changed{};  // thrown to the thread that asks alone
    std::string why{};                     // it is not on disk
};

const char* to_string(Origin origin) noexcept {
    static constexpr const char* names[] = {"compiled", "memory", "disk"};
    return names[static_cast<std::size_t>(origin)];
}

Cache::Cache(ToolkitLocation toolkit, CachePlace place, CacheLimit limit)
    : state_(std::make_shared<State>(std::move(toolkit),
                                     CachePlace(absolute_or_empty(place.path), std::move(place.problem)),
                                     std::move(limit))) {}
Cache::~Cache() = default;

Cache::Lookup Cache::image(const Program& program) {
    const Observer observer = lookup_observer.load(std::memory_order_acquire);
    return observer == nullptr ? find_or_compile(program) : observer(*this, program);
}

Cache::Lookup Cache::find_or_compile(const Program& asked) {
    const std::shared_ptr<const Nvrtc> compiler = nvrtc();
    // A device's architecture, which the user did not name, may be newer than the compiler.
    const bool is_chosen = asked.options.arch || asked.maker != nullptr;
    const Arch arch = is_chosen ? asked.arch : compiler->nearest(asked.arch);
    std::optional<Program> changed;
    if (arch != asked.arch) changed.emplace(asked).arch = arch;
    const Program& program = changed ? *changed : asked;

    const bool alone = is_disabled();
    CacheKey key = alone ? CacheKey{} : key_of(program, *compiler);
    WantedHeaders wanted{absolute_or_empty(program.source.directory), program.headers};
    if (const auto known = alone ? std::nullopt : Search::find_in_memory(*state_, key, wanted)) {
        state_->count(Origin::memory);
        if (logs_memory_hits()) report(program, *known, key, {});
        return *known;
    }
    const auto search =
        std::make_shared<Search>(state_, program, compiler, std::move(key), std::move(wanted));
    Lookup lookup = alone ? search->compile_unshared() : search->find_or_compile_once();
    if (lookup.origin == Origin::compiled) {
        state_->warn_of_compile_threads();
    } else {
        state_->count(lookup.origin);
    }
    if (lookup.origin != Origin::memory || logs_memory_hits())
        report(program, lookup, search->key, search->why);
    return lookup;
}

std::shared_ptr<const Nvrtc> Cache::nvrtc() {
    const std::lock_guard lock(state_->nvrtc_mutex);
    if (state_->nvrtc == nullptr)
        state_->nvrtc = std::make_shared<const Nvrtc>(state_->toolkit, state_->driver_limit);
    return state_->nvrtc;
}

void Cache::set_toolkit(ToolkitLocation toolkit) {
    const std::lock_guard lock(state_->nvrtc_mutex);
    if (toolkit != state_->toolkit) state_->nvrtc = nullptr;
    state_->toolkit = std::move(toolkit);
}

void Cache::set_driver_limit(const DriverLimit& limit) {
    const std::lock_guard lock(state_->nvrtc_mutex);
    if (limit != state_->driver_limit) state_->nvrtc = nullptr;
    state_->driver_limit = limit;
}

void Cache::set_observer(Observer observer) noexcept {
    lookup_observer.store(observer, std::memory_order_release);
}

CacheStatistics Cache::statistics() const noexcept {
    return {state_->count_of(Origin::compiled), state_->count_of(Origin::memory),
            state_->count_of(Origin::disk), Nvrtc::compile_calls()};
}

void Cache::clear() noexcept { state_->memory.clear(); }
DiskCache& Cache::disk() noexcept { return state_->disk; }

Cache::Disabled::Disabled() noexcept { disabled.fetch_add(1, std::memory_order_relaxed); }
Cache::Disabled::~Disabled() { disabled.fetch_sub(1, std::memory_order_relaxed); }
bool Cache::is_disabled() noexcept { return disabled.load(std::memory_order_relaxed) != 0; }

void Cache::set_warning_handler(WarningHandler handler) {
    const std::lock_guard lock(fork_safe_mutex());
    state_->handler = std::move(handler);
}

Cache& Cache::process_default() {
    static Cache& cache = *new Cache(ToolkitLocation{}, default_cache_place(), default_cache_limit());
    return cache;
}

}  // namespace bascule
