// Which function the arguments of a kernel mean: instances of templates, and overloads.
#include <algorithm>
#include <optional>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <bascule/interface/errors/error.hpp>
#include <bascule/runtime/kernels/kernel.hpp>
#include <bascule/runtime/kernels/kernel_declaration.hpp>
#include <bascule/runtime/kernels/kernel_state.hpp>

namespace bascule {
namespace {

using ErrorKind = ArgumentError::Kind;

/// Whether nothing is left for the arguments of a launch to say.
bool says_all(const KernelDeclaration& declaration, const Deduction& deduction) {
    if (!deduction.complete()) return false;
    const std::vector<TypePattern> patterns =
        read_patterns(declaration.parameter_types, declaration.template_parameters);
    for (std::size_t i = 0; i < deduction.entries.size(); ++i) {
        if (deduction.entries[i].known) continue;
        for (const TypePattern& pattern : patterns) {
            if (pattern.element == static_cast<int>(i) || pattern.rank == static_cast<int>(i)) return false;
        }
    }
    return true;
}

}  // namespace

/// Chooses once for a list of argument types.
struct Kernel::Chooser {
    const Kernel& kernel;
    std::span<const ArgumentType> arguments;
    Device device;

    ModuleState& module() const { return *kernel.module_.state_; }
    Arch arch() const { return module().options.arch.value_or(device.arch()); }

    struct Candidate {
        KernelFunction* function = nullptr;
        bool is_template = false;
        std::vector<Fit> fits;  // one an argument
        std::string spelling;
        std::vector<int> weak_integers;
    };

    Candidate choose() const {
        const KernelFamily& family = *kernel.family_;
        const bool alone = family.declarations.size() == 1;
        if (alone) return instance(family.declarations.front());

        std::vector<Candidate> candidates;
        std::vector<std::string> refusals;
        const auto consider = [&](const std::string& spelling, auto&& make) {
            try {
                if (std::optional<Candidate> candidate = make()) {
                    candidates.push_back(std::move(*candidate));
                    return;
                }
                refusals.push_back(spelling);
            } catch (const ArgumentError& error) {
                refusals.push_back(fmt::format("{}: {}", spelling, error.what()));
            } catch (const CompileError& error) {
                refusals.push_back(fmt::format("{}: {}", spelling, error.what()));
            }
        };
        if (kernel.choices_->given.empty()) {
            for (const KernelImage& image : functions_in_image()) {
                consider(to_string(image.signature), [&] { return function(image); });
            }
        }
        for (const KernelDeclaration& declaration : family.declarations) {
            if (!declaration.is_template) continue;
            consider(spell(declaration), [&]() -> std::optional<Candidate> {
                if (!takes(declaration, arguments.size())) return std::nullopt;
                Candidate candidate = instance(declaration);
                return rated(std::move(candidate));
            });
        }
        return best(std::move(candidates), refusals);
    }

    // --- Functions that are not templates

    std::vector<KernelImage> functions_in_image() const {
        std::vector<KernelImage> found;
        const bool any = std::any_of(kernel.family_->declarations.begin(), kernel.family_->declarations.end(),
                                     [](const KernelDeclaration& each) { return !each.is_template; });
        if (!any) return found;
        const auto image = module().main.compile(arch()).image;
        for (const KernelImage& each : image->kernels) {
            // A declaration and its definition may differ in spelling: they are one function.
            const bool known = std::any_of(found.begin(), found.end(), [&](const KernelImage& other) {
                return other.lowered_name == each.lowered_name;
            });
            if (each.name == kernel.name() && !known) found.push_back(each);
        }
        return found;
    }

    std::optional<Candidate> function(const KernelImage& image) const {
        Candidate candidate;
        candidate.function = &module().function(image.expression, "");
        candidate.spelling = to_string(image.signature);
        return rated(std::move(candidate), image.signature);
    }

    // --- Instances of templates

    Candidate instance(const KernelDeclaration& declaration) const {
        std::vector<TypePattern> patterns =
            read_patterns(declaration.parameter_types, declaration.template_parameters);
        const Deduction given = place_explicit(declaration, kernel.choices_->given);
        Deduction deduction = deduce(declaration, patterns, arguments, given);
        if (!deduction.complete()) {
            patterns = asked_patterns(declaration, std::move(patterns));
            deduction = deduce(declaration, patterns, arguments, given);
        }
        if (!deduction.complete()) throw missing_argument(declaration, patterns, arguments, deduction);
        Candidate candidate;
        candidate.is_template = true;
        candidate.function = &module().function(expression_for(declaration, deduction), declaration.name);
        candidate.spelling = spell(declaration);
        for (const Deduction::Entry& entry : deduction.entries) {
            if (entry.weak.empty() || entry.texts.front() != "int") continue;
            candidate.weak_integers.insert(candidate.weak_integers.end(), entry.weak.begin(),
                                           entry.weak.end());
        }
        return candidate;
    }

    /// The instance's own name; among several templates of a name, the one whose parameter types these are.
    std::string expression_for(const KernelDeclaration& declaration, const Deduction& deduction) const {
        std::string name = instance_name(declaration, deduction);
        const auto templates =
            std::count_if(kernel.family_->declarations.begin(), kernel.family_->declarations.end(),
                          [](const KernelDeclaration& each) { return each.is_template; });
        if (templates == 1) return name;
        std::vector<std::string> types;
        for (const std::string& type : declaration.parameter_types) {
            types.push_back(substituted(type, declaration, deduction));
        }
        return overload_expression(name, types);
    }

    /// What the compiler says when it is asked for the signature with markers for the template parameters: it
    /// sees through macros and aliases. The patterns of the text where it refuses markers.
    std::vector<TypePattern> asked_patterns(const KernelDeclaration& declaration,
                                            std::vector<TypePattern> in_text) const {
        const bool has_pack = std::any_of(in_text.begin(), in_text.end(),
                                          [](const TypePattern& pattern) { return pattern.is_pack; });
        const bool unclear = std::any_of(in_text.begin(), in_text.end(), [](const TypePattern& pattern) {
            return pattern.kind == TypePattern::Kind::unclear || pattern.kind == TypePattern::Kind::fixed;
        });
        if (has_pack || !unclear) return in_text;
        {
            const std::lock_guard lock(module().growing);
            const auto known = module().asked_patterns.find(&declaration);
            if (known != module().asked_patterns.end()) return known->second;
        }
        std::vector<TypePattern> patterns = in_text;
        const std::vector<std::string> markers =
            markers_for(declaration.template_parameters, module().source.text);
        if (const auto types = types_with_markers(declaration, markers)) {
            patterns = read_marked_patterns(*types, markers);
        }
        const std::lock_guard lock(module().growing);
        module().asked_patterns.emplace(&declaration, patterns);
        return patterns;
    }

    std::optional<std::vector<std::string>> types_with_markers(const KernelDeclaration& declaration,
                                                               std::span<const std::string> markers) const {
        Program program{module().source, module().options, arch(), {}, Program::Purpose::signatures};
        const std::string expression = fmt::format("{}<{}>", declaration.name, fmt::join(markers, ", "));
        program.instances = {{declaration.name, expression}};
        try {
            const auto image = module().cache.image(program).image;
            std::vector<std::string> types;
            for (const Parameter& parameter : image->find(expression)->signature.parameters) {
                types.push_back(parameter.spelling);
            }
            return types;
        } catch (const CompileError&) {
            return std::nullopt;  // constraints, or types that markers do not have: the text has to do
        }
    }

    // --- The best of several

    std::optional<Candidate> rated(Candidate candidate) const {
        const Kernel chosen(kernel.module_, kernel.family_, candidate.function, nullptr);
        const auto image = chosen.compile(arch()).image;
        const Signature& signature = image->find(candidate.function->expression)->signature;
        return rated(std::move(candidate), signature);
    }

    /// Nothing when an argument does not fit.
    std::optional<Candidate> rated(Candidate candidate, const Signature& signature) const {
        if (signature.parameters.size() != arguments.size()) return std::nullopt;
        for (std::size_t i = 0; i < arguments.size(); ++i) {
            candidate.fits.push_back(fit(arguments[i], signature.parameters[i].type));
            if (candidate.fits.back() == Fit::none) return std::nullopt;
        }
        return candidate;
    }

    /// As in C++: at least as good for every argument and better for one, or no template where all is equal.
    static bool better(const Candidate& a, const Candidate& b) {
        bool some = !a.is_template && b.is_template;
        for (std::size_t i = 0; i < a.fits.size(); ++i) {
            if (a.fits[i] < b.fits[i]) return false;
            some = some || a.fits[i] > b.fits[i];
        }
        return some;
    }

    Candidate best(std::vector<Candidate> candidates, const std::vector<std::string>& refusals) const {
        for (const Candidate& candidate : candidates) {
            const bool wins = std::all_of(candidates.begin(), candidates.end(), [&](const Candidate& other) {
                return &other == &candidate || better(candidate, other);
            });
            if (wins) return candidate;
        }
        std::vector<std::string> given;
        for (const ArgumentType& argument : arguments) given.push_back(describe(argument));
        std::vector<std::string> spellings;
        spellings.reserve(candidates.size());
        for (const Candidate& candidate : candidates) spellings.push_back(candidate.spelling);
        if (candidates.empty()) {
            throw ArgumentError(
                ErrorKind::type,
                fmt::format("no overload of kernel '{}' takes ({}). It has:\n  {}", kernel.name(),
                            fmt::join(given, ", "), fmt::join(refusals, "\n  ")));
        }
        throw ArgumentError(
            ErrorKind::type,
            fmt::format("several overloads of kernel '{}' take ({}). Choose one by its parameter types, "
                        ".overload(\"{}\"), or pass NumPy scalars of the exact types:\n  {}",
                        kernel.name(), fmt::join(given, ", "),
                        fmt::join(kernel.family_->declarations.front().parameter_types, ", "),
                        fmt::join(spellings, "\n  ")));
    }
};

namespace {

/// An int that alone made T `int` and does not fit one is no reason to take another T in silence.
void check_weak_integers(const std::string& kernel, const Signature& declared,
                         const std::vector<int>& weak_integers, std::span<const ArgumentValue> arguments) {
    for (const int index : weak_integers) {
        const auto* scalar = std::get_if<Scalar>(&arguments[static_cast<std::size_t>(index)]);
        const bool fits = scalar != nullptr && scalar->kind == Scalar::Kind::integer &&
                          scalar->integer >= INT32_MIN && scalar->integer <= INT32_MAX;
        if (fits) continue;
        const Parameter& parameter = declared.parameters[static_cast<std::size_t>(index)];
        throw ArgumentError(
            ErrorKind::overflow,
            fmt::format("`{}` is int for a Python int, which does not hold this one. Choose the type: "
                        "module.{}.instantiate(\"long long\"), or pass a NumPy scalar: np.int64(x).",
                        parameter.spelling, kernel))
            .with_argument(index, parameter.name);
    }
}

}  // namespace

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
    const Chooser::Candidate chosen = Chooser{*this, types, device}.choose();
    check_weak_integers(name(), declared, chosen.weak_integers, arguments);
    const std::unique_lock lock(choices_->mutex);
    choices_->made.push_back({std::move(types), chosen.function, chosen.weak_integers});
    return {module_, family_, chosen.function, nullptr};
}

Kernel Kernel::settled(Device device) const {
    if (is_function() || family_->has_templates) return *this;
    const Chooser chooser{*this, {}, device};
    const std::vector<KernelImage> functions = chooser.functions_in_image();
    if (functions.size() > 1) return *this;
    const std::string expression = functions.empty() ? name() : functions.front().expression;
    return {module_, family_, &module_.state_->function(expression, ""), nullptr};
}

Kernel Kernel::instantiate(TemplateArguments given) const {
    if (!family_->has_templates) {
        throw ArgumentError(
            ErrorKind::type,
            fmt::format("kernel '{}' is no template: there is nothing to instantiate.", name()));
    }
    ModuleState& state = *module_.state_;
    if (family_->declarations.size() == 1) {
        const KernelDeclaration& declaration = family_->declarations.front();
        const Deduction deduction = place_explicit(declaration, given);
        if (says_all(declaration, deduction)) {
            return {module_, family_, &state.function(instance_name(declaration, deduction), name()),
                    nullptr};
        }
    }
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
    // As the tokenizer spells types, so that blanks do not matter.
    const LexedText lexed = lex(parameter_types);
    std::vector<std::string> types;
    for (std::span<const Token> part :
         split_at_commas(std::span(lexed.tokens).first(lexed.tokens.size() - 1))) {
        if (!part.empty()) types.push_back(spell(part));
    }
    // One of the text's own functions lies in the module's image.
    const bool in_text =
        std::any_of(family_->declarations.begin(), family_->declarations.end(),
                    [&](const KernelDeclaration& declaration) {
                        return !declaration.is_template && declaration.parameter_types == types;
                    });
    if (in_text && family_->sole != nullptr) return {module_, family_, family_->sole, nullptr};
    const std::string expression = overload_expression(name(), types);
    return {module_, family_, &module_.state_->function(expression, in_text ? "" : name()), nullptr};
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
    for (const KernelDeclaration& declaration : family_->declarations) {
        if (!takes(declaration, arguments)) continue;
        auto signature = std::make_unique<Signature>(signature_in_text(declaration, arguments));
        const std::unique_lock lock(choices.mutex);
        return *choices.declared.emplace(arguments, std::move(signature)).first->second;
    }
    std::vector<std::string> spellings;
    for (const KernelDeclaration& declaration : family_->declarations)
        spellings.push_back(spell(declaration));
    throw ArgumentError(ErrorKind::type,
                        fmt::format("kernel '{}' does not take {} argument{}: {}", name(), arguments,
                                    arguments == 1 ? "" : "s", fmt::join(spellings, "; ")));
}

}  // namespace bascule
