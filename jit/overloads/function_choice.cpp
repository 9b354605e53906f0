#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <bascule/interface/errors/rejection.hpp>
#include <bascule/interface/errors/wording.hpp>
#include <bascule/jit/overloads/function_choice.hpp>
#include <bascule/jit/text/lexer.hpp>

namespace bascule {
namespace {

/// A function that the launch may call.
struct Candidate {
    Instance function;
    const KernelDeclaration* declaration = nullptr;  // of a template
    std::vector<ConversionRank> ranks;               // one for each argument
    std::vector<std::string> types;                  // of its parameters
    std::string lowered_name;                        // empty: no expression means this function alone
    std::string spelling;
    std::vector<std::string> written_types;  // `types` as the text spells them; only if templates compete
    std::vector<int> weak_integers;
};

/// Whether a macro of the text contains `__global__`. Such a macro may make overloads that the text does not spell.
bool makes_kernels(std::string_view text) {
    for (std::size_t at = text.find("define"); at != text.npos; at = text.find("define", at + 1)) {
        std::size_t end = std::min(text.find('\n', at), text.size());
        while (end < text.size() && text.substr(0, end).ends_with('\\'))
            end = std::min(text.find('\n', end + 1), text.size());
        if (text.substr(at, end - at).find("__global__") != text.npos) return true;
    }
    return false;
}

/// Chooses a function for one list of argument types.
struct Chooser {
    const ChoiceRequest& request;

    Candidate choose() const {
        const KernelDeclaration& first = request.declarations.front();
        if (request.declarations.size() == 1 && first.is_template && plain_functions().empty())
            return sole_instance(first);

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
        if (request.given.empty()) {
            for (const KernelImage& image : plain_functions()) {
                consider(to_string(image.signature), [&] { return function(image); });
            }
        }
        for (const KernelDeclaration& declaration : request.declarations) {
            if (!declaration.is_template) continue;
            consider(spell(declaration), [&]() -> std::optional<Candidate> {
                if (!takes(declaration, request.arguments.size())) return std::nullopt;
                return rated(instance(declaration));
            });
        }
        return best(candidates, refusals);
    }

    // --- Functions that are not templates

    std::vector<KernelImage> plain_functions() const {
        const bool all_templates = std::ranges::all_of(request.declarations, &KernelDeclaration::is_template);
        if (all_templates && !makes_kernels(request.source.text)) return {};
        return functions_named(request.name, *request.image_of({{}, {}}));
    }

    std::optional<Candidate> function(const KernelImage& image) const {
        Candidate candidate;
        candidate.function.expression = image.expression;
        candidate.spelling = to_string(image.signature);
        return rated(std::move(candidate), image);
    }

    // --- Instances of templates

    /// The only template of the name. A kernel that writes to T fails to compile if a read-only array made T const. If
    /// it compiles for a writable array, the error is reported as one of the argument.
    Candidate sole_instance(const KernelDeclaration& declaration) const {
        Candidate candidate = instance(declaration);
        std::vector<ArgumentType> arguments(request.arguments.begin(), request.arguments.end());
        for (ArgumentType& each : arguments) each.readonly = false;
        ChoiceRequest writable = request;
        writable.arguments = arguments;
        if (std::equal(arguments.begin(), arguments.end(), request.arguments.begin())) return candidate;
        try {
            request.image_of(candidate.function);
        } catch (const CompileError&) {
            const Candidate other = Chooser{writable}.instance(declaration);
            if (other.function == candidate.function) throw;
            request.image_of(other.function);
            fail_read_only(declaration, other);
        }
        return candidate;
    }

    [[noreturn]] void fail_read_only(const KernelDeclaration& declaration, const Candidate& writable) const {
        const std::vector<TypePattern> patterns =
            read_patterns(declaration.parameter_types, declaration.template_parameters);
        std::size_t index = 0;
        const auto decides = [&](std::size_t i) {
            const int at = pattern_index(patterns, request.arguments.size(), i);
            return request.arguments[i].readonly && !patterns[static_cast<std::size_t>(at)].constant;
        };
        while (index + 1 < request.arguments.size() && !decides(index)) ++index;
        const int at = pattern_index(patterns, request.arguments.size(), index);
        throw ArgumentError(ErrorKind::value,
                            fmt::format("the kernel declares `{}` and writes to it, but the array is "
                                        "read-only. Pass an array that it may write, or declare const "
                                        "elements if the kernel only reads: {} compiles, the instance for "
                                        "const elements does not.",
                                        declaration.parameter_types[static_cast<std::size_t>(at)],
                                        writable.function.expression))
            .with_argument(static_cast<int>(index), declaration.parameters[static_cast<std::size_t>(at)]);
    }

    Candidate instance(const KernelDeclaration& declaration) const {
        std::vector<TypePattern> patterns =
            read_patterns(declaration.parameter_types, declaration.template_parameters);
        const Deduction given = place_explicit(declaration, request.given);
        Deduction deduction = deduce(declaration, patterns, request.arguments, given);
        if (!deduction.complete()) {
            patterns = asked_patterns(declaration, std::move(patterns));
            deduction = deduce(declaration, patterns, request.arguments, given);
        }
        if (!deduction.complete())
            throw missing_argument(declaration, patterns, request.arguments, deduction);
        Candidate candidate;
        candidate.declaration = &declaration;
        candidate.function = {declaration.name, instance_name(declaration, deduction)};
        const auto templates =
            std::ranges::count(request.declarations, true, &KernelDeclaration::is_template);
        if (templates > 1) candidate.written_types = substituted_types(declaration, deduction);
        candidate.spelling = spell(declaration);
        for (const Deduction::Entry& entry : deduction.entries) {
            if (entry.weak.empty() || entry.texts.front() != "int") continue;
            candidate.weak_integers.insert(candidate.weak_integers.end(), entry.weak.begin(),
                                           entry.weak.end());
        }
        return candidate;
    }

    /// Asks the compiler for the signature with markers as template arguments, which resolves macros and aliases.
    /// Returns the patterns of the text if they are clear or have a pack, or if the compiler refuses the markers.
    std::vector<TypePattern> asked_patterns(const KernelDeclaration& declaration,
                                            std::vector<TypePattern> in_text) const {
        const bool has_pack = std::ranges::any_of(in_text, &TypePattern::is_pack);
        const bool unclear = std::ranges::any_of(in_text, [](const TypePattern& pattern) {
            return pattern.kind == TypePattern::Kind::unclear || pattern.kind == TypePattern::Kind::fixed;
        });
        if (has_pack || !unclear) return in_text;
        if (const auto known = request.asked.find(declaration)) return *known;
        std::vector<TypePattern> patterns = in_text;
        const std::vector<std::string> markers =
            markers_for(declaration.template_parameters, request.source.text);
        if (const auto types = types_with_markers(declaration, markers)) {
            patterns = read_marked_patterns(*types, markers);
        }
        request.asked.add(declaration, patterns);
        return patterns;
    }

    std::optional<std::vector<std::string>> types_with_markers(const KernelDeclaration& declaration,
                                                               std::span<const std::string> markers) const {
        const std::string expression = fmt::format("{}<{}>", declaration.name, fmt::join(markers, ", "));
        try {
            const auto image = signature_of({declaration.name, expression});
            std::vector<std::string> types;
            for (const Parameter& parameter : image->find(expression)->signature.parameters) {
                types.push_back(parameter.spelling);
            }
            return types;
        } catch (const CompileError&) {
            return std::nullopt;  // constraints, or members that markers lack: use the text's patterns
        }
    }

    // --- The best of several

    std::optional<Candidate> rated(Candidate candidate) const {
        if (candidate.written_types.empty()) return compiled(std::move(candidate));
        const std::string name = candidate.function.expression;
        const std::string type = function_pointer(candidate.written_types);
        candidate.function.expression = overload_expression(name, type);
        try {
            return compiled(candidate);
        } catch (const CompileError& error) {
            if (!is_ambiguous(name, candidate, error)) throw;
        }
        // No expression means this function alone, so it competes by its parameter types.
        const Instance null{candidate.function.kernel, fmt::format("static_cast<{}>(nullptr)", type)};
        return rated(std::move(candidate), *signature_of(null)->find(null.expression));
    }

    std::optional<Candidate> compiled(Candidate candidate) const {
        const auto image = request.image_of(candidate.function);
        const KernelImage& made = *image->find(candidate.function.expression);
        return rated(std::move(candidate), made);
    }

    /// Whether another template with these template arguments also has a function of this type. NVRTC gives the same
    /// message for a template that has no such function; compiling a call tells the two cases apart.
    bool is_ambiguous(const std::string& name, const Candidate& candidate, const CompileError& error) const {
        const auto says = [](const CompileError& said, std::string_view words) {
            return said.details().log.find(words) != std::string::npos;
        };
        if (!says(error, "cannot determine which instance of overloaded")) return false;
        const std::string call =
            fmt::format("{}({})", name, fmt::join(null_values(candidate.written_types), ", "));
        try {
            signature_of(
                {candidate.function.kernel, fmt::format("static_cast<decltype({})(*)()>(nullptr)", call)});
        } catch (const CompileError& of_call) {
            return says(of_call, "more than one instance of overloaded");
        }
        return false;
    }

    std::shared_ptr<const Image> signature_of(const Instance& instance) const {
        Program program{
            request.source, request.options, request.arch, {instance}, Program::Purpose::signatures};
        return request.cache.image(program).image;
    }

    /// Returns nothing if an argument does not fit.
    std::optional<Candidate> rated(Candidate candidate, const KernelImage& image) const {
        const std::vector<Parameter>& parameters = image.signature.parameters;
        if (parameters.size() != request.arguments.size()) return std::nullopt;
        for (std::size_t i = 0; i < request.arguments.size(); ++i) {
            candidate.ranks.push_back(rank_of(request.arguments[i], parameters[i]));
            if (candidate.ranks.back() == ConversionRank::none) return std::nullopt;
            candidate.types.push_back(parameters[i].spelling);
        }
        candidate.lowered_name = image.lowered_name;
        return candidate;
    }

    static bool is_at_least_as_good(const Candidate& a, const Candidate& b) {
        return std::equal(a.ranks.begin(), a.ranks.end(), b.ranks.begin(), std::greater_equal<>());
    }

    /// Follows C++: the best conversion of each argument wins, then a non-template function, then the more specialized
    /// template. The compiler decides which one is more specialized, because functions of one type differ in nothing else.
    std::optional<Candidate> winner(std::span<const Candidate> candidates) const {
        const auto best = std::ranges::find_if(candidates, [&](const Candidate& candidate) {
            return std::ranges::all_of(
                candidates, [&](const Candidate& other) { return is_at_least_as_good(candidate, other); });
        });
        if (best == candidates.end()) return std::nullopt;
        std::vector<const Candidate*> tied;
        for (const Candidate& each : candidates) {
            if (is_at_least_as_good(each, *best)) tied.push_back(&each);
        }
        if (tied.size() == 1) return named(*best);
        const auto is_plain = [](const Candidate* each) { return each->declaration == nullptr; };
        const auto plain = std::ranges::count_if(tied, is_plain);
        if (plain == 1) return **std::ranges::find_if(tied, is_plain);
        return plain == 0 ? most_specialized(tied) : std::nullopt;
    }

    /// Returns nothing if no expression means the function alone, because it then cannot be launched.
    static std::optional<Candidate> named(const Candidate& candidate) {
        return candidate.lowered_name.empty() ? std::nullopt : std::optional(candidate);
    }

    std::optional<Candidate> most_specialized(std::span<const Candidate* const> tied) const {
        const bool one_type = std::ranges::all_of(
            tied, [&](const Candidate* each) { return each->types == tied.front()->types; });
        if (!one_type) return std::nullopt;
        std::string name = request.name;
        if (!request.given.positional.empty())
            name += fmt::format("<{}>", fmt::join(request.given.positional, ", "));
        const Instance wanted{request.name, overload_expression(name, function_pointer(tied.front()->types))};
        try {
            const auto image = request.image_of(wanted);
            const std::string& lowered_name = image->find(wanted.expression)->lowered_name;
            const auto found = std::ranges::find(tied, lowered_name, &Candidate::lowered_name);
            if (found != tied.end()) return **found;
            return std::nullopt;
        } catch (const CompileError&) {
            // The error may come from another template, which these arguments do not call.
        }
        return most_specialized_alone(tied);
    }

    /// Declares functions with the same template parameters after the text, each of which returns its own number, and
    /// asks the compiler which one a call selects.
    std::optional<Candidate> most_specialized_alone(std::span<const Candidate* const> tied) const {
        std::string functions;
        for (std::size_t i = 0; i < tied.size(); ++i) {
            const KernelDeclaration& declaration = *tied[i]->declaration;
            std::vector<std::string> parameters;
            for (const TemplateParameter& each : declaration.template_parameters) {
                if (each.kind != TemplateParameter::Kind::type || each.is_auto) return std::nullopt;
                parameters.push_back(fmt::format("class{} {}", each.is_pack ? "..." : "", each.name));
            }
            functions +=
                fmt::format("template <{}> __device__ bascule::values<{}> call({});\n",
                            fmt::join(parameters, ", "), i, fmt::join(declaration.parameter_types, ", "));
        }
        const std::size_t colons = request.name.rfind("::");
        const std::string outer = colons == std::string::npos ? "" : request.name.substr(0, colons);
        const std::string own = "bascule_choice";
        Program program{request.source, request.options, request.arch, {}, Program::Purpose::signatures};
        program.source.text +=
            fmt::format("\nnamespace {}{}{} {{\n{}}}\n", outer, outer.empty() ? "" : "::", own, functions);
        const std::string call =
            fmt::format("{}::{}::call({})", outer, own, fmt::join(null_values(tied.front()->types), ", "));
        const Instance number{request.name,
                              fmt::format("static_cast<void (*)(decltype({}))>(nullptr)", call)};
        program.instances = {number};
        try {
            const auto image = request.cache.image(program).image;
            const std::string& said = image->find(number.expression)->signature.parameters.at(0).spelling;
            for (std::size_t i = 0; i < tied.size(); ++i) {
                if (said == fmt::format("bascule::values<{}>", i)) return named(*tied[i]);
            }
        } catch (const CompileError&) {  // ambiguous in C++ too
        }
        return std::nullopt;
    }

    /// Expressions of these types, for unevaluated operands.
    static std::vector<std::string> null_values(std::span<const std::string> types) {
        std::vector<std::string> values;
        values.reserve(types.size());
        for (const std::string& type : types)
            values.push_back(fmt::format("static_cast<bascule::same<{}>(*)()>(nullptr)()", type));
        return values;
    }

    /// Throws if the image lists the name among the kernels that it lacks.
    void fail_absent() const {
        for (const auto& [name, reason] : request.image_of({{}, {}})->absent) {
            if (name != request.name) continue;
            throw CompileError(
                fmt::format("{}: kernel '{}' cannot be launched: it {}.", request.source.name, name, reason),
                {.name_expression = name});
        }
    }

    Candidate best(std::span<const Candidate> candidates, const std::vector<std::string>& refusals) const {
        if (auto candidate = winner(candidates)) return *candidate;
        std::vector<std::string> given;
        for (const ArgumentType& argument : request.arguments) given.push_back(describe(argument));
        std::vector<std::string> spellings;
        spellings.reserve(candidates.size());
        for (const Candidate& candidate : candidates) spellings.push_back(candidate.spelling);
        if (candidates.empty() && refusals.empty()) fail_absent();
        if (candidates.empty()) {
            reject(ErrorKind::type, "no overload of kernel '{}' takes ({}). It has:\n  {}", request.name,
                   fmt::join(given, ", "), fmt::join(refusals, "\n  "));
        }
        reject(ErrorKind::type,
               "several overloads of kernel '{}' take ({}). Choose one by its parameter types, "
               ".overload(\"{}\"), or pass {} of the exact types:\n  {}",
               request.name, fmt::join(given, ", "),
               fmt::join(request.declarations.front().parameter_types, ", "),
               advice("NumPy scalars", "numbers"), fmt::join(spellings, "\n  "));
    }
};

}  // namespace

FunctionChoice choose_function(const ChoiceRequest& request) {
    Candidate chosen = Chooser{request}.choose();
    return {std::move(chosen.function), std::move(chosen.weak_integers)};
}

void check_weak_integers(const std::string& kernel, const Signature& declared,
                         const std::vector<int>& weak_integers, std::span<const ArgumentValue> arguments) {
    for (const int index : weak_integers) {
        const auto* scalar = std::get_if<Scalar>(&arguments[static_cast<std::size_t>(index)]);
        const bool fits = scalar != nullptr && scalar->kind == Scalar::Kind::integer &&
                          scalar->integer >= INT32_MIN && scalar->integer <= INT32_MAX;
        if (fits) continue;
        const Parameter& parameter = declared.parameters[static_cast<std::size_t>(index)];
        throw ArgumentError(ErrorKind::overflow,
                            fmt::format("`{}` became int because of a Python int, and this value does not "
                                        "fit one. Choose the type: module.{}.instantiate(\"long long\"), or "
                                        "pass a NumPy scalar: np.int64(x).",
                                        parameter.spelling, kernel))
            .with_argument(index, parameter.name);
    }
}

std::vector<KernelImage> functions_named(const std::string& name, const Image& image) {
    std::vector<KernelImage> found;
    for (const KernelImage& each : image.kernels) {
        // A declaration and its definition may be spelled differently: they are one function.
        const auto known = std::ranges::count(found, each.lowered_name, &KernelImage::lowered_name);
        if (each.name == name && known == 0) found.push_back(each);
    }
    return found;
}

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

std::vector<std::string> split_types(const std::string& text) {
    const LexedText lexed = lex(text);
    std::vector<std::string> types;
    for (std::span<const Token> part :
         split_at_commas(std::span(lexed.tokens).first(lexed.tokens.size() - 1))) {
        if (!part.empty()) types.push_back(spell(part));
    }
    return types;
}

std::optional<std::vector<TypePattern>> AskedPatterns::find(const KernelDeclaration& declaration) const {
    const std::lock_guard lock(mutex_);
    const auto known = patterns_.find(&declaration);
    return known == patterns_.end() ? std::nullopt : std::optional(known->second);
}

void AskedPatterns::add(const KernelDeclaration& declaration, std::vector<TypePattern> patterns) {
    const std::lock_guard lock(mutex_);
    patterns_.emplace(&declaration, std::move(patterns));
}

std::pair<std::string, TemplateArguments> split_instance_name(const std::string& expression) {
    const std::string_view blanks = " \t\n";
    const std::size_t end = expression.find_last_not_of(blanks) + 1;
    const std::size_t open = expression.find('<');
    const std::string name = expression.substr(0, std::min(open, end));
    std::pair<std::string, TemplateArguments> parts{name.substr(0, name.find_last_not_of(blanks) + 1), {}};
    if (open >= end) return parts;
    if (expression[end - 1] != '>') {
        reject(ErrorKind::value, {.field = "name_expressions", .got = expression},
               "the name expression \"{}\" does not end with `>`: write a kernel's name and its template "
               "arguments, like \"scale<float, 256>\".",
               expression);
    }
    parts.second.positional = split_types(expression.substr(open + 1, end - open - 2));
    return parts;
}

}  // namespace bascule
