// Module and Kernel: from a text to a launch. Kernel::launch is the whole story of one launch; a miss in
// `loaded` is its only detour.
#include <algorithm>
#include <array>
#include <atomic>
#include <deque>
#include <mutex>

#include <fmt/format.h>

#include <bascule/interface/did_you_mean.hpp>
#include <bascule/interface/error.hpp>
#include <bascule/runtime/driver.hpp>
#include <bascule/runtime/kernel.hpp>
#include <bascule/runtime/launch.hpp>
#include <bascule/runtime/ordering.hpp>
#include <bascule/runtime/source_places.hpp>

namespace bascule {

void Kernel::launch(StreamRef stream, const LaunchConfig& config, ArgumentPack& args,
                    std::span<const Owner> owners) const {
    const OwnersKept kept(stream, owners);
    const ContextGuard context(stream.context());
    const LoadedKernel& kernel = loaded(stream.device());  // hit: one lookup
    check(config, kernel.limits);
    wait_for_producers(stream, args.producers());     // ordering: event record + stream wait
    enqueue(stream, config, kernel, args);            // launch:   cuLaunchKernelEx
    order_producers_after(stream, args.producers());  // ordering: their next work waits for this kernel
}

// --- What is remembered ------------------------------------------------------------------------------------

/// A module's image in one device. Never changes once made.
struct Module::Loaded {
    std::shared_ptr<const Image> image;
    Origin origin = Origin::compiled;
    std::shared_ptr<const Library> library;  // of an architecture: devices of the same kind share it
};

/// Lies in its module's state, which its Kernels keep.
struct Kernel::State {
    explicit State(const KernelDeclaration& from) : declaration(from) {}

    KernelDeclaration declaration;
    std::array<std::atomic<const LoadedKernel*>, max_devices> loaded{};
    std::array<std::atomic<int>, max_devices> best_block{};  // without dynamic shared memory; 0: not asked
    std::vector<std::unique_ptr<const LoadedKernel>> owned;  // guarded by the module's `loading`
};

struct Module::State {
    Source source;
    CompileOptions options;
    Cache* cache = nullptr;
    std::vector<KernelDeclaration> declarations;
    std::deque<Kernel::State> kernels;  // one a name; never moved

    mutable std::mutex compiling;  // guards `images`; not held while compiling
    std::vector<Cache::Lookup> images;

    std::mutex loading;  // of the driver's part
    std::array<std::atomic<const Loaded*>, max_devices> loaded{};
    std::vector<std::unique_ptr<const Loaded>> owned;
};

// --- Module ------------------------------------------------------------------------------------------------

namespace {

/// "scale" of "ns::scale".
std::string_view last_component(std::string_view name) {
    const std::size_t colons = name.rfind("::");
    return colons == std::string_view::npos ? name : name.substr(colons + 2);
}

[[noreturn]] void fail_without_kernels(const Source& source) {
    throw CompileError(
        fmt::format("{} has no __global__ function, so there is no kernel to launch. Write "
                    "`__global__ void name(...)` in the text itself: functions that an #include "
                    "or a macro brings are not seen.",
                    source.name));
}

[[noreturn]] void fail_name(const Source& source, const std::string& wanted,
                            const std::vector<std::string>& names) {
    std::vector<std::string> spellings = names;
    for (const std::string& name : names) spellings.emplace_back(last_component(name));
    const std::string nearest = nearest_name(wanted, spellings);
    const std::string hint = nearest.empty() ? "" : fmt::format(" Did you mean '{}'?", nearest);
    throw CompileError(fmt::format("{} has no kernel '{}'.{} Its kernels: {}.", source.name, wanted, hint,
                                   fmt::join(names, ", ")),
                       {.log = {}, .name_expression = wanted, .options = {}, .architecture = {}});
}

[[noreturn]] void fail_ambiguous(const Source& source, const std::string& wanted,
                                 const std::vector<std::string>& matches) {
    throw CompileError(fmt::format("{} has several kernels '{}': say which by its qualified name: {}.",
                                   source.name, wanted, fmt::join(matches, ", ")),
                       {.log = {}, .name_expression = wanted, .options = {}, .architecture = {}});
}

}  // namespace

Module::Module(Source source, CompileOptions options, Cache& cache) : state_(std::make_shared<State>()) {
    State& state = *state_;
    state.source = std::move(source);
    state.options = std::move(options);
    state.cache = &cache;
    state.declarations = find_kernels(state.source.text);
    if (state.declarations.empty()) fail_without_kernels(state.source);
    remember_place(state.source);
    for (const KernelDeclaration& declaration : state.declarations) {
        auto same = [&](const Kernel::State& kernel) { return kernel.declaration.name == declaration.name; };
        auto known = std::find_if(state.kernels.begin(), state.kernels.end(), same);
        if (known == state.kernels.end()) {
            state.kernels.emplace_back(declaration);
        } else if (declaration.is_definition && !known->declaration.is_definition) {
            known->declaration =
                declaration;  // it names the parameters that the call will be checked against
        }
    }
}

const Source& Module::source() const noexcept { return state_->source; }
const CompileOptions& Module::options() const noexcept { return state_->options; }
const std::vector<KernelDeclaration>& Module::declarations() const noexcept { return state_->declarations; }

Kernel Module::kernel(const std::string& name) const {
    const std::string wanted = name.rfind("::", 0) == 0 ? name.substr(2) : name;
    std::vector<std::string> names;
    std::vector<std::string> matches;
    Kernel::State* match = nullptr;
    for (Kernel::State& kernel : state_->kernels) {
        const std::string& known = kernel.declaration.name;
        if (known == wanted) return {*this, &kernel};
        names.push_back(known);
        if (last_component(known) != wanted) continue;
        matches.push_back(known);
        match = &kernel;
    }
    if (matches.size() > 1) fail_ambiguous(state_->source, name, matches);
    if (match == nullptr) fail_name(state_->source, name, names);
    return {*this, match};
}

Cache::Lookup Module::compile(Arch arch) const {
    {
        const std::lock_guard lock(state_->compiling);
        for (const Cache::Lookup& known : state_->images) {
            if (known.image->arch == arch) return known;
        }
    }
    Program program{state_->source, state_->options, arch};
    // The emulated device, which takes virtual architectures, names source lines in its reports.
    program.options.lineinfo = program.options.lineinfo || arch.is_virtual;
    Cache::Lookup lookup = state_->cache->image(program);
    const std::lock_guard lock(state_->compiling);
    for (const Cache::Lookup& known : state_->images) {
        if (known.image->arch == arch) return known;
    }
    state_->images.push_back(lookup);
    return lookup;
}

std::shared_ptr<const Image> Module::compiled(Arch arch) const noexcept {
    const std::lock_guard lock(state_->compiling);
    for (const Cache::Lookup& known : state_->images) {
        if (known.image->arch == arch) return known.image;
    }
    return nullptr;
}

const Module::Loaded& Module::loaded(Device device) const {
    auto& slot = state_->loaded[static_cast<std::size_t>(device.ordinal())];
    if (const Loaded* hit = slot.load(std::memory_order_acquire)) return *hit;

    const Arch arch = state_->options.arch.value_or(device.arch());
    const Cache::Lookup lookup = compile(arch);
    const std::lock_guard lock(state_->loading);
    if (const Loaded* hit = slot.load(std::memory_order_acquire)) return *hit;
    auto made = std::make_unique<Loaded>(Loaded{lookup.image, lookup.origin, nullptr});
    for (const auto& other : state_->owned) {
        if (other->image == made->image) made->library = other->library;
    }
    if (made->library == nullptr) made->library = std::make_shared<const Library>(made->image, device);
    state_->owned.push_back(std::move(made));
    const Loaded& loaded = *state_->owned.back();
    slot.store(&loaded, std::memory_order_release);
    return loaded;
}

std::optional<Module::Provenance> Module::provenance(Device device) const {
    const Loaded* loaded =
        state_->loaded[static_cast<std::size_t>(device.ordinal())].load(std::memory_order_acquire);
    if (loaded == nullptr) return std::nullopt;
    return Provenance{loaded->origin, loaded->image->compile_milliseconds,
                      loaded->library->load_milliseconds()};
}

// --- Kernel ------------------------------------------------------------------------------------------------

namespace {

/// The text declares it and the image lacks it: the compiler's side knows why.
[[noreturn]] void fail_absent(const Image& image, const std::string& name, const Source& source) {
    std::string reason = "the compiler dropped it";
    for (const auto& [absent, why] : image.absent) {
        if (absent == name) reason = why;
    }
    throw CompileError(
        fmt::format("{}: kernel '{}' cannot be launched: {}", source.name, name, reason),
        {.log = image.log, .name_expression = name, .options = {}, .architecture = to_string(image.arch)});
}

}  // namespace

Kernel::Kernel(Source source, const std::string& name, CompileOptions options, Cache& cache)
    : Kernel(Module(std::move(source), std::move(options), cache).kernel(name)) {}

const std::string& Kernel::name() const noexcept { return state_->declaration.name; }
const Module& Kernel::module() const noexcept { return module_; }
const KernelDeclaration& Kernel::declaration() const noexcept { return state_->declaration; }

const LoadedKernel& Kernel::loaded(Device device) const {
    auto& slot = state_->loaded[static_cast<std::size_t>(device.ordinal())];
    if (const LoadedKernel* hit = slot.load(std::memory_order_acquire)) [[likely]]
        return *hit;

    const Module::Loaded& module = module_.loaded(device);
    const KernelImage* image = module.image->find(name());
    if (image == nullptr) fail_absent(*module.image, name(), module_.source());
    const std::lock_guard lock(module_.state_->loading);
    if (const LoadedKernel* hit = slot.load(std::memory_order_acquire)) return *hit;
    state_->owned.push_back(module.library->load(*image, device));
    slot.store(state_->owned.back().get(), std::memory_order_release);
    return *state_->owned.back();
}

const Signature& Kernel::signature(Device device) const { return loaded(device).image->signature; }

// --- Geometry from the amount of work ----------------------------------------------------------------------

namespace {

/// The block size with the best occupancy, as the driver computes it.
std::uint32_t best_block(const LoadedKernel& kernel, Device device, std::uint32_t shared_bytes) {
    const Driver& driver = Driver::get();
    const ContextGuard context(device.context());
    CUfunction function = nullptr;
    driver.check(driver.api().cuKernelGetFunction(&function, kernel.native), "cuKernelGetFunction",
                 "choosing a block size");
    int grid = 0;
    int block = 0;
    driver.check(
        driver.api().cuOccupancyMaxPotentialBlockSize(&grid, &block, function, nullptr, shared_bytes, 0),
        "cuOccupancyMaxPotentialBlockSize", "choosing a block size");
    return static_cast<std::uint32_t>(std::max(block, 1));
}

std::uint32_t power_of_two_up_to(std::uint64_t limit) noexcept {
    std::uint32_t power = 1;
    while (std::uint64_t{power} * 2 <= limit) power *= 2;
    return power;
}

/// The smallest power of two that holds `extent`, at most `most`.
std::uint32_t side(std::uint64_t extent, std::uint32_t most) noexcept {
    std::uint32_t power = 1;
    while (power < extent && std::uint64_t{power} * 2 <= most) power *= 2;
    return power;
}

/// One axis: all threads in it. Several: 32 along x, so that a warp reads neighbours, and 256 in all, so that
/// the tile's edges stay short.
Dim3 block_for(std::span<const std::uint64_t> work, std::uint32_t threads) noexcept {
    constexpr std::uint32_t warp = 32;
    constexpr std::uint32_t tile = 256;
    if (work.size() == 1) {
        const std::uint64_t warps = (work[0] + warp - 1) / warp;
        return {static_cast<std::uint32_t>(std::min<std::uint64_t>(threads, warps * warp)), 1, 1};
    }
    std::uint32_t left = power_of_two_up_to(std::min(threads, tile));
    Dim3 block;
    block.x = side(work[0], std::min(left, warp));
    left /= block.x;
    block.y = side(work[1], work.size() == 2 ? left : std::min<std::uint32_t>(left, 4));
    left /= block.y;
    if (work.size() > 2) block.z = side(work[2], left);
    return block;
}

std::uint32_t blocks_for(std::uint64_t work, std::uint32_t block, std::uint32_t most, char axis) {
    const std::uint64_t blocks = work / block + (work % block != 0 ? 1 : 0);
    if (blocks <= most) return static_cast<std::uint32_t>(blocks);
    throw ArgumentError(
        ArgumentError::Kind::value,
        fmt::format("work of {} threads along {} needs {} blocks of {}, and a grid has at most "
                    "{} there. Give each thread more to do (bascule::grid_stride), or put the "
                    "longest axis first.",
                    work, axis, blocks, block, most),
        {.field = "work"});
}

}  // namespace

LaunchConfig Kernel::configuration_for(Device device, std::span<const std::uint64_t> work,
                                       std::uint32_t shared_bytes) const {
    if (work.empty() || work.size() > 3 || std::find(work.begin(), work.end(), 0) != work.end()) {
        throw ArgumentError(
            ArgumentError::Kind::value,
            "work must be one to three extents, each at least 1: with no work there is nothing "
            "to launch.",
            {.field = "work"});
    }
    const LoadedKernel& kernel = loaded(device);
    auto& remembered = state_->best_block[static_cast<std::size_t>(device.ordinal())];
    int threads = shared_bytes == 0 ? remembered.load(std::memory_order_relaxed) : 0;
    if (threads == 0) {
        threads = static_cast<int>(best_block(kernel, device, shared_bytes));
        if (shared_bytes == 0) remembered.store(threads, std::memory_order_relaxed);
    }
    LaunchConfig config;
    config.shared_bytes = shared_bytes;
    config.block = block_for(work, static_cast<std::uint32_t>(threads));
    const Dim3& most = kernel.limits.grid;
    config.grid.x = blocks_for(work[0], config.block.x, most.x, 'x');
    if (work.size() > 1) config.grid.y = blocks_for(work[1], config.block.y, most.y, 'y');
    if (work.size() > 2) config.grid.z = blocks_for(work[2], config.block.z, most.z, 'z');
    return config;
}

}  // namespace bascule
