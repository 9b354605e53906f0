// A module: the kernels of a text by name, and their images.
#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <bascule/interface/errors/did_you_mean.hpp>
#include <bascule/interface/errors/error.hpp>
#include <bascule/runtime/faults/failure_details.hpp>
#include <bascule/runtime/faults/source_places.hpp>
#include <bascule/runtime/kernels/kernel.hpp>
#include <bascule/runtime/kernels/kernel_state.hpp>

namespace bascule {
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
    throw CompileError(fmt::format("{} has several kernels '{}': use a qualified name: {}.", source.name,
                                   wanted, fmt::join(matches, ", ")),
                       {.log = {}, .name_expression = wanted, .options = {}, .architecture = {}});
}

}  // namespace

// --- Names -------------------------------------------------------------------------------------------------

Module::Module(Source source, CompileOptions options, Cache& cache)
    : state_(std::make_shared<ModuleState>(std::move(source), std::move(options), cache)) {
    ModuleState& state = *state_;
    state.declarations = find_kernels(state.source.text);
    if (state.declarations.empty()) fail_without_kernels(state.source);
    remember_place(state.source);
    describe_failures();
    for (const KernelDeclaration& declaration : state.declarations) {
        const auto known =
            std::find_if(state.families.begin(), state.families.end(),
                         [&](const KernelFamily& each) { return each.name == declaration.name; });
        KernelFamily* family = known != state.families.end() ? &*known : &state.families.emplace_back();
        family->name = declaration.name;
        family->declarations.push_back(declaration);
        family->has_templates = family->has_templates || declaration.is_template;
    }
    for (KernelFamily& family : state.families) {
        if (family.declarations.size() == 1 && !family.has_templates)
            family.sole = &state.function({{}, family.name});
    }
}

const Source& Module::source() const noexcept { return state_->source; }
const CompileOptions& Module::options() const noexcept { return state_->options; }
Cache& Module::cache() const noexcept { return state_->cache; }
const std::vector<KernelDeclaration>& Module::declarations() const noexcept { return state_->declarations; }

bool Module::only_templates() const noexcept {
    return std::all_of(state_->declarations.begin(), state_->declarations.end(),
                       [](const KernelDeclaration& each) { return each.is_template; });
}

Kernel Module::kernel(const std::string& name) const {
    const std::string wanted = name.rfind("::", 0) == 0 ? name.substr(2) : name;
    std::vector<std::string> names;
    std::vector<std::string> matches;
    KernelFamily* match = nullptr;
    for (KernelFamily& family : state_->families) {
        names.push_back(family.name);
        if (family.name == wanted) return {*this, &family, family.sole, &family.choices};
        if (last_component(family.name) != wanted) continue;
        matches.push_back(family.name);
        match = &family;
    }
    if (matches.size() > 1) fail_ambiguous(state_->source, name, matches);
    if (match == nullptr) fail_name(state_->source, name, names);
    return {*this, match, match->sole, &match->choices};
}

KernelFunction& ModuleState::function(const Instance& which) {
    const std::lock_guard lock(growing);
    std::unique_ptr<KernelFunction>& slot = functions[which.expression];
    if (slot != nullptr) return *slot;
    if (which.kernel.empty()) {
        slot = std::make_unique<KernelFunction>(which.expression, main);
    } else {
        auto unit = std::make_unique<Unit>(source, options, cache, std::vector<Instance>{which});
        slot = std::make_unique<KernelFunction>(which.expression, *unit);
        slot->own_unit = std::move(unit);
    }
    return *slot;
}

// --- Images ------------------------------------------------------------------------------------------------

Cache::Lookup Module::compile(Arch arch) const { return state_->main.compile(arch); }

std::shared_ptr<const Library> Module::library(Device device) const {
    return state_->main.loaded(device).library;
}

Cache::Lookup Unit::compile(Arch arch) {
    {
        const std::lock_guard lock(compiling_);
        for (const Cache::Lookup& known : images_) {
            if (known.image->arch == arch) return known;
        }
    }
    Program program{source_, options_, arch, instances_};
    // The emulated device, which takes virtual architectures, names source lines in its reports.
    program.options.lineinfo = program.options.lineinfo || arch.is_virtual;
    Cache::Lookup lookup = cache_.image(program);
    const std::lock_guard lock(compiling_);
    for (const Cache::Lookup& known : images_) {
        if (known.image->arch == arch) return known;
    }
    images_.push_back(lookup);
    return lookup;
}

std::shared_ptr<const Image> Unit::compiled(Arch arch) const {
    const std::lock_guard lock(compiling_);
    for (const Cache::Lookup& known : images_) {
        if (known.image->arch == arch) return known.image;
    }
    return nullptr;
}

const Unit::Loaded& Unit::loaded(Device device) {
    if (const Loaded* hit = existing(device)) return *hit;
    const Cache::Lookup lookup = compile(options_.arch.value_or(device.arch()));
    const std::lock_guard lock(loading_);
    if (const Loaded* hit = existing(device)) return *hit;
    auto made = std::make_unique<Loaded>(Loaded{lookup.image, lookup.origin, nullptr});
    for (const auto& other : owned_) {
        if (other->image == made->image) made->library = other->library;
    }
    if (made->library == nullptr) made->library = std::make_shared<const Library>(made->image, device);
    owned_.push_back(std::move(made));
    loaded_[static_cast<std::size_t>(device.ordinal())].store(owned_.back().get(), std::memory_order_release);
    return *owned_.back();
}

}  // namespace bascule
