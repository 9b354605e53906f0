// A look-up searches memory, then the disk. If both miss, one thread of the process, and one process of the machine,
// compiles, keeps the image in memory and publishes it on disk.
#include <array>
#include <atomic>
#include <cstdio>
#include <mutex>
#include <variant>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <bascule/jit/compile/compile.hpp>
#include <bascule/jit/files/paths.hpp>
#include <bascule/jit/headers/header_scan.hpp>
#include <bascule/jit/lookup/cache.hpp>
#include <bascule/jit/lookup/disk_cache.hpp>
#include <bascule/jit/lookup/memory_cache.hpp>
#include <bascule/jit/process/compile_thread.hpp>
#include <bascule/jit/process/fork_and_exit.hpp>
#include <bascule/jit/process/log.hpp>
#include <bascule/jit/program/program.hpp>

namespace bascule {

/// The parts of a Cache. Thread-safe.
struct CacheState {
    CacheState(ToolkitLocation location, CachePlace place, CacheLimit limit);

    void count(Origin origin) noexcept {
        counts[static_cast<std::size_t>(origin)].fetch_add(1, std::memory_order_relaxed);
    }
    std::uint64_t count_of(Origin origin) const noexcept {
        return counts[static_cast<std::size_t>(origin)].load(std::memory_order_relaxed);
    }

    void warn(const std::string& text);
    /// Passes on the warnings that `disk` gave on compile threads, so that the program gets them on the thread that asked.
    void warn_of_compile_threads();

    MemoryCache memory;
    DiskCache disk;
    SingleFlight flights;

    std::mutex nvrtc_mutex;
    ToolkitLocation toolkit;  // guarded by nvrtc_mutex, as are the next two
    DriverLimit driver_limit;
    std::shared_ptr<const Nvrtc> nvrtc;  // null: not loaded yet

    std::vector<std::string> postponed;  // guarded by fork_safe_mutex(), as is the next
    DiskCache::WarningHandler handler;
    std::array<std::atomic<std::uint64_t>, 3> counts{};  // by Origin
};

namespace {

using Lookup = Cache::Lookup;

/// The inputs of a look-up. It owns them, because its compile goes on when the wait for it is interrupted.
struct Request {
    std::shared_ptr<CacheState> cache;
    Program program;
    std::shared_ptr<const Nvrtc> nvrtc;
    CacheKey key{};
    WantedHeaders wanted{};

    /// A library without an identity may be another one in another process.
    bool is_stored() const { return !nvrtc->identity().empty(); }
    /// The name of the program for users who wait for it.
    std::string description() const;
};

std::atomic<int> disabled{0};  // the number of Cache::Disabled objects
std::atomic<Cache::Observer> lookup_observer{nullptr};

std::string absolute_or_empty(const std::string& directory) {
    return directory.empty() ? directory : absolute_path(directory);
}

// The steps, in their order.
std::optional<Lookup> find_in_memory(CacheState& cache, const CacheKey& key, const WantedHeaders& wanted);
std::optional<Lookup> find_on_disk(const Request& request, int* place = nullptr);
Lookup make_once(const std::shared_ptr<const Request>& request, std::string& why);
Lookup make_alone(const std::shared_ptr<const Request>& request);
void report(const Program& program, const Lookup& lookup, const CacheKey& key, const std::string& why);

}  // namespace

Cache::Lookup Cache::image(const Program& program) {
    const Observer observer = lookup_observer.load(std::memory_order_acquire);
    return observer == nullptr ? look_up(program) : observer(*this, program);
}

Arch Cache::target(const CompileOptions& options, Arch device) {
    if (options.arch) return *options.arch;
    return is_relocatable(options) ? nvrtc()->nearest(device) : nvrtc()->own_target(device);
}

Cache::Lookup Cache::look_up(const Program& asked) {
    const std::shared_ptr<const Nvrtc> compiler = nvrtc();
    const Arch arch = asked.maker != nullptr ? asked.arch : target(asked.options, asked.arch);
    std::optional<Program> changed;
    if (arch != asked.arch) changed.emplace(asked).arch = arch;
    const Program& program = changed ? *changed : asked;

    std::string why = "the cache is disabled";
    if (is_disabled()) {
        Lookup made = make_alone(std::make_shared<const Request>(Request{state_, program, compiler}));
        report(program, made, {}, why);
        return made;
    }
    CacheKey key = key_of(program, *compiler);
    WantedHeaders wanted{absolute_or_empty(program.source.directory), program.headers};
    std::optional<Lookup> found = find_in_memory(*state_, key, wanted);
    if (!found) {
        const auto request =
            std::make_shared<const Request>(Request{state_, program, compiler, key, std::move(wanted)});
        found = find_on_disk(*request);
        if (!found) found = make_once(request, why);
    }
    if (found->origin != Origin::compiled) state_->count(found->origin);
    if (found->origin != Origin::memory || logs_memory_hits()) report(program, *found, key, why);
    return *found;
}

namespace {

/// The headers that the program reads are not known for certain, so each thread compiles its own image.
struct Uncacheable {
    std::string doubt;
};

/// The headers no longer match `Program::headers`. Only the thread that asked for these headers fails, not those that
/// wait for the key.
struct HeadersChanged : Error {
    using Error::Error;
};

/// The result of one compile; monostate if another thread compiled.
using Outcome = std::variant<std::monostate, Lookup, Uncacheable, HeadersChanged>;

/// A limit for one program while its headers are being edited.
constexpr int most_compiles_in_a_row = 3;

Outcome make_among_processes(const Request& request);
Lookup make_and_publish(const Request& request, HeaderScan scan, int place);
HeaderScan scan_headers_of(const Request& request);
Lookup make_from(const Request& request, const HeaderScan& scan, const HeaderManifest* reached);

std::optional<Lookup> find_in_memory(CacheState& cache, const CacheKey& key, const WantedHeaders& wanted) {
    const CacheEntry known = cache.memory.find(key, wanted);
    if (known.image == nullptr) return std::nullopt;
    return Lookup{known.image, Origin::memory, known.headers};
}

/// If the image is missing, writes to `place` where it is to be stored.
std::optional<Lookup> find_on_disk(const Request& request, int* place) {
    const DiskCache::Found found = request.cache->disk.load(request.key, request.wanted);
    if (place != nullptr) *place = found.place;
    if (found.entry.image == nullptr) return std::nullopt;
    request.cache->memory.keep(request.key, found.entry);
    return Lookup{found.entry.image, Origin::disk, found.entry.headers};
}

/// Makes the image in one thread of the process; the others wait. Writes what was missing to `why`, for the log.
Lookup make_once(const std::shared_ptr<const Request>& request, std::string& why) {
    CacheState& cache = *request->cache;
    if (logs(cache_logger, LogLevel::info))
        why = cache.disk.why_missing(request->key, request->wanted.source_directory);
    // This ends: a round without an outcome means that another thread has finished work for this key, and made no image
    // that fits these headers.
    while (true) {
        const auto outcome = std::make_shared<Outcome>();
        cache.flights.run(request->key, request->description(),
                          [=] { *outcome = make_among_processes(*request); });
        if (const auto* const made = std::get_if<Lookup>(outcome.get())) {
            cache.warn_of_compile_threads();
            if (made->origin == Origin::compiled) cache.disk.sweep_if_due();
            return *made;
        }
        if (const auto* const changed = std::get_if<HeadersChanged>(outcome.get())) throw *changed;
        if (const auto* const uncacheable = std::get_if<Uncacheable>(outcome.get())) {
            why = "it is compiled each time, because " + uncacheable->doubt;
            return make_alone(request);
        }
        if (const auto known = find_in_memory(cache, request->key, request->wanted)) return *known;
    }
}

/// Finds the image or compiles it. One process of the machine compiles, the one that holds the key's lock; the others
/// wait for the lock and load the image that it stored.
Outcome make_among_processes(const Request& request) {
    if (const auto known = find_in_memory(*request.cache, request.key, request.wanted)) return *known;
    HeaderScan scan = scan_headers_of(request);
    if (!scan.certain) return Uncacheable{scan.doubt};
    const std::optional<CacheDirectory::Lock> lock =
        request.is_stored() ? request.cache->disk.lock(request.key) : std::nullopt;
    int place = 0;
    if (const auto stored = find_on_disk(request, &place)) return *stored;
    if (!scan.manifest.untouched()) {  // the wait for the lock may have taken long
        HeaderScan now = scan_headers_of(request);
        if (now.certain) scan = std::move(now);
    }
    try {
        return make_and_publish(request, std::move(scan), place);
    } catch (const HeadersChanged& changed) {
        return changed;
    }
}

/// Compiles, and keeps the image in memory and on disk. If a header was edited meanwhile, compiles again, up to three
/// times in all. An image whose headers are not known for certain is returned but not kept.
Lookup make_and_publish(const Request& request, HeaderScan scan, int place) {
    for (int left = most_compiles_in_a_row;; --left) {
        Lookup made = make_from(request, scan, &scan.manifest);
        if (made.headers_known) {
            request.cache->memory.keep(request.key, {made.image, made.headers});
            if (request.is_stored())
                request.cache->disk.store(request.key, place, scan.manifest, *made.image);
            return made;
        }
        HeaderScan now = scan_headers_of(request);
        if (left == 1 || !now.certain || now.manifest.is_equivalent(scan.manifest)) return made;
        scan = std::move(now);
    }
}

/// Compiles for this caller only; the result is not shared.
Lookup make_alone(const std::shared_ptr<const Request>& request) {
    const auto made = std::make_shared<Lookup>();
    run_watched(request->description(),
                [=] { *made = make_from(*request, scan_headers_of(*request), nullptr); });
    request->cache->warn_of_compile_threads();
    return *made;
}

// --- Helpers of the steps

std::string Request::description() const {
    if (program.instances.empty()) return program.source.name;
    std::string names = program.instances.front().expression;
    if (program.instances.size() > 1) names += fmt::format(" and {} more", program.instances.size() - 1);
    return fmt::format("{} of {}", names, program.source.name);
}

HeaderScan scan_headers_of(const Request& request) {
    if (request.program.maker != nullptr) return {};  // it reads no headers
    std::vector<SearchPath> toolkit;
    for (const std::string& path : request.nvrtc->include_paths())
        toolkit.push_back({path, request.nvrtc->found_include_paths() ? installed_ns(path) : 0});
    return scan_headers(request.program.source, request.program.options, toolkit);
}

[[noreturn]] void fail_changed(const Program& program, const std::string& what) {
    throw HeadersChanged(
        fmt::format("{} since {}:{} was compiled, so the compiler can no longer be asked about its structs "
                    "and variables. Compile the text again, or restore the header.",
                    what, program.source.name, program.source.first_line));
}

/// `reached`: the headers that the program reads, for precompiled headers, or null.
Lookup make_from(const Request& request, const HeaderScan& scan, const HeaderManifest* reached) {
    const Program& program = request.program;
    if (program.headers != nullptr && scan.certain && !scan.manifest.is_equivalent(*program.headers))
        fail_changed(program, program.headers->difference(scan.manifest.directory));
    Lookup made{.image = std::make_shared<const Image>(program.maker != nullptr
                                                           ? program.maker->make(program.arch)
                                                           : compile(program, *request.nvrtc, reached))};
    // Counted here because the thread that asked may have stopped waiting (Ctrl-C).
    request.cache->count(Origin::compiled);
    // If a header was edited during the compile, the image may be of either version.
    made.headers_known = scan.certain && scan.manifest.untouched();
    if (program.headers != nullptr && !made.headers_known) fail_changed(program, "a header has changed");
    if (made.headers_known && !scan.manifest.empty())
        made.headers = std::make_shared<const HeaderManifest>(scan.manifest);
    return made;
}

/// Logs one look-up. `why`: why it was compiled. The key is empty if the cache was not used.
void report(const Program& program, const Lookup& lookup, const CacheKey& key, const std::string& why) {
    const LogLevel level = lookup.origin == Origin::memory ? LogLevel::debug : LogLevel::info;
    logs(cache_logger, LogLevel::debug);  // this decides whether later hits in memory are logged
    if (!logs(cache_logger, level)) return;
    std::vector<std::string_view> names;
    for (const KernelImage& kernel : lookup.image->kernels)
        names.push_back(kernel.expression.empty() ? kernel.name : kernel.expression);
    std::string text = fmt::format(
        "{} of {}:{} for {}: {}", names.empty() ? "no kernel" : fmt::format("{}", fmt::join(names, ", ")),
        program.source.name, program.source.first_line, to_string(program.arch),
        lookup.origin == Origin::compiled
            ? fmt::format("compiled in {:.0f} ms, because {}", lookup.image->compile_milliseconds, why)
            : fmt::format("from {}", to_string(lookup.origin)));
    if (!key.text.empty()) text += fmt::format(" [key {}]", to_string(key.hash));
    log(cache_logger, level, text);
}

}  // namespace

// --- The state, settings and statistics

CacheState::CacheState(ToolkitLocation location, CachePlace place, CacheLimit limit)
    : disk(
          std::move(place), [this](const std::string& text) { warn(text); }, std::move(limit)),
      toolkit(std::move(location)),
      handler([](const std::string& text) { std::fprintf(stderr, "bascule: %s\n", text.c_str()); }) {}

void CacheState::warn(const std::string& text) {
    DiskCache::WarningHandler current;
    {
        const std::lock_guard lock(fork_safe_mutex());
        if (is_compile_thread()) return postponed.push_back(text);
        current = handler;
    }
    current(text);
}

void CacheState::warn_of_compile_threads() {
    std::vector<std::string> texts;
    {
        const std::lock_guard lock(fork_safe_mutex());
        texts.swap(postponed);
    }
    for (const std::string& text : texts) warn(text);
}

const char* to_string(Origin origin) noexcept {
    static constexpr const char* names[] = {"compiled", "memory", "disk"};
    return names[static_cast<std::size_t>(origin)];
}

Cache::Cache(ToolkitLocation toolkit, CachePlace place, CacheLimit limit)
    : state_(std::make_shared<CacheState>(std::move(toolkit),
                                          CachePlace(absolute_or_empty(place.path), std::move(place.problem)),
                                          std::move(limit))) {}
Cache::~Cache() = default;

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
