#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <bascule/interface/errors/error.hpp>
#include <bascule/interface/errors/rejection.hpp>
#include <bascule/interface/errors/wording.hpp>
#include <bascule/jit/files/paths.hpp>
#include <bascule/jit/overloads/function_choice.hpp>
#include <bascule/jit/program/program.hpp>
#include <bascule/jit/questions/probed_program.hpp>
#include <bascule/jit/variables/variable.hpp>
#include <bascule/runtime/driver/installation.hpp>
#include <bascule/runtime/faults/failure_details.hpp>
#include <bascule/runtime/faults/finding_details.hpp>
#include <bascule/runtime/kernels/kernel.hpp>
#include <bascule/runtime/kernels/module_state.hpp>

namespace bascule {
namespace {

[[noreturn]] void fail_without_kernels(const Source& source) {
    const bool unfilled = source.text.find("${") != std::string::npos;
    throw CompileError(
        fmt::format("{} has no __global__ function, so no kernel can be launched. {}", source.name,
                    unfilled ? "A placeholder is left in the text: fill it in before compiling."
                             : "Write `__global__ void name(...)`."));
}

[[noreturn]] void fail_name(const Source& source, const std::string& wanted,
                            const std::vector<std::string>& names) {
    std::vector<std::string> spellings = names;
    for (const std::string& name : names) spellings.emplace_back(last_component(name));
    throw CompileError(fmt::format("{} has no kernel '{}'.{} Its kernels: {}.", source.name, wanted,
                                   did_you_mean(wanted, spellings), fmt::join(names, ", ")),
                       {.name_expression = wanted});
}

Instance as_written(const NamedInstance& named) {
    std::string name(without_global_scope(named.first));
    std::string expression = fmt::format("{}<{}>", name, fmt::join(named.second.positional, ", "));
    return {std::move(name), std::move(expression)};
}

Source without_mark(Source source) {
    source.text = without_byte_order_mark(source.text);
    return source;
}

}  // namespace

// --- Names -------------------------------------------------------------------------------------------------

Module::Module(Source source, CompileOptions options, Cache& cache,
               const std::vector<std::string>& name_expressions)
    : state_(std::make_shared<ModuleState>(without_mark(std::move(source)), std::move(options), cache)) {
    ModuleState& state = *state_;
    state.declarations = find_kernels(state.source.text);
    if (kind_of_code(state.source.text) == CodeKind::ptx) {
        throw CompileError(
            fmt::format("{} is PTX, which is compiled already: {}.", state.source.name,
                        advice("bascule.load_module loads it", "bascule::load_module loads it")));
    }
    // Kernels that the text does not spell come from macros or includes, which need a directive. A text that contains
    // the word `__global__` is left to the compiler.
    const auto has = [&](const char* word) { return state.source.text.find(word) != std::string::npos; };
    if (state.declarations.empty() && !has("#") && !has("__global__")) fail_without_kernels(state.source);
    if (state.options.keep_sources.empty())
        state.options.keep_sources = path_from_environment("BASCULE_KEEP_SOURCES").value_or("");
    remember_place(state.source, state.options);
    describe_failures();
    describe_findings();
    state.cache.set_driver_limit(driver_limit());
    add_families(state.declarations, state.families);
    std::vector<Instance> instances;
    for (const std::string& expression : name_expressions) {
        if (std::optional<Instance> variable = state.variable(expression)) {
            instances.push_back(*std::move(variable));
            continue;
        }
        const NamedInstance named = split_instance_name(expression);
        const KernelFamily* const family = state.spelled_family(named.first);
        const bool names_instance = named.second.empty() ? expression.find('<') != expression.npos : true;
        if (names_instance || (family != nullptr && family->has_templates)) {
            instances.push_back(instance_of(named));
        } else if (family == nullptr) {
            if (!state.may_have_macros()) fail_name(state.source, expression, kernel_names());
            const std::string name(without_global_scope(named.first));
            instances.push_back({name, name});
        }
    }
    instances = state.without_function(std::move(instances));
    state.main = &state.units.emplace_back(state, instances, true);
    state.add_functions(instances, *state.main);
    for (KernelFamily& family : state.families) {
        if (family.declarations.size() == 1 && !family.has_templates)
            family.sole = &state.function({{}, family.name});
    }
}

Module::Module(std::shared_ptr<const ImageSource> images, Source place, CompileOptions options, Cache& cache,
               Device device)
    : state_(std::make_shared<ModuleState>(std::move(place), std::move(options), cache)) {
    ModuleState& state = *state_;
    state.images = std::move(images);
    describe_failures();
    describe_findings();
    state.cache.set_driver_limit(driver_limit());
    state.main = &state.units.emplace_back(state, std::vector<Instance>{}, true, state.images.get());
    const std::shared_ptr<const Image> image =
        state.main->compile(state.options.arch.value_or(device.arch())).image;
    if (image->kernels.empty()) {
        throw CompileError(fmt::format("{} has no kernel. Code with device functions alone is for {}.",
                                       state.source.name, advice("bascule.link", "bascule::link")));
    }
    for (const KernelImage& kernel : image->kernels) {
        KernelFamily& family = state.families.emplace_back();
        family.name = kernel.expression;
        family.declarations.push_back(declaration_of(kernel));
        family.sole = &state.function({{}, kernel.expression});
    }
}

const Source& Module::source() const noexcept { return state_->source; }
std::shared_ptr<const ImageSource> Module::images() const noexcept { return state_->images; }
std::vector<Instance> Module::instances() const { return state_->main->instances(); }
const CompileOptions& Module::options() const noexcept { return state_->options; }
Cache& Module::cache() const noexcept { return state_->cache; }

bool Module::is_current() const {
    std::vector<const Unit*> units;
    {
        const std::lock_guard lock(state_->growing);
        for (const Unit& unit : state_->units) units.push_back(&unit);
    }
    return std::all_of(units.begin(), units.end(), [](const Unit* unit) { return unit->is_current(); });
}

bool Module::is_stateless() const {
    const std::shared_ptr<const Image> image = state_->main->any_compiled();
    if (image == nullptr || state_->images != nullptr || has_variables(image->ptx)) return false;
    // A template instance is an image of its own, which may have variables.
    const auto may_have_template = [](const std::string& text) {
        return std::ranges::any_of(std::array{"template", "auto", "##", "%:", "\\"},
                                   [&](const char* part) { return text.find(part) != text.npos; });
    };
    return !may_have_template(state_->source.text) &&
           std::ranges::none_of(state_->options.defines,
                                [&](const auto& define) { return may_have_template(define.second); });
}

bool Module::exposes_variables() const noexcept { return state_->exposes_variables; }
void Module::note_exposed_variables() const noexcept { state_->exposes_variables = true; }

std::vector<std::string> Module::name_expressions() const {
    std::vector<std::string> expressions;
    for (const Instance& instance : state_->main->instances()) expressions.push_back(instance.expression);
    return expressions;
}

const std::vector<KernelDeclaration>& Module::declarations() const noexcept { return state_->declarations; }

bool Module::only_templates() const noexcept {
    return !state_->declarations.empty() && state_->main->instances().empty() &&
           std::ranges::all_of(state_->declarations, &KernelDeclaration::is_template);
}

std::vector<std::string> Module::kernel_names() const {
    std::vector<std::string> names;
    const std::shared_ptr<const Image> image =
        state_->main == nullptr ? nullptr : state_->main->any_compiled();
    const auto is_absent = [&](const std::string& name) {
        const auto is_it = [&](const auto& each) { return each.first == name; };
        return image != nullptr && std::ranges::any_of(image->absent, is_it);
    };
    for (const KernelFamily& family : state_->families) {
        if (!is_absent(family.name)) names.push_back(family.name);
    }
    if (image == nullptr || state_->images != nullptr) return names;
    for (const KernelImage& kernel : image->kernels) {
        if (std::find(names.begin(), names.end(), kernel.name) == names.end()) names.push_back(kernel.name);
    }
    return names;
}

Kernel Module::kernel_of_images(const std::string& wanted) const {
    const std::shared_ptr<const Image> image = state_->main->any_compiled();
    const auto is_exact = [&](const KernelFamily& family) {
        const KernelImage* const kernel = image->find(family.name);
        return family.name == wanted || (kernel != nullptr && kernel->lowered_name == wanted);
    };
    const auto is_like = [&](const KernelFamily& family) {
        const KernelImage* const kernel = image->find(family.name);
        const std::string_view declared = kernel == nullptr ? family.name : kernel->name;
        const std::string_view base = declared.substr(0, declared.find_first_of("<("));
        return base == wanted || last_component(base) == wanted || family.name.ends_with("::" + wanted);
    };
    KernelFamily* const match = find_family(state_->families, state_->source, wanted, is_exact, is_like);
    if (match == nullptr) fail_name(state_->source, wanted, kernel_names());
    return Kernel(*this, match, match->sole, &match->choices);
}

Kernel Module::kernel(const std::string& name) const {
    if (state_->images != nullptr) return kernel_of_images(name);
    if (name.ends_with('>')) return named_instance(split_instance_name(name));
    KernelFamily* family = state_->spelled_family(name);
    if (family != nullptr && state_->may_have_macros() && family->name != without_global_scope(name)) {
        // Macros may have made a kernel of exactly this name.
        KernelFamily* const exact = undeclared_family(std::string(without_global_scope(name)));
        if (exact != nullptr && exact->name == without_global_scope(name)) family = exact;
    }
    if (family == nullptr) family = undeclared_family(std::string(without_global_scope(name)));
    if (family == nullptr) fail_name(state_->source, name, kernel_names());
    return Kernel(*this, family, family->sole, &family->choices);
}

/// Looks for a template in the text, then in the image, then in the headers, and finally asks the compiler.
Kernel Module::named_instance(const NamedInstance& named) const {
    ModuleState& state = *state_;
    const auto in = [&](KernelFamily* family) {
        return Kernel(*this, family, family->sole, &family->choices);
    };
    const Instance whole = as_written(named);
    KernelFamily* family = state.family_among(state.families, named.first);
    if (KernelFunction* const function = state.known_function(whole.expression))
        return Kernel(*this, family != nullptr ? family : &state.family_of(whole), function, nullptr);
    if (family != nullptr && (family->has_templates || !state.may_have_macros()))
        return in(family).instantiate(named.second);
    if (KernelFamily* const undeclared = undeclared_family(whole.expression)) return in(undeclared);
    family = state.family_among(state.header_families(), named.first);
    if (family != nullptr) return in(family).instantiate(named.second);
    const Instance instance = instance_of(named);
    const Arch arch = state.options.arch.value_or(Device::current().arch());
    try {
        state.cache.image(program_of({state.source, state.options, {instance}}, false, arch));
    } catch (const CompileError& error) {
        const std::string_view log = error.details().log;
        const bool is_unknown = log.find("is undefined") != log.npos || log.find("has no member") != log.npos;
        if (family == nullptr && is_unknown) fail_name(state.source, named.first, kernel_names());
        throw;
    }
    return Kernel(*this, &state.family_of(instance), &state.function(instance), nullptr);
}

Kernel Module::kernel(const KernelReference& reference) const {
    Kernel family = kernel(reference.name);
    if (reference.expression.empty()) {
        return reference.given.empty() ? family : family.instantiate(reference.given);
    }
    if (family.is_function() && family.expression() == reference.expression) return family;
    KernelFunction& function = reference.together.empty()
                                   ? state_->function({{}, reference.expression})
                                   : state_->function(reference.expression, reference.together);
    return Kernel(*this, family.family_, &function, nullptr);
}

KernelFamily* Module::undeclared_family(const std::string& name) const {
    ModuleState& state = *state_;
    if (state.main == nullptr) return nullptr;  // name expressions are still being read
    std::shared_ptr<const Image> image = state.main->any_compiled();
    if (image == nullptr) {
        const Arch arch = state.options.arch.value_or(Device::current().arch());
        image = name.ends_with('>') ? state.main->compile(arch).image : compile(arch).image;
    }
    return state.undeclared_family(name, *image);
}

// --- Instances that are compiled together ------------------------------------------------------------------

Instance Module::instance_of(const NamedInstance& wanted) const {
    KernelFamily* const family = state_->spelled_family(wanted.first);
    const bool is_spelled = family != nullptr && family->has_templates && family->declarations.size() == 1;
    if (is_spelled) {
        const Kernel kernel(*this, family, nullptr, &family->choices);
        if (std::optional<Instance> instance = kernel.instance_for(wanted.second))
            return *std::move(instance);
        const KernelDeclaration& declaration = family->declarations.front();
        if (!declaration.is_conditional && !place_explicit(declaration, wanted.second).complete()) {
            reject_field(
                ErrorKind::value, family->name,
                "the instance of {} needs all of its template arguments, because no launch can add to them "
                "here.",
                spell(declaration));
        }
    } else if (!state_->may_have_macros()) {
        if (family == nullptr) fail_name(state_->source, wanted.first, kernel_names());
        reject_field(ErrorKind::value, family->name,
                     "kernel '{}' is {}: only instances of one template can be named.", family->name,
                     family->has_templates ? "overloaded" : "not a template");
    }
    if (!wanted.second.named.empty()) {
        reject_field(
            ErrorKind::value, wanted.first,
            "the instance of '{}' is for the compiler to complete, which knows template arguments by "
            "their places alone.",
            wanted.first);
    }
    // The compiler completes the rest: default arguments, and templates that macros make.
    return as_written({is_spelled ? family->name : wanted.first, wanted.second});
}

std::vector<Kernel> Module::instantiate(const std::vector<NamedInstance>& wanted, Arch arch) const {
    std::vector<Instance> instances;
    instances.reserve(wanted.size());
    for (const NamedInstance& each : wanted) instances.push_back(instance_of(each));
    const std::vector<Instance> together = state_->without_function(instances);
    if (!together.empty()) {
        Unit* unit = nullptr;
        {
            const std::lock_guard lock(state_->growing);
            unit = &state_->units.emplace_back(*state_, together, false);
        }
        unit->compile(arch);  // may throw: nothing refers to the unit yet
        const std::lock_guard lock(state_->growing);
        state_->add_functions(together, *unit);  // except those that another thread has requested meanwhile
    }
    std::vector<Kernel> kernels;
    for (std::size_t i = 0; i < wanted.size(); ++i) {
        KernelFamily* family = state_->spelled_family(wanted[i].first);
        if (family == nullptr) family = &state_->family_of(instances[i]);
        kernels.push_back(Kernel(*this, family, &state_->function(instances[i]), nullptr));
    }
    return kernels;
}

// --- Images ------------------------------------------------------------------------------------------------

Cache::Lookup Module::compile(Arch arch) const {
    Cache::Lookup lookup = state_->main->compile(arch);
    const bool is_empty = state_->declarations.empty() && lookup.image->kernels.empty();
    const auto has = [&](const char* word) { return state_->source.text.find(word) != std::string::npos; };
    const bool may_have_template =
        state_->may_have_macros() && has("__global__") && (has("template") || has("auto"));
    if (is_empty && !may_have_template && state_->header_families().empty())
        fail_without_kernels(state_->source);
    return lookup;
}

std::shared_ptr<const Library> Module::library(Device device) const {
    return state_->main->loaded(device).library;
}

LoadedVariable Module::variable(const Variable& variable, Device device) const {
    return state_->variable(variable, device);
}

ProbedProgram Module::probed(Device device) const {
    const Arch arch = options().arch.value_or(device.arch());
    return {state_->main->program(arch), state_->main->compile(arch), state_->cache};
}

}  // namespace bascule
