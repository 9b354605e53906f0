#include <algorithm>
#include <bit>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <bascule/interface/errors/rejection.hpp>
#include <bascule/jit/questions/struct_probe.hpp>
#include <bascule/runtime/kernels/kernel.hpp>
#include <bascule/runtime/kernels/launch.hpp>
#include <bascule/runtime/kernels/module_state.hpp>
#include <bascule/runtime/kernels/occupancy.hpp>
#include <bascule/runtime/streams/stream_capture.hpp>

namespace bascule {

namespace {

/// Reports a kernel that the text declares and the image lacks, with the reason that the image gives.
[[noreturn]] void fail_absent(const Image& image, const std::string& name, const Source& source) {
    std::string reason = "was dropped by the compiler";
    for (const auto& [absent, why] : image.absent) {
        if (absent == name) reason = why;
    }
    throw CompileError(fmt::format("{}: kernel '{}' cannot be launched: it {}.", source.name, name, reason),
                       {.log = image.log, .name_expression = name, .architecture = to_string(image.arch)});
}

/// Creates the ProbedProgram only when the compiler must be asked, which most launches with structs do not need.
class LazyProbe {
  public:
    LazyProbe(const Kernel& kernel, Device device) : kernel_(kernel), device_(device) {}
    const ProbedProgram& get() {
        if (!probed_) probed_.emplace(kernel_.probed(device_));
        return *probed_;
    }

  private:
    const Kernel& kernel_;
    Device device_;
    std::optional<ProbedProgram> probed_;
};

KernelFunction::Structs& structs_of(KernelFunction& function, Device device, LazyProbe& probe) {
    const Unit::Loaded* loaded = function.unit.existing(device);
    const std::shared_ptr<const Image>& image = loaded != nullptr ? loaded->image : probe.get().made.image;
    const std::lock_guard lock(function.comparing);
    for (KernelFunction::Structs& known : function.structs) {
        if (known.image == image) return known;
    }
    return function.structs.emplace_back(KernelFunction::Structs{image, {}, {}});
}

void compare_structure(KernelFunction& function, KernelFunction::Structs& structs, LazyProbe& probe,
                       const ArgumentPack& args, const LayoutClaim& claim) {
    {
        const std::lock_guard lock(function.comparing);
        const auto same = [&](const auto& known) {
            return known.first == claim.argument && known.second == *claim.layout;
        };
        if (std::any_of(structs.compared.begin(), structs.compared.end(), same)) return;
    }
    const Parameter& parameter = args.signature().parameters[static_cast<std::size_t>(claim.argument)];
    naming_argument(claim.argument, parameter.name, [&] {
        check_layout(probe.get(), parameter.type.element, parameter.type.dtype.itemsize, *claim.layout,
                     claim.source);
    });
    const std::lock_guard lock(function.comparing);
    structs.compared.emplace_back(claim.argument, *claim.layout);
}

void write_tuple(KernelFunction& function, KernelFunction::Structs& structs, LazyProbe& probe,
                 ArgumentPack& args, const TupleClaim& claim) {
    std::shared_ptr<const std::vector<StructMember>> members;
    {
        const std::lock_guard lock(function.comparing);
        if (const auto known = structs.members.find(claim.argument); known != structs.members.end())
            members = known->second;
    }
    if (members != nullptr) {
        args.set_members(claim, *members);
        return;
    }
    const Parameter& parameter = args.signature().parameters[static_cast<std::size_t>(claim.argument)];
    members = naming_argument(claim.argument, parameter.name, [&] {
        return std::make_shared<const std::vector<StructMember>>(
            read_members(probe.get(), parameter.type.element, claim.tuple));
    });
    args.set_members(claim, *members);  // refuses a tuple that does not have all members
    const std::lock_guard lock(function.comparing);
    structs.members.emplace(claim.argument, std::move(members));
}

/// Checks structures of code without a text by size. Arrays of a struct of unknown size are accepted like other arrays.
void fit_by_size(const ArgumentPack& args) {
    for (const LayoutClaim& claim : args.layout_claims()) {
        const Parameter& parameter = args.signature().parameters[static_cast<std::size_t>(claim.argument)];
        naming_argument(claim.argument, parameter.name, [&] {
            if (claim.layout->bytes == parameter.bytes) return;
            reject(ErrorKind::value, {.expected = parameter.spelling, .got = to_string(*claim.layout)},
                   "the kernel declares `{}` of {} bytes, got {} of {} bytes.", parameter.spelling,
                   parameter.bytes, to_string(*claim.layout), claim.layout->bytes);
        });
    }
    for (const TupleClaim& claim : args.tuple_claims()) {
        const Parameter& parameter = args.signature().parameters[static_cast<std::size_t>(claim.argument)];
        naming_argument(claim.argument, parameter.name, [&] {
            reject(
                ErrorKind::type, {.expected = parameter.spelling, .got = "a tuple"},
                "the kernel declares `{}`, got a tuple. The code does not tell the members of a struct: pass a "
                "structured scalar of {} bytes.",
                parameter.spelling, parameter.bytes);
        });
    }
}

/// The smallest power of two that is at least `extent`, but at most `most`, which is a power of two.
std::uint32_t side(std::uint64_t extent, std::uint32_t most) noexcept {
    return std::bit_ceil(static_cast<std::uint32_t>(std::min<std::uint64_t>(extent, most)));
}

/// Chooses the block's shape. With one axis, all threads are along it. With several, the block is a tile of at most 256
/// threads, at most 32 of them along x, so that a warp reads adjacent elements and the tile stays compact.
Dim3 block_for(std::span<const std::uint64_t> work, std::uint32_t threads) noexcept {
    constexpr std::uint32_t warp = 32;
    constexpr std::uint32_t tile = 256;
    if (work.size() == 1) {
        const std::uint64_t warps = (work[0] + warp - 1) / warp;
        return {static_cast<std::uint32_t>(std::min<std::uint64_t>(threads, warps * warp)), 1, 1};
    }
    std::uint32_t left = std::bit_floor(std::min(threads, tile));
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
    reject_field(ErrorKind::value, "work",
                 "work of {} threads along {} needs {} blocks of {}, and a grid has at most {} there. Give "
                 "each thread more to do (bascule::grid_stride), or put the longest axis first.",
                 work, axis, blocks, block, most);
}

/// Returns a block of at most `threads` threads and the grid that covers `work`, which is (x, y, z) in threads.
LaunchConfig geometry_for(std::span<const std::uint64_t> work, std::uint32_t threads,
                          const LaunchLimits& limits, std::uint32_t shared_bytes) {
    if (work.empty() || work.size() > 3 || std::find(work.begin(), work.end(), 0) != work.end()) {
        reject_field(ErrorKind::value, "work",
                     "work must be one to three extents, each at least 1: with no work there is nothing to "
                     "launch.");
    }
    LaunchConfig config;
    config.shared_bytes = shared_bytes;
    config.block = block_for(work, threads);
    const Dim3& most = limits.grid;
    config.grid.x = blocks_for(work[0], config.block.x, most.x, 'x');
    if (work.size() > 1) config.grid.y = blocks_for(work[1], config.block.y, most.y, 'y');
    if (work.size() > 2) config.grid.z = blocks_for(work[2], config.block.z, most.z, 'z');
    return config;
}

}  // namespace

Kernel::Kernel(Source source, const std::string& name, CompileOptions options, Cache& cache)
    : Kernel(Module(std::move(source), std::move(options), cache).kernel(name)) {}

const std::string& Kernel::name() const noexcept { return family_->name; }
const Module& Kernel::module() const noexcept { return module_; }

const KernelDeclaration& Kernel::declaration() const noexcept { return family_->declarations.front(); }

KernelFunction& Kernel::function() const {
    if (function_ != nullptr) return *function_;
    if (family_->declarations.size() > 1) {
        reject(ErrorKind::type,
               "kernel '{}' has {} overloads: call it with arguments, or choose one by its parameter types: "
               ".overload(\"{}\").",
               name(), family_->declarations.size(),
               fmt::join(family_->declarations.front().parameter_types, ", "));
    }
    reject(ErrorKind::type,
           "kernel '{}' is a template: call it with arguments, or choose an instance: .instantiate(...).",
           name());
}

const std::string& Kernel::expression() const { return function().expression; }

KernelReference Kernel::reference() const {
    KernelReference reference{.name = name()};
    if (function_ == nullptr) {
        if (choices_ != nullptr) reference.given = choices_->given;
        return reference;
    }
    reference.expression = function_->expression;
    if (&function_->unit != module_.state_->main) reference.together = function_->unit.instances();
    return reference;
}

const LoadedKernel& Kernel::loaded(Device device) const {
    KernelFunction& function = this->function();
    auto& slot = function.loaded[static_cast<std::size_t>(device.ordinal())];
    if (const LoadedKernel* hit = slot.load(std::memory_order_acquire)) [[likely]]
        return *hit;

    const Unit::Loaded& unit = function.unit.loaded(device);
    const KernelImage* image = unit.image->find(function.expression);
    if (image == nullptr) fail_absent(*unit.image, function.expression, module_.source());
    const std::lock_guard lock(function.loading);
    if (const LoadedKernel* hit = slot.load(std::memory_order_acquire)) return *hit;
    function.owned.push_back(unit.library->load(*image, device));
    slot.store(function.owned.back().get(), std::memory_order_release);
    return *function.owned.back();
}

const LoadedKernel* Kernel::existing(Device device) const {
    return function().loaded[static_cast<std::size_t>(device.ordinal())].load(std::memory_order_acquire);
}

ProbedProgram Kernel::probed(Device device) const {
    Unit& unit = function().unit;
    const Arch arch = module_.state_->options.arch.value_or(device.arch());
    if (std::optional<ProbedProgram> program = unit.probed(function().expression, arch))
        return *std::move(program);
    throw Error(fmt::format(
        "kernel '{}' of {} was compiled elsewhere: its text is not known, and the compiler cannot "
        "be asked about it.",
        name(), module_.source().name));
}

bool Kernel::has_text(Device device) const {
    if (module_.state_->images == nullptr) return true;
    KernelFunction& function = this->function();
    using Text = KernelFunction::Text;
    if (function.text.load(std::memory_order_relaxed) == Text::not_asked) {
        const Arch arch = module_.state_->options.arch.value_or(device.arch());
        function.text = function.unit.probed(function.expression, arch) ? Text::known : Text::unknown;
    }
    return function.text.load(std::memory_order_relaxed) == Text::known;
}

void Kernel::convert_structures(ArgumentPack& args, Device device) const {
    if (!args.has_claims()) return;
    if (!has_text(device)) return fit_by_size(args);
    LazyProbe probe(*this, device);
    KernelFunction& function = this->function();
    KernelFunction::Structs& structs = structs_of(function, device, probe);
    for (const LayoutClaim& claim : args.layout_claims())
        compare_structure(function, structs, probe, args, claim);
    for (const TupleClaim& claim : args.tuple_claims()) write_tuple(function, structs, probe, args, claim);
}

void Kernel::launch(StreamRef stream, const LaunchConfig& config, ArgumentPack& args, const Owners& owners,
                    LaunchSite site) const {
    OwnersKept kept(stream, owners);
    if (existing(stream.device()) == nullptr) require_loadable(stream, name());
    const LaunchTarget target(loaded(stream.device()), stream.device(), config);
    convert_structures(args, stream.device());
    bascule::launch(target, stream, args, kept.transfer(), site);
}

const Signature& Kernel::signature(Device device) const { return loaded(device).image->signature; }

KernelImage Kernel::image(Arch arch) const {
    const std::shared_ptr<const Image> compiled = compile(arch).image;
    const KernelImage* kernel = compiled->find(expression());
    if (kernel == nullptr) fail_absent(*compiled, expression(), module_.source());
    return *kernel;
}

Cache::Lookup Kernel::compile(Arch arch) const { return function().unit.compile(arch); }

std::shared_ptr<const Image> Kernel::compiled(Arch arch) const { return function().unit.compiled(arch); }

std::optional<Provenance> Kernel::provenance(Device device) const {
    const Unit::Loaded* loaded = function().unit.existing(device);
    if (loaded == nullptr) return std::nullopt;
    return Provenance{loaded->origin, loaded->image->compile_milliseconds,
                      loaded->library->load_milliseconds()};
}

std::shared_ptr<const Library> Kernel::library(Device device) const {
    return function().unit.loaded(device).library;
}

LaunchConfig Kernel::configuration_for(Device device, std::span<const std::uint64_t> work,
                                       std::uint32_t shared_bytes) const {
    const LoadedKernel& kernel = loaded(device);
    auto& remembered = function().best_block[static_cast<std::size_t>(device.ordinal())];
    int threads = shared_bytes == 0 ? remembered.load(std::memory_order_relaxed) : 0;
    if (threads == 0) {
        check({.grid = {}, .block = {}, .shared_bytes = shared_bytes}, kernel.limits);
        threads = static_cast<int>(best_block_size(kernel, device, shared_bytes));
        if (shared_bytes == 0) remembered.store(threads, std::memory_order_relaxed);
    }
    return geometry_for(work, static_cast<std::uint32_t>(threads), kernel.limits, shared_bytes);
}

// --- The choice of a function, once for each list of argument types ------------------------------------------

std::optional<Kernel> Kernel::known_for_arguments(std::span<const ArgumentValue> arguments) const {
    if (is_function()) return *this;
    const auto same = [&](const std::vector<ArgumentType>& types) {
        return std::equal(
            types.begin(), types.end(), arguments.begin(), arguments.end(),
            [](const ArgumentType& type, const ArgumentValue& value) { return type == type_of(value); });
    };
    const KernelChoices::Choice* known = nullptr;
    {
        const std::shared_lock lock(choices_->mutex);
        for (const KernelChoices::Choice& choice : choices_->made) {
            if (known == nullptr && same(choice.types)) known = &choice;
        }
    }
    if (known == nullptr) return std::nullopt;
    if (!known->weak_integers.empty()) {
        check_weak_integers(name(), declared(arguments.size()), known->weak_integers, arguments);
    }
    return Kernel(module_, family_, known->function, nullptr);
}

Kernel Kernel::for_arguments(std::span<const ArgumentValue> arguments, Device device) const {
    if (auto known = known_for_arguments(arguments)) return *known;
    const Signature& declared = this->declared(arguments.size());
    std::vector<ArgumentType> types;
    for (const ArgumentValue& argument : arguments) types.push_back(type_of(argument));
    ModuleState& module = *module_.state_;
    const Arch arch = module.options.arch.value_or(device.arch());
    const FunctionChoice chosen =
        choose_function({name(), family_->declarations, choices_->given, types, module.source, module.options,
                         arch, module.cache, module.asked_patterns, [&](const Instance& wanted) {
                             Unit& unit =
                                 wanted.expression.empty() ? *module.main : module.function(wanted).unit;
                             return unit.compile(arch).image;
                         }});
    check_weak_integers(name(), declared, chosen.weak_integers, arguments);
    KernelFunction* function = &module.function(chosen.function);
    const std::unique_lock lock(choices_->mutex);
    choices_->made.push_back({std::move(types), function, chosen.weak_integers});
    return {module_, family_, function, nullptr};
}

Kernel Kernel::resolve_function(Device device) const {
    if (is_resolved()) return *this;
    return resolve_function(module_.state_->options.arch.value_or(device.arch()));
}

Kernel Kernel::resolve_function(Arch arch) const {
    if (is_resolved()) return *this;
    ModuleState& module = *module_.state_;
    const auto image = module.main->compile(arch).image;
    const std::vector<KernelImage> functions = functions_named(name(), *image);
    if (functions.size() > 1) return {module_, family_, nullptr, &family_->choices};
    if (functions.empty() || is_function()) return *this;
    return {module_, family_, &module.function({{}, functions.front().expression}), nullptr};
}

/// If the text spells a name once, macros may still make overloads of it.
bool Kernel::is_resolved() const noexcept {
    if (family_->has_templates || module_.state_->images != nullptr) return true;
    return is_function() && (function_ != family_->sole || !module_.state_->may_have_macros());
}

std::optional<Instance> Kernel::instance_for(const TemplateArguments& given) const {
    if (!family_->has_templates || family_->declarations.size() != 1) return std::nullopt;
    const KernelDeclaration& declaration = family_->declarations.front();
    const Deduction deduction = place_explicit(declaration, given);
    if (!says_all(declaration, deduction)) return std::nullopt;
    return Instance{name(), instance_name(declaration, deduction)};
}

Kernel Kernel::instantiate(TemplateArguments given) const {
    if (!family_->has_templates) {
        reject(ErrorKind::type, "kernel '{}' is not a template: there is nothing to instantiate.", name());
    }
    ModuleState& state = *module_.state_;
    if (const auto instance = instance_for(given))
        return {module_, family_, &state.function(*instance), nullptr};
    const std::lock_guard lock(state.growing);
    for (KernelChoices& known : state.explicit_choices) {
        if (known.family == family_ && known.given == given) return {module_, family_, nullptr, &known};
    }
    KernelChoices& choices = state.explicit_choices.emplace_back();
    choices.family = family_;
    choices.given = std::move(given);
    return {module_, family_, nullptr, &choices};
}

Kernel Kernel::overload(const std::string& parameter_types) const {
    const std::vector<std::string> types = split_types(parameter_types);
    // A function that the text declares is in the module's image.
    const bool in_text =
        std::ranges::any_of(family_->declarations, [&](const KernelDeclaration& declaration) {
            return !declaration.is_template && declaration.parameter_types == types;
        });
    if (in_text && family_->sole != nullptr) return {module_, family_, family_->sole, nullptr};
    const std::string expression = overload_expression(name(), function_pointer(types));
    return {module_, family_, &module_.state_->function({in_text ? "" : name(), expression}), nullptr};
}

std::vector<Kernel> Kernel::instances() const {
    std::vector<Kernel> found;
    if (is_function()) return found;
    ModuleState& module = *module_.state_;
    const std::lock_guard lock(module.growing);
    for (const auto& [expression, function] : module.functions) {
        const bool is_own = expression == name() || expression.starts_with(name() + "<") ||
                            expression.ends_with("(&" + name() + ")");
        if (is_own) found.push_back(Kernel(module_, family_, function.get(), nullptr));
    }
    return found;
}

bool Kernel::is_template() const noexcept { return !is_function() && family_->has_templates; }

std::string Kernel::declared_signatures() const {
    std::vector<std::string> spellings;
    for (const KernelDeclaration& declaration : family_->declarations)
        spellings.push_back(spell(declaration));
    if (is_function() && expression() != name())
        spellings = {fmt::format("{} of {}", expression(), spellings.front())};
    return fmt::format("{}", fmt::join(spellings, "\n"));
}

const Signature& Kernel::declared(std::size_t arguments) const {
    KernelChoices& choices = choices_ != nullptr ? *choices_ : family_->choices;
    {
        const std::shared_lock lock(choices.mutex);
        const auto known = choices.declared.find(arguments);
        if (known != choices.declared.end()) return *known->second;
    }
    std::vector<const KernelDeclaration*> fitting;
    for (const KernelDeclaration& declaration : family_->declarations) {
        if (takes(declaration, arguments)) fitting.push_back(&declaration);
    }
    if (!fitting.empty()) {
        std::stable_partition(fitting.begin(), fitting.end(),
                              [](const KernelDeclaration* declaration) { return !declaration->is_divided; });
        auto signature = std::make_unique<Signature>(signature_in_text(fitting, arguments));
        const std::unique_lock lock(choices.mutex);
        return *choices.declared.emplace(arguments, std::move(signature)).first->second;
    }
    std::vector<std::string> spellings;
    std::uint32_t defaults = 0;
    for (const KernelDeclaration& declaration : family_->declarations) {
        spellings.push_back(spell(declaration));
        if (arguments < declaration.parameters.size()) defaults += declaration.defaults;
    }
    reject(ErrorKind::type, "kernel '{}' does not take {} argument{}: {}{}", name(), arguments,
           arguments == 1 ? "" : "s", fmt::join(spellings, "; "), advice_on_defaults(defaults));
}

}  // namespace bascule
