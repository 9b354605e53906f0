#include <algorithm>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <bascule/interface/errors/rejection.hpp>
#include <bascule/jit/headers/header_scan.hpp>
#include <bascule/jit/signatures/reflection.hpp>
#include <bascule/jit/variables/variable.hpp>
#include <bascule/runtime/kernels/module_state.hpp>
#include <bascule/runtime/streams/stream_capture.hpp>
#include <bascule/runtime/trace/recorder.hpp>

namespace bascule {
namespace {

[[noreturn]] void fail_ambiguous(const Source& source, const std::string& wanted,
                                 const std::vector<std::string>& matches) {
    throw CompileError(fmt::format("{} has several kernels '{}': use a qualified name: {}.", source.name,
                                   wanted, fmt::join(matches, ", ")),
                       {.name_expression = wanted});
}

/// Refuses an architecture that the device cannot run, before compiling. The image will contain PTX, which runs
/// wherever its machine code does.
void refuse_unfit(Arch arch, Device device) {
    if (runs_on(CodeForm::ptx, arch, device.capability())) return;
    reject(ErrorKind::value,
           "code for {} does not run on device {} ({}), which is {}. Omit arch to compile for the device.",
           to_string(arch), device.ordinal(), device.name(), to_string(device.capability()));
}

}  // namespace

KernelFamily* find_family(std::deque<KernelFamily>& families, const Source& source, const std::string& wanted,
                          const std::function<bool(const KernelFamily&)>& is_exact,
                          const std::function<bool(const KernelFamily&)>& is_like) {
    std::vector<std::string> matches;
    KernelFamily* match = nullptr;
    for (KernelFamily& family : families) {
        if (is_exact(family)) return &family;
        if (!is_like(family)) continue;
        matches.push_back(family.name);
        match = &family;
    }
    if (matches.size() > 1) fail_ambiguous(source, wanted, matches);
    return match;
}

void add_families(const std::vector<KernelDeclaration>& declarations, std::deque<KernelFamily>& families) {
    for (const KernelDeclaration& declaration : declarations) {
        const auto known = std::ranges::find(families, declaration.name, &KernelFamily::name);
        KernelFamily* family = known != families.end() ? &*known : &families.emplace_back();
        family->name = declaration.name;
        family->declarations.push_back(declaration);
        family->has_templates = family->has_templates || declaration.is_template;
    }
}

KernelDeclaration declaration_of(const KernelImage& kernel) {
    KernelDeclaration declaration;
    declaration.name = kernel.name;
    for (const Parameter& parameter : kernel.signature.parameters) {
        declaration.parameters.push_back(parameter.name);
        declaration.parameter_types.push_back(parameter.spelling);
    }
    return declaration;
}

std::string_view without_global_scope(std::string_view name) {
    return name.starts_with("::") ? name.substr(2) : name;
}

// --- Kernels by name ---------------------------------------------------------------------------------------

KernelFamily* ModuleState::family_among(std::deque<KernelFamily>& some, const std::string& name) const {
    const std::string_view wanted = without_global_scope(name);
    return find_family(
        some, source, name, [&](const KernelFamily& each) { return each.name == wanted; },
        [&](const KernelFamily& each) { return last_component(each.name) == wanted; });
}

KernelFamily* ModuleState::spelled_family(const std::string& name) {
    KernelFamily* const family = family_among(families, name);
    return family != nullptr ? family : family_among(header_families(), name);
}

std::deque<KernelFamily>& ModuleState::header_families() {
    const std::lock_guard lock(growing);
    if (!std::exchange(headers_are_read, true)) add_families(header_templates(source, options), of_headers);
    return of_headers;
}

KernelFamily* ModuleState::undeclared_family(const std::string& name, const Image& image) {
    std::vector<KernelImage> found;
    const auto find = [&](const auto& is_it) {
        for (const KernelImage& each : image.kernels) {
            if (is_it(each) && (found.empty() || each.name == found.front().name)) found.push_back(each);
        }
    };
    find([&](const KernelImage& each) {
        return each.expression == name || each.name == name ||
               demangle_kernel(each.lowered_name).name == name;
    });
    if (found.empty() && name.find('<') == name.npos)
        find([&](const KernelImage& each) { return last_component(each.name) == name; });
    if (found.empty()) return nullptr;
    KernelFunction* const sole = found.size() == 1 ? &function({{}, found.front().expression}) : nullptr;
    const std::lock_guard lock(growing);
    const std::string& called = found.front().name;
    const auto known = std::ranges::find_if(
        undeclared, [&](const KernelFamily& each) { return each.name == called && each.sole == sole; });
    if (known != undeclared.end()) return &*known;
    KernelFamily& family = undeclared.emplace_back();
    family.name = called;
    for (const KernelImage& each : found) family.declarations.push_back(declaration_of(each));
    family.sole = sole;
    return &family;
}

KernelFamily& ModuleState::family_of(const Instance& instance) {
    const std::lock_guard lock(growing);
    const auto known = std::ranges::find(undeclared, instance.expression, &KernelFamily::name);
    if (known != undeclared.end()) return *known;
    KernelFamily& family = undeclared.emplace_back();
    family.name = instance.expression;
    family.declarations.emplace_back().name = instance.kernel;
    return family;
}

bool ModuleState::may_have_macros() const {
    return !options.defines.empty() || source.text.find("define") != std::string::npos ||
           source.text.find("include") != std::string::npos;
}

KernelFunction* ModuleState::known_function(const std::string& expression) {
    const std::lock_guard lock(growing);
    const auto known = functions.find(expression);
    return known == functions.end() ? nullptr : known->second.get();
}

KernelFunction& ModuleState::function(const Instance& which) {
    if (!which.kernel.empty()) return function(which.expression, {which});
    const std::lock_guard lock(growing);
    std::unique_ptr<KernelFunction>& slot = functions[which.expression];
    if (slot == nullptr) slot = std::make_unique<KernelFunction>(which.expression, *main);
    return *slot;
}

KernelFunction& ModuleState::function(const std::string& expression, const std::vector<Instance>& together) {
    const std::lock_guard lock(growing);
    if (const auto known = functions.find(expression); known != functions.end()) return *known->second;
    Unit& unit = units.emplace_back(*this, together, false);
    add_functions(together, unit);
    return *functions.at(expression);
}

void ModuleState::add_functions(const std::vector<Instance>& instances, Unit& unit) {
    for (const Instance& each : instances) {
        if (each.is_variable()) continue;
        std::unique_ptr<KernelFunction>& slot = functions[each.expression];
        if (slot == nullptr) slot = std::make_unique<KernelFunction>(each.expression, unit);
    }
}

std::vector<Instance> ModuleState::without_function(std::vector<Instance> wanted) {
    std::ranges::sort(wanted, {}, &Instance::expression);  // the cache key must not depend on their order
    wanted.erase(std::unique(wanted.begin(), wanted.end()), wanted.end());
    const std::lock_guard lock(growing);
    std::erase_if(wanted, [&](const Instance& each) { return functions.contains(each.expression); });
    return wanted;
}

/// A name that a kernel has means the kernel. `&` marks a variable, whether or not the text declares it.
std::optional<Instance> ModuleState::variable(const std::string& expression) const {
    const bool is_address = expression.starts_with('&');
    std::string name = expression.substr(is_address ? 1 : 0);
    if (name.starts_with("::")) name.erase(0, 2);
    const std::string base = name.substr(0, name.find('<'));
    const auto has_base = [&](const KernelFamily& family) {
        return family.name == base || last_component(family.name) == base;
    };
    if (!is_address && std::ranges::any_of(families, has_base)) return std::nullopt;
    const std::vector<std::string> known = find_variables(source.text);
    name = qualified_variable(name, known, source.name);
    const bool is_known = std::ranges::find(known, name.substr(0, name.find('<'))) != known.end();
    if (!is_address && !is_known) return std::nullopt;
    return Instance{name, "&" + name};
}

LoadedVariable ModuleState::variable(const Variable& wanted, Device device) {
    if (const auto known = variables.find(wanted, device)) return *known;
    require_loadable(std::nullopt, source.name);
    const Arch arch = options.arch.value_or(device.arch());
    if (!main->compile(arch).image->kernels.empty() || !main->instances().empty()) {
        main->loaded(device);
        if (const auto known = variables.find(wanted, device)) return *known;
    }
    const auto refuse = [&](std::string_view why) {
        throw CompileError(
            fmt::format(
                "no kernel that is loaded uses variable '{}' of {}, and {}. Launch a kernel that uses it first, or "
                "name that kernel in name_expressions.",
                wanted.name, source.name, why),
            {.name_expression = wanted.name});
    };
    if (wanted.lowered_name.empty()) refuse("NVRTC compiles a managed variable only with what uses it");
    Unit* alone = nullptr;
    {
        const std::lock_guard lock(growing);
        alone = &units.emplace_back(*this, std::vector<Instance>{{wanted.name, "&" + wanted.name}}, false);
    }
    const std::vector<PtxVariable> compiled = variables_of(alone->compile(arch).image->ptx);
    if (std::ranges::any_of(compiled, &PtxVariable::points_to_function))
        refuse("it has the address of a function, which only code that is compiled with it can call");
    alone->loaded(device);
    return variables.find(wanted, device).value();
}

// --- Units -------------------------------------------------------------------------------------------------

std::optional<ProbedProgram> Unit::probed(const std::string& expression, Arch arch) {
    if (images_made_by_ == nullptr) return ProbedProgram{program(arch), compile(arch), module_.cache};
    for (ProbedProgram& each : images_made_by_->programs(arch)) {
        if (each.made.image->find(expression) != nullptr) return std::move(each);
    }
    return std::nullopt;
}

Program Unit::program(Arch arch) const {
    return program_of({module_.source, module_.options, instances_}, functions_too_, arch);
}

bool Unit::is_current() const {
    std::vector<Compiled> images;
    {
        const std::lock_guard lock(compiling_);
        images = images_;
    }
    return std::all_of(images.begin(), images.end(), [&](const Compiled& each) {
        if (images_made_by_ != nullptr)
            return std::ranges::all_of(images_made_by_->programs(each.asked), &ProbedProgram::is_current);
        return ProbedProgram{program(each.asked), each.lookup, module_.cache}.is_current();
    });
}

const Unit::Compiled* Unit::find(Arch arch) const noexcept {
    const auto found = std::ranges::find(images_, arch, &Compiled::asked);
    return found == images_.end() ? nullptr : &*found;
}

Cache::Lookup Unit::compile(Arch arch) {
    {
        const std::lock_guard lock(compiling_);
        if (const Compiled* known = find(arch)) return known->lookup;
    }
    if (images_made_by_ == nullptr) keep_source(module_.source, module_.options);
    Cache::Lookup lookup =
        images_made_by_ == nullptr ? module_.cache.image(program(arch)) : images_made_by_->image(arch);
    const std::lock_guard lock(compiling_);
    if (const Compiled* known = find(arch)) return known->lookup;
    images_.push_back({arch, lookup});
    return lookup;
}

std::shared_ptr<const Image> Unit::compiled(Arch arch) const {
    const std::lock_guard lock(compiling_);
    const Compiled* known = find(arch);
    return known == nullptr ? nullptr : known->lookup.image;
}

std::shared_ptr<const Image> Unit::any_compiled() const {
    const std::lock_guard lock(compiling_);
    return images_.empty() ? nullptr : images_.front().lookup.image;
}

const Unit::Loaded& Unit::loaded(Device device) {
    if (const Loaded* hit = existing(device)) return *hit;
    const Arch arch = module_.options.arch.value_or(device.arch());
    refuse_unfit(arch, device);
    const Cache::Lookup lookup = compile(arch);
    const TracedCall call(CallKind::load, [&] { return "load " + module_.source.name; });
    const std::lock_guard lock(loading_);
    if (const Loaded* hit = existing(device)) return *hit;
    auto made = std::make_unique<Loaded>(Loaded{lookup, nullptr});
    for (const auto& other : owned_) {
        // A library that uses another image's variables contains addresses of its own device.
        const bool is_same = other->image == made->image && &other->library->image() == made->image.get();
        if (is_same && other->library->serves(device)) made->library = other->library;
    }
    if (images_made_by_ == nullptr) {
        made->library = module_.variables.load({program(arch), lookup, module_.cache}, device, made->library);
    } else if (made->library == nullptr) {
        made->library = Library::load(made->image, device);
    }
    owned_.push_back(std::move(made));
    loaded_[static_cast<std::size_t>(device.ordinal())].store(owned_.back().get(), std::memory_order_release);
    return *owned_.back();
}

}  // namespace bascule
