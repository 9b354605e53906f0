// Chooses a kernel's function once for each list of argument types and caches the choice.
#include <algorithm>
#include <optional>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <bascule/interface/errors/rejection.hpp>
#include <bascule/jit/overloads/function_choice.hpp>
#include <bascule/jit/templates/kernel_declaration.hpp>
#include <bascule/runtime/kernels/kernel.hpp>
#include <bascule/runtime/kernels/kernel_state.hpp>

namespace bascule {

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
