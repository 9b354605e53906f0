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

std::vector<SearchPath> search_paths(const Nvrtc& nvrtc) {
    std::vector<SearchPath> paths;
    for (const std::string& path : nvrtc.include_paths()) {
        paths.push_back({path, nvrtc.found_include_paths() ? installed_ns(path) : 0});
    }
    return paths;
}

/// What a person calls the program who waits for it.
std::string description_of(const Program& program) {
    if (program.instances.empty()) return program.source.name;
    std::string names = program.instances.front().expression;
    if (program.instances.size() > 1) names += fmt::format(" and {} more", program.instances.size() - 1);
    return fmt::format("{} of {}", names, program.source.name);
}

/// Of `Program::headers`: it concerns who asks, and not who waits for the same key.
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

}  // namespace

struct Cache::State {
    State(std::string directory, CacheLimit limit)
        : disk(
              std::move(directory), [this](const std::string& text) { warn(text); }, std::move(limit)) {}

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

    /// Counts here and not where the image is asked for: nobody may be waiting for it any more.
    std::shared_ptr<const Image> compile(const Program& program, const Nvrtc& nvrtc,
                                         const HeaderManifest* reached) {
        auto image = std::make_shared<const Image>(Compiler::compile(program, nvrtc, reached));
        compiled.fetch_add(1, std::memory_order_relaxed);
        return image;
    }

    /// `place` of a new entry, where there is none.
    std::optional<Lookup> take_from_disk(const CacheKey& key, const WantedHeaders& wanted, int& place) {
        const DiskCache::Found found = disk.load(key, wanted);
        place = found.place;
        const CacheEntry& entry = found.entry;
        if (entry.image == nullptr) return std::nullopt;
        memory.keep(key, {entry.image, entry.headers});
        return Lookup{entry.image, Origin::disk, entry.headers};
    }

    Lookup compile_and_keep(const Program& program, const Nvrtc& nvrtc, const CacheKey& key,
                            const HeaderScan& scan, int place) {
        const Lookup made = compile_from(program, nvrtc, scan, &scan.manifest);
        if (!made.headers_known) return made;
        memory.keep(key, {made.image, made.headers});
        if (!nvrtc.identity().empty()) disk.store(key, place, scan.manifest, *made.image);
        return made;
    }

    /// `reached`: for precompiled headers, or null.
    Lookup compile_from(const Program& program, const Nvrtc& nvrtc, const HeaderScan& scan,
                        const HeaderManifest* reached) {
        if (program.headers != nullptr && scan.certain && !scan.manifest.is_equivalent(*program.headers))
            fail_changed(program, program.headers->difference(scan.manifest.directory));
        Lookup made{.image = compile(program, nvrtc, reached)};
        // A header that was edited during the compile: the image may be of either text.
        made.headers_known = scan.certain && scan.manifest.untouched();
        if (program.headers != nullptr && !made.headers_known) fail_changed(program, "a header has changed");
        if (made.headers_known && !scan.manifest.empty())
            made.headers = std::make_shared<const HeaderManifest>(scan.manifest);
        return made;
    }

    MemoryCache memory;
    DiskCache disk;
    std::vector<std::string> postponed;  // guarded by fork_safe_mutex()
    WarningHandler handler = print;      // guarded by fork_safe_mutex()
    std::atomic<std::uint64_t> compiled{0};
    std::atomic<std::uint64_t> from_memory{0};
    std::atomic<std::uint64_t> from_disk{0};
};

/// What the log says of one request.
struct Cache::Search {
    std::uint64_t hash_high = 0, hash_low = 0;
    std::string why{};  ///< it was compiled; empty: the cache was not asked

    void report(const Program& program, const Lookup& lookup) const {
        const LogLevel level = lookup.origin == Origin::memory ? LogLevel::debug : LogLevel::info;
        logs(cache_logger, LogLevel::debug);  // from now on hits in memory are logged, or not
        if (!logs(cache_logger, level)) return;
        std::vector<std::string_view> names;
        for (const KernelImage& kernel : lookup.image->kernels)
            names.push_back(kernel.expression.empty() ? kernel.name : kernel.expression);
        std::string text = fmt::format(
            "{} of {}:{} for {}: {}", names.empty() ? "no kernel" : fmt::format("{}", fmt::join(names, ", ")),
            program.source.name, program.source.first_line, bascule::to_string(program.arch),
            lookup.origin == Origin::compiled
                ? fmt::format("compiled in {:.0f} ms, because {}", lookup.image->compile_milliseconds,
                              why.empty() ? "the cache is disabled" : why)
                : fmt::format("from {}", bascule::to_string(lookup.origin)));
        if (hash_high != 0 || hash_low != 0)
            text += fmt::format(" [key {:016x}{:016x}]", hash_high, hash_low);
        log(cache_logger, level, text);
    }
};

const char* to_string(Origin origin) noexcept {
    switch (origin) {
        case Origin::compiled:
            return "compiled";
        case Origin::memory:
            return "memory";
        case Origin::disk:
            return "disk";
    }
    return "unknown";
}

Cache::Cache(std::shared_ptr<Compiler> compiler, const std::string& directory)
    : Cache(std::move(compiler), directory, CacheLimit{}) {}
Cache::Cache(std::shared_ptr<Compiler> compiler, const std::string& directory, CacheLimit limit)
    : compiler_(std::move(compiler)),
      state_(std::make_shared<State>(absolute_or_empty(directory), std::move(limit))) {}
Cache::~Cache() = default;

void Cache::set_observer(Observer observer) noexcept {
    lookup_observer.store(observer, std::memory_order_release);
}

Cache::Lookup Cache::image(const Program& program) {
    const Observer observer = lookup_observer.load(std::memory_order_acquire);
    return observer == nullptr ? find_or_compile(program) : observer(*this, program);
}

Cache::Lookup Cache::find_or_compile(const Program& asked) {
    const std::shared_ptr<const Nvrtc> nvrtc = compiler_->nvrtc();
    // A device's architecture, which nobody named, may be newer than the compiler.
    const Arch arch = asked.options.arch ? asked.arch : nvrtc->nearest(asked.arch);
    std::optional<Program> changed;
    if (arch != asked.arch) changed.emplace(asked).arch = arch;
    const Program& program = changed ? *changed : asked;
    Search search;
    Lookup lookup = is_disabled() ? compile_alone(program, nvrtc) : look_up(program, nvrtc, search);
    if (lookup.origin == Origin::compiled) {
        state_->warn_of_compile_threads();
    } else {
        (lookup.origin == Origin::disk ? state_->from_disk : state_->from_memory)
            .fetch_add(1, std::memory_order_relaxed);
    }
    if (lookup.origin != Origin::memory || logs_memory_hits()) search.report(program, lookup);
    return lookup;
}

/// For this caller and no other.
Cache::Lookup Cache::compile_alone(const Program& program, const std::shared_ptr<const Nvrtc>& nvrtc) {
    const auto made = std::make_shared<Lookup>();
    run_watched(description_of(program), [state = state_, made, program, nvrtc] {
        const HeaderScan scan = scan_headers(program.source, program.options, search_paths(*nvrtc));
        *made = state->compile_from(program, *nvrtc, scan, nullptr);
    });
    return *made;
}

Cache::Lookup Cache::look_up(const Program& program, const std::shared_ptr<const Nvrtc>& nvrtc,
                             Search& search) {
    const CacheKey key = key_of(program, *nvrtc);
    search.hash_high = key.hash_high;
    search.hash_low = key.hash_low;
    const WantedHeaders wanted{absolute_or_empty(program.source.directory), program.headers};
    // Ends: a round without an outcome is one in which another thread made the image of other headers than
    // ours.
    while (true) {
        if (const MemoryCache::Entry known = state_->memory.find(key, wanted); known.image != nullptr)
            return {known.image, Origin::memory, known.headers};
        struct Round {
            std::optional<Lookup> outcome;
            int place = 0;  // on disk, of a new entry
            bool certain = true;
            std::string doubt;
            std::exception_ptr changed;
        };
        const auto round = std::make_shared<Round>();
        const auto find = [&] {  // others that want this program wait here
            if (const MemoryCache::Entry known = state_->memory.find(key, wanted); known.image != nullptr) {
                round->outcome = {known.image, Origin::memory, known.headers};
                return true;
            }
            round->outcome = state_->take_from_disk(key, wanted, round->place);
            if (round->outcome) return true;
            if (logs(cache_logger, LogLevel::info))
                search.why = state_->disk.why_missing(key, wanted.source_directory);
            return false;
        };
        const auto make = [state = state_, round, key, wanted, program, nvrtc] {
            const auto look_at_headers = [&] {
                return scan_headers(program.source, program.options, search_paths(*nvrtc));
            };
            HeaderScan scan = look_at_headers();
            round->certain = scan.certain;
            round->doubt = scan.doubt;
            if (!scan.certain) return;
            // Among processes too: whoever had the lock before has most likely stored it.
            const bool stored = !nvrtc->identity().empty();
            const auto lock = stored ? state->disk.lock(key) : std::nullopt;
            if (lock) round->outcome = state->take_from_disk(key, wanted, round->place);
            if (round->outcome) return;
            if (!scan.manifest.untouched()) {  // that took its time
                HeaderScan now = look_at_headers();
                if (now.certain) scan = std::move(now);
            }
            try {
                for (int left = most_compiles_in_a_row; left > 0; --left) {
                    round->outcome = state->compile_and_keep(program, *nvrtc, key, scan, round->place);
                    if (round->outcome->headers_known) return;
                    HeaderScan now = look_at_headers();
                    if (!now.certain || now.manifest.is_equivalent(scan.manifest)) return;
                    scan = std::move(now);
                }
            } catch (const HeadersChanged&) {
                round->changed = std::current_exception();
            }
        };
        state_->memory.run_once(key, description_of(program), find, make);
        if (round->outcome) {
            if (round->outcome->origin == Origin::compiled) state_->disk.sweep_if_due();
            return *round->outcome;
        }
        if (round->changed) std::rethrow_exception(round->changed);
        // The headers are not known, so nothing can be shared: each thread compiles its own, at the same time.
        if (!round->certain) {
            search.why = "it is compiled each time, because " + round->doubt;
            return compile_alone(program, nvrtc);
        }
    }
}

CacheStatistics Cache::statistics() const noexcept {
    CacheStatistics statistics;
    statistics.compiled = state_->compiled.load(std::memory_order_relaxed);
    statistics.from_memory = state_->from_memory.load(std::memory_order_relaxed);
    statistics.from_disk = state_->from_disk.load(std::memory_order_relaxed);
    statistics.nvrtc_calls = Nvrtc::compile_calls();
    return statistics;
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
    static Cache& cache =
        *new Cache(std::make_shared<Compiler>(), default_cache_directory(), default_cache_limit());
    return cache;
}

}  // namespace bascule
