#include <algorithm>
#include <cctype>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <bascule/interface/errors/rejection.hpp>
#include <bascule/interface/errors/wording.hpp>
#include <bascule/jit/templates/specialization.hpp>
#include <bascule/jit/text/lexer.hpp>
#include <bascule/jit/text/name_rows.hpp>

namespace bascule {
namespace {

using ArgumentKind = ArgumentType::Kind;

std::string display_name(const TemplateParameter& parameter, std::size_t index) {
    if (parameter.is_auto) return "the `auto` number " + parameter.name.substr(5);
    return parameter.name.empty() ? fmt::format("number {}", index + 1) : parameter.name;
}

std::string argument_label(const KernelDeclaration& kernel, std::span<const TypePattern> patterns,
                           std::size_t arguments, std::size_t index) {
    const int parameter = pattern_index(patterns, arguments, index);
    const bool named = parameter >= 0 && !kernel.parameters[static_cast<std::size_t>(parameter)].empty();
    return named ? fmt::format("{} '{}'", index + 1, kernel.parameters[static_cast<std::size_t>(parameter)])
                 : std::to_string(index + 1);
}

/// The first template parameter that has neither a value nor a default; -1 if all have one.
int first_missing(const KernelDeclaration& kernel, const Deduction& deduction) {
    for (std::size_t i = 0; i < deduction.entries.size(); ++i) {
        if (!deduction.entries[i].known && kernel.template_parameters[i].default_argument.empty())
            return static_cast<int>(i);
    }
    return -1;
}

/// A template parameter's value that follows from the type of one argument.
struct Claim {
    int parameter = -1;
    std::string text;
    std::size_t argument = 0;
};

class Deducer {
  public:
    Deducer(const KernelDeclaration& kernel, std::span<const TypePattern> patterns,
            std::span<const ArgumentType> arguments, Deduction from)
        : kernel_(kernel), patterns_(patterns), arguments_(arguments), deduction_(std::move(from)) {}

    Deduction run() && {
        fixed_.assign(deduction_.entries.size(), false);
        for (std::size_t i = 0; i < fixed_.size(); ++i) fixed_[i] = deduction_.entries[i].known;
        for (const ArgumentKind kind : {ArgumentKind::array, ArgumentKind::strong_scalar}) {
            std::vector<Claim> claims;
            for_each(kind, [&](const TypePattern& pattern, std::size_t argument) {
                claim(pattern, argument, claims);
            });
            accept(claims);
        }
        accept_weak();
        deduction_.missing = first_missing(kernel_, deduction_);
        return std::move(deduction_);
    }

  private:
    template <class Action>
    void for_each(ArgumentKind kind, Action&& action) {
        for (std::size_t i = 0; i < arguments_.size(); ++i) {
            const int index = pattern_index(patterns_, arguments_.size(), i);
            if (index >= 0 && arguments_[i].kind == kind)
                action(patterns_[static_cast<std::size_t>(index)], i);
        }
    }

    void claim(const TypePattern& pattern, std::size_t argument, std::vector<Claim>& claims) const {
        const ArgumentType& type = arguments_[argument];
        const std::string element(element_name(type.dtype));
        const bool is_array = type.kind == ArgumentKind::array;
        const bool for_elements =
            pattern.kind == TypePattern::Kind::pointer || pattern.kind == TypePattern::Kind::view;
        if (pattern.element >= 0 && !element.empty()) {
            if (is_array && for_elements) {
                const bool is_const = type.readonly && !pattern.constant;  // T* binds const int
                claims.push_back({pattern.element, (is_const ? "const " : "") + element, argument});
            } else if (is_array && pattern.kind == TypePattern::Kind::value) {
                // An array that is passed to `T x` makes T a pointer, as in C++.
                claims.push_back(
                    {pattern.element, (type.readonly ? "const " : "") + element + "*", argument});
            } else if (!is_array && pattern.kind == TypePattern::Kind::value) {
                claims.push_back({pattern.element, element, argument});
            }
        }
        if (is_array && pattern.rank >= 0)
            claims.push_back({pattern.rank, std::to_string(type.rank), argument});
    }

    bool is_pack(int parameter) const {
        return kernel_.template_parameters[static_cast<std::size_t>(parameter)].is_pack;
    }

    /// Accepts claims of equal strength: different ones are an error. A value that a stronger claim decided stays.
    void accept(const std::vector<Claim>& claims) {
        std::vector<const Claim*> first(deduction_.entries.size(), nullptr);
        for (const Claim& claim : claims) {
            const auto index = static_cast<std::size_t>(claim.parameter);
            Deduction::Entry& entry = deduction_.entries[index];
            if (is_pack(claim.parameter)) {
                pack_claims_.push_back(claim);
            } else if (first[index] != nullptr && first[index]->text != claim.text) {
                fail_disagreement(*first[index], claim);
            } else if (!entry.known) {
                entry = {true, {claim.text}, {}};
                first[index] = &claim;
            }
        }
    }

    /// Combines Python numbers: an int and a float give double.
    void accept_weak() {
        static constexpr std::array<std::string_view, 4> ranks = {"bool", "int", "double",
                                                                  "cuda::std::complex<double>"};
        std::vector<std::size_t> strongest(deduction_.entries.size(), 0);
        for_each(ArgumentKind::weak_scalar, [&](const TypePattern& pattern, std::size_t argument) {
            if (pattern.kind != TypePattern::Kind::value || pattern.element < 0) return;
            const auto index = static_cast<std::size_t>(pattern.element);
            const std::string_view text = element_name(arguments_[argument].dtype);
            if (is_pack(pattern.element)) {
                pack_claims_.push_back({pattern.element, std::string(text), argument});
                return;
            }
            Deduction::Entry& entry = deduction_.entries[index];
            if (entry.known && entry.weak.empty()) return;
            const auto rank = static_cast<std::size_t>(std::ranges::find(ranks, text) - ranks.begin());
            strongest[index] = std::max(strongest[index], rank);
            entry.weak.push_back(static_cast<int>(argument));
            entry.known = true;
            entry.texts = {std::string(ranks[strongest[index]])};
        });
        close_packs();
    }

    /// Puts the types of a pack into the order of the arguments.
    void close_packs() {
        std::ranges::sort(pack_claims_, {}, &Claim::argument);
        for (std::size_t i = 0; i < deduction_.entries.size(); ++i) {
            if (!kernel_.template_parameters[i].is_pack || fixed_[i]) continue;
            Deduction::Entry& entry = deduction_.entries[i];
            for (const Claim& claim : pack_claims_) {
                if (claim.parameter == static_cast<int>(i)) entry.texts.push_back(claim.text);
            }
            entry.known = entry.texts.size() == pack_arguments(static_cast<int>(i));
        }
    }

    std::size_t pack_arguments(int parameter) const {
        std::size_t count = 0;
        for (std::size_t i = 0; i < arguments_.size(); ++i) {
            const int index = pattern_index(patterns_, arguments_.size(), i);
            if (index >= 0 && patterns_[static_cast<std::size_t>(index)].element == parameter) ++count;
        }
        return count;
    }

    [[noreturn]] void fail_disagreement(const Claim& first, const Claim& second) const {
        const auto label = [&](const Claim& claim) {
            return argument_label(kernel_, patterns_, arguments_.size(), claim.argument);
        };
        const auto name = [&](const Claim& claim) {
            const std::string text = label(claim);
            return text.substr(text.find(' ') == text.npos ? 0 : text.find(' ') + 1);
        };
        std::string plain_name = name(second);
        std::erase(plain_name, '\'');
        const std::string parameter =
            display_name(kernel_.template_parameters[static_cast<std::size_t>(first.parameter)],
                         static_cast<std::size_t>(first.parameter));
        const ArgumentType& type = arguments_[first.argument];
        const bool about_rank =
            type.kind == ArgumentKind::array && std::isdigit(static_cast<unsigned char>(first.text[0])) != 0;
        const std::string next_step =
            about_rank ? "Reshape one of them"
                       : "Convert one of them" + advice(fmt::format(" ({}.astype(\"{}\"))", plain_name,
                                                                    to_typestr(type.dtype).substr(1)),
                                                        "");
        reject(
            ErrorKind::type,
            {.index = static_cast<int>(second.argument),
             .name = name(second),
             .expected = first.text,
             .got = second.text},
            "arguments {} and {} of kernel '{}' disagree on {}: {} is {}{} ({} = {}), {} is {}{} ({} = {}). "
            "{}, or give them template parameters of their own.",
            label(first), label(second), kernel_.name, parameter, name(first), describe(type),
            about_rank ? fmt::format(" of {} dimensions", type.rank) : "", parameter, first.text,
            name(second), describe(arguments_[second.argument]),
            about_rank ? fmt::format(" of {} dimensions", arguments_[second.argument].rank) : "", parameter,
            second.text, next_step);
    }

    const KernelDeclaration& kernel_;
    std::span<const TypePattern> patterns_;
    std::span<const ArgumentType> arguments_;
    Deduction deduction_;
    std::vector<bool> fixed_;  // given explicitly
    std::vector<Claim> pack_claims_;
};

std::string parameter_list(const KernelDeclaration& kernel) {
    std::vector<std::string> names;
    for (std::size_t i = 0; i < kernel.template_parameters.size(); ++i) {
        names.push_back(display_name(kernel.template_parameters[i], i));
    }
    return fmt::format("{}", fmt::join(names, ", "));
}

/// `text` with the names of template parameters replaced by the text of `argument`, unless that is null.
template <class ArgumentOf>
std::string with_arguments(const std::string& text, const KernelDeclaration& kernel, ArgumentOf argument) {
    const LexedText lexed = lex(text);
    std::string out;
    std::size_t copied = 0;
    bool qualified = false;  // in "Traits<T>::U", U is not the template's parameter
    for (const Token& token : lexed.tokens) {
        const bool is_name = token.kind == Token::Kind::word && !qualified;
        qualified = token.is("::");
        if (!is_name) continue;
        for (std::size_t i = 0; i < kernel.template_parameters.size(); ++i) {
            if (!token.is(kernel.template_parameters[i].name)) continue;
            const std::string* replacement = argument(i);
            if (replacement == nullptr) continue;
            // If T is a pointer, `const T` is a const pointer.
            const bool is_compound = replacement->ends_with('*') || replacement->starts_with("const ");
            const auto at = static_cast<std::size_t>(token.text.data() - text.data());
            out += text.substr(copied, at - copied);
            out += is_compound ? fmt::format("bascule::same<{}>", *replacement) : *replacement;
            copied = at + token.text.size();
        }
    }
    return out + text.substr(copied);
}

/// A type of the text, with known template parameters replaced by their values.
std::string substituted(const std::string& text, const KernelDeclaration& kernel,
                        const Deduction& deduction) {
    return with_arguments(text, kernel, [&](std::size_t i) -> const std::string* {
        const std::vector<std::string>& texts = deduction.entries[i].texts;
        return texts.size() == 1 ? &texts.front() : nullptr;
    });
}

/// Whether C++ can read this text only as a type, as far as its own words tell.
bool is_surely_type(std::string_view text) {
    if (text.ends_with('*') || text.ends_with('&')) return true;
    bool has_words = false;
    for (; !text.empty(); text.remove_prefix(std::min(text.find(' '), text.size() - 1) + 1)) {
        const std::string_view word = text.substr(0, text.find(' '));
        constexpr std::string_view words =
            "const volatile bool char short int long unsigned signed float double void __half __nv_bfloat16";
        if (word.empty()) continue;
        if (!fits_one(words, word)) return false;
        has_words = true;
    }
    return has_words;
}

bool is_surely_value(std::string_view text) {
    if (text == "true" || text == "false") return true;
    if (text.starts_with('-') || text.starts_with('+')) text.remove_prefix(1);
    return !text.empty() && text.front() >= '0' && text.front() <= '9';
}

/// "<float, 256>": arguments of the right kinds.
std::string example_arguments(const KernelDeclaration& kernel) {
    std::string text;
    for (const TemplateParameter& each : kernel.template_parameters) {
        const bool is_value = each.kind == TemplateParameter::Kind::value;
        text += fmt::format("{}{}", text.empty() ? "<" : ", ", is_value ? "256" : "float");
    }
    return text + ">";
}

/// Refuses a type where the template takes a value, and a value where it takes a type: NVRTC says only that there is no
/// such instance.
void check_kind(const KernelDeclaration& kernel, std::size_t index, const std::string& text) {
    const TemplateParameter& parameter = kernel.template_parameters[index];
    const bool is_value = parameter.kind == TemplateParameter::Kind::value;
    const bool is_type = parameter.kind == TemplateParameter::Kind::type;
    if (!(is_value && is_surely_type(text)) && !(is_type && is_surely_value(text))) return;
    const std::string example = kernel.name + example_arguments(kernel);
    reject(ErrorKind::type,
           "the template parameter {} of kernel '{}' is a {}, got the {} {}. Write for example {}.",
           display_name(parameter, index), kernel.name, is_value ? "value" : "type",
           is_value ? "type" : "value", text, example);
}

}  // namespace

Deduction place_explicit(const KernelDeclaration& kernel, const TemplateArguments& given) {
    Deduction deduction;
    const std::vector<TemplateParameter>& parameters = kernel.template_parameters;
    deduction.entries.resize(parameters.size());
    std::size_t at = 0;
    for (const std::string& text : given.positional) {
        if (at >= parameters.size()) {
            reject(ErrorKind::type,
                   "kernel '{}' has {} template parameter{} ({}), got {} template arguments.", kernel.name,
                   parameters.size(), parameters.size() == 1 ? "" : "s", parameter_list(kernel),
                   given.positional.size());
        }
        check_kind(kernel, at, text);
        deduction.entries[at].known = true;
        deduction.entries[at].texts.push_back(text);
        if (!parameters[at].is_pack) ++at;
    }
    for (const auto& [name, text] : given.named) {
        const auto found = std::ranges::find(parameters, name, &TemplateParameter::name);
        if (found == parameters.end()) {
            reject(ErrorKind::type, "kernel '{}' has no template parameter '{}'; it has: {}.", kernel.name,
                   name, parameter_list(kernel));
        }
        check_kind(kernel, static_cast<std::size_t>(found - parameters.begin()), text);
        Deduction::Entry& entry = deduction.entries[static_cast<std::size_t>(found - parameters.begin())];
        if (entry.known) {
            reject(ErrorKind::type, "the template argument '{}' of kernel '{}' is given twice.", name,
                   kernel.name);
        }
        entry = {true, {text}, {}};
    }
    deduction.missing = first_missing(kernel, deduction);
    return deduction;
}

Deduction deduce(const KernelDeclaration& kernel, std::span<const TypePattern> patterns,
                 std::span<const ArgumentType> arguments, Deduction from) {
    return Deducer(kernel, patterns, arguments, std::move(from)).run();
}

ArgumentError missing_argument(const KernelDeclaration& kernel, std::span<const TypePattern> patterns,
                               std::span<const ArgumentType> arguments, const Deduction& deduction) {
    const auto index = static_cast<std::size_t>(deduction.missing);
    const TemplateParameter& parameter = kernel.template_parameters[index];
    std::string why;
    for (std::size_t i = 0; i < arguments.size() && why.empty(); ++i) {
        const int at = pattern_index(patterns, arguments.size(), i);
        if (at < 0 || patterns[static_cast<std::size_t>(at)].element != deduction.missing) continue;
        why = fmt::format(" Argument {} is {}, which does not determine it.",
                          argument_label(kernel, patterns, arguments.size(), i), describe(arguments[i]));
    }
    const bool is_value = parameter.kind == TemplateParameter::Kind::value;
    const std::string name = kernel.name.find("::") == std::string::npos
                                 ? "." + kernel.name
                                 : fmt::format("[\"{}\"]", kernel.name);
    // The explicit form: by name if the parameter has one, else all parameters up to it by position.
    std::string form;
    if (!parameter.name.empty() && !parameter.is_auto) {
        form = fmt::format("{}={}", parameter.name, is_value ? "256" : "\"float\"");
    } else {
        for (std::size_t i = 0; i <= index; ++i) {
            const Deduction::Entry& entry = deduction.entries[i];
            const bool known = entry.known && !entry.texts.empty();
            form += fmt::format("{}\"{}\"", i == 0 ? "" : ", ", known ? entry.texts[0] : "float");
        }
    }
    return ArgumentError(
        ErrorKind::type,
        fmt::format(
            "the template parameter {} of kernel '{}' cannot be deduced from the arguments.{} Give it: {}.",
            display_name(parameter, index), kernel.name, why,
            advice(fmt::format("module{}.instantiate({}), or by name in the decorator: @bascule.kernel(text, "
                               "name=\"{}<...>\")",
                               name, form, kernel.name),
                   fmt::format("module.kernel(\"{}<...>\")", kernel.name))));
}

std::string instance_name(const KernelDeclaration& kernel, const Deduction& deduction) {
    std::size_t last = deduction.entries.size();
    while (last > 0 && !deduction.entries[last - 1].known) --last;  // the compiler adds trailing defaults
    std::vector<std::string> texts;
    for (std::size_t i = 0; i < last; ++i) {
        const Deduction::Entry& entry = deduction.entries[i];
        if (entry.known) {
            texts.insert(texts.end(), entry.texts.begin(), entry.texts.end());
        } else {
            texts.push_back(substituted(kernel.template_parameters[i].default_argument, kernel, deduction));
        }
    }
    return fmt::format("{}<{}>", kernel.name, fmt::join(texts, ", "));
}

std::vector<std::string> substituted_types(const KernelDeclaration& kernel, const Deduction& deduction) {
    std::vector<std::string> types;
    for (const std::string& type : kernel.parameter_types) {
        if (!type.ends_with("...")) {
            types.push_back(substituted(type, kernel, deduction));
            continue;
        }
        // A pack expands to as many parameters as its longest template parameter pack has types.
        std::size_t count = 0;
        for (std::size_t i = 0; i < deduction.entries.size(); ++i) {
            if (kernel.template_parameters[i].is_pack)
                count = std::max(count, deduction.entries[i].texts.size());
        }
        for (std::size_t at = 0; at < count; ++at) {
            types.push_back(with_arguments(
                type.substr(0, type.size() - 3), kernel, [&](std::size_t i) -> const std::string* {
                    const std::vector<std::string>& texts = deduction.entries[i].texts;
                    const bool is_pack = kernel.template_parameters[i].is_pack;
                    const std::size_t place = is_pack ? at : 0;
                    return place < texts.size() ? &texts[place] : nullptr;
                }));
        }
    }
    return types;
}

std::string function_pointer(std::span<const std::string> types) {
    return fmt::format("void (*)({})", fmt::join(types, ", "));
}

std::string overload_expression(const std::string& kernel, const std::string& type) {
    return fmt::format("static_cast<{}>(&{})", type, kernel);
}

}  // namespace bascule
