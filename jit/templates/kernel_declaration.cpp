#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include <bascule/jit/templates/kernel_declaration.hpp>
#include <bascule/jit/text/lexer.hpp>
#include <bascule/jit/text/name_rows.hpp>

namespace bascule {
namespace {

/// Words that do not affect deduction.
bool is_decoration(const Token& token) {
    return token.kind == Token::Kind::word &&
           fits_one("const volatile __restrict__ __restrict __grid_constant__ typename restrict", token.text);
}

class PatternReader {
  public:
    explicit PatternReader(std::span<const TemplateParameter> parameters) : parameters_(parameters) {}

    TypePattern read(const std::string& type) {
        const LexedText lexed = lex(type);
        std::vector<Token> tokens;
        bool is_pack = false;
        for (const Token& token : lexed.tokens) {
            if (token.is(".")) is_pack = true;
            if (token.kind != Token::Kind::end && !is_decoration(token) && !token.is("."))
                tokens.push_back(token);
        }
        TypePattern pattern = read_tokens(without_concept(tokens));
        pattern.is_pack = is_pack;
        pattern.constant = pattern.element >= 0 && has_const_elements(lexed.tokens, pattern.kind);
        return pattern;
    }

  private:
    /// Returns `auto*` for `std::integral auto*`: the part before an `auto` outside brackets is a concept.
    static std::span<const Token> without_concept(std::span<const Token> tokens) {
        int depth = 0;
        for (std::size_t i = 0; i < tokens.size(); ++i) {
            depth += tokens[i].is("<") ? 1 : tokens[i].is(">") ? -1 : 0;
            if (depth == 0 && tokens[i].is("auto")) return tokens.subspan(i);
        }
        return tokens;
    }

    static bool has_const_elements(std::span<const Token> tokens, TypePattern::Kind kind) {
        if (kind == TypePattern::Kind::value) return false;
        bool inside = kind == TypePattern::Kind::pointer;
        for (const Token& token : tokens) {
            if (inside && token.is("const")) return true;
            if (inside && (token.is("*") || token.is(","))) return false;
            inside = inside || token.is("<");
        }
        return false;
    }

    TypePattern read_tokens(std::span<const Token> tokens) {
        // Calls index_of for each token, because it counts the `auto`s.
        std::vector<int> mentioned;
        for (const Token& token : tokens) {
            const int index = index_of(token);
            mentioned.push_back(index);
        }
        if (std::ranges::all_of(mentioned, [](int index) { return index < 0; })) return {};

        using Kind = TypePattern::Kind;
        const TypePattern unclear{Kind::unclear, -1, -1, false};
        if (tokens.size() == 1) return {Kind::value, mentioned[0], -1, false};
        if (tokens.size() == 2 && tokens[1].is("*")) return {Kind::pointer, mentioned[0], -1, false};
        const std::optional<std::size_t> open = opening_of_view(tokens);
        if (!open || !tokens.back().is(">")) return unclear;

        const auto inside = tokens.subspan(*open + 1, tokens.size() - *open - 2);
        const auto parts = split_at_commas(inside);
        TypePattern view{Kind::view, -1, -1, false};
        for (std::size_t i = 0, at = *open + 1; i < parts.size(); at += parts[i].size() + 1, ++i) {
            int* place = i == 0 ? &view.element : i == 1 ? &view.rank : nullptr;
            for (std::size_t k = 0; k < parts[i].size(); ++k) {
                if (mentioned[at + k] < 0) continue;
                if (place == nullptr || parts[i].size() != 1) return unclear;
                *place = mentioned[at + k];
            }
        }
        return view;
    }

    /// The position of the "<" of a view type, whose first argument is the element type and whose second is the rank.
    static std::optional<std::size_t> opening_of_view(std::span<const Token> tokens) {
        std::string name;
        for (std::size_t i = 0; i < tokens.size(); ++i) {
            if (!tokens[i].is("<")) {
                name += tokens[i].text;
                continue;
            }
            const std::size_t colons = name.rfind("::");
            const std::string last = colons == name.npos ? name : name.substr(colons + 2);
            return fits_one("array_view masked_view span", last) ? std::optional(i) : std::nullopt;
        }
        return std::nullopt;
    }

    int index_of(const Token& token) {
        if (token.kind != Token::Kind::word) return -1;
        if (token.is("auto")) return next_auto();
        for (std::size_t i = 0; i < parameters_.size(); ++i) {
            if (!parameters_[i].name.empty() && token.is(parameters_[i].name)) return static_cast<int>(i);
        }
        return -1;
    }

    int next_auto() {
        int seen = 0;
        for (std::size_t i = 0; i < parameters_.size(); ++i) {
            if (!parameters_[i].is_auto || seen++ < autos_) continue;
            ++autos_;
            return static_cast<int>(i);
        }
        return -1;
    }

    std::span<const TemplateParameter> parameters_;
    int autos_ = 0;
};

std::string name_of_parameter(std::size_t index) { return fmt::format("bascule_parameter_{}", index); }

/// "7919" for "7919ul"; empty if the token is not an integer.
std::string_view digits_of(const Token& token) {
    const std::size_t end = std::min(token.text.find_first_not_of("0123456789"), token.text.size());
    const bool is_integer = end > 0 && token.text.find_first_not_of("uUlL", end) == std::string_view::npos;
    return is_integer ? token.text.substr(0, end) : std::string_view{};
}

bool same(const Token& token, const Token& of_marker) {
    const std::string_view number = digits_of(of_marker);
    return number.empty() ? token.text == of_marker.text : digits_of(token) == number;
}

/// The tokens of `text`, without the end token.
std::vector<Token> tokens_of(std::string_view text) {
    std::vector<Token> tokens = lex(text).tokens;
    tokens.pop_back();
    return tokens;
}

/// `type` with markers replaced by the names of the parameters.
std::string unmarked(std::string_view type, std::span<const std::vector<Token>> markers) {
    const std::vector<Token> tokens = tokens_of(type);
    std::string out;
    const char* copied = type.data();
    for (std::size_t at = 0; at < tokens.size();) {
        const std::span rest = std::span(tokens).subspan(at);
        const bool qualified = at > 0 && tokens[at - 1].is("::");  // another namespace's bascule::marker
        const auto found = std::ranges::find_if(markers, [&](const std::vector<Token>& marker) {
            return !qualified && marker.size() <= rest.size() &&
                   std::equal(
                       marker.begin(), marker.end(), rest.begin(),
                       [](const Token& expected, const Token& token) { return same(token, expected); });
        });
        if (found == markers.end()) {
            ++at;
            continue;
        }
        const std::string_view last = rest[found->size() - 1].text;
        out.append(copied, rest[0].text.data());
        out += name_of_parameter(static_cast<std::size_t>(found - markers.begin()));
        copied = last.data() + last.size();
        at += found->size();
    }
    return out.append(copied, type.data() + type.size());
}

/// What the text tells about a parameter: enough for messages, and to decide whether bytes may be passed.
ParameterType type_in_text(const std::string& text, const TypePattern& pattern) {
    ParameterType type;
    using Declared = ParameterType::Kind;
    const auto has = [&](std::string_view part) { return text.find(part) != text.npos; };
    if (pattern.kind == TypePattern::Kind::value || pattern.kind == TypePattern::Kind::pointer || has("*")) {
        type.kind = Declared::pointer;
    } else if (has("masked_view")) {
        type.kind = Declared::masked_view;
    } else if (pattern.kind == TypePattern::Kind::view || has("array_view") || has("span")) {
        type.kind = Declared::array_view;
    }
    return type;
}

}  // namespace

std::vector<TypePattern> read_patterns(std::span<const std::string> types,
                                       std::span<const TemplateParameter> parameters) {
    PatternReader reader(parameters);
    std::vector<TypePattern> patterns;
    for (const std::string& type : types) patterns.push_back(reader.read(type));
    return patterns;
}

std::vector<std::string> markers_for(std::span<const TemplateParameter> parameters, std::string_view text) {
    std::vector<std::string_view> numbers;
    for (const Token& token : lex(text).tokens) {
        if (!digits_of(token).empty()) numbers.push_back(digits_of(token));
    }
    // The numbers are far apart, so that an expression such as N + 1 does not give another parameter's number.
    constexpr int distance = 1009;
    int number = 7919;
    std::vector<std::string> markers;
    for (std::size_t i = 0; i < parameters.size(); ++i) {
        if (parameters[i].kind != TemplateParameter::Kind::value) {
            markers.push_back(fmt::format("bascule::marker<{}>", i));
            continue;
        }
        while (std::ranges::find(numbers, std::to_string(number)) != numbers.end()) number += distance;
        markers.push_back(std::to_string(number));
        number += distance;
    }
    return markers;
}

std::vector<TypePattern> read_marked_patterns(std::span<const std::string> types,
                                              std::span<const std::string> markers) {
    std::vector<std::vector<Token>> marker_tokens;
    std::vector<TemplateParameter> parameters;
    for (const std::string& marker : markers) {
        TemplateParameter parameter;
        parameter.name = name_of_parameter(marker_tokens.size());
        parameters.push_back(std::move(parameter));
        marker_tokens.push_back(tokens_of(marker));
    }
    std::vector<std::string> unmarked_types;
    for (const std::string& type : types) unmarked_types.push_back(unmarked(type, marker_tokens));
    return read_patterns(unmarked_types, parameters);
}

int pattern_index(std::span<const TypePattern> patterns, std::size_t arguments, std::size_t index) noexcept {
    // A pack takes the arguments that the other parameters leave.
    const std::size_t fixed =
        patterns.size() - static_cast<std::size_t>(std::ranges::count(patterns, true, &TypePattern::is_pack));
    const std::size_t in_pack = arguments > fixed ? arguments - fixed : 0;
    std::size_t at = 0;
    for (std::size_t i = 0; i < patterns.size(); ++i) {
        at += patterns[i].is_pack ? in_pack : 1;
        if (index < at) return static_cast<int>(i);
    }
    return -1;
}

bool takes(const KernelDeclaration& declaration, std::size_t arguments) {
    if (declaration.is_divided) return true;  // their number is not known
    const std::size_t parameters = declaration.parameters.size();
    const bool has_pack = std::ranges::any_of(
        declaration.parameter_types, [](const std::string& type) { return type.find("...") != type.npos; });
    return has_pack ? arguments + 1 >= parameters : arguments == parameters;
}

std::vector<std::string> parameter_names(std::span<const KernelDeclaration* const> declarations,
                                         std::size_t parameters) {
    std::vector<std::string> names(parameters);
    for (std::size_t d = 0; d < declarations.size(); ++d) {
        const KernelDeclaration& declaration = *declarations[d];
        const std::vector<TypePattern> patterns =
            read_patterns(declaration.parameter_types, declaration.template_parameters);
        for (std::size_t i = 0; i < parameters; ++i) {
            if (declaration.is_divided) {
                names[i].clear();
                continue;
            }
            const auto at = static_cast<std::size_t>(pattern_index(patterns, parameters, i));
            std::string name = declaration.parameters[at];
            if (!name.empty() && patterns[at].is_pack) name += fmt::format("{}", i + 1 - at);
            if (d == 0) {
                names[i] = std::move(name);
            } else if (names[i] != name) {
                names[i].clear();
            }
        }
    }
    return names;
}

std::string spell(const KernelDeclaration& declaration) {
    std::string text;
    for (const TemplateParameter& parameter : declaration.template_parameters) {
        if (parameter.is_auto) continue;
        text += fmt::format("{}{}{}", text.empty() ? "template <" : ", ", parameter.name,
                            parameter.is_pack ? "..." : "");
    }
    text += fmt::format("{}void {}(", text.empty() ? "" : "> ", declaration.name);
    for (std::size_t i = 0; i < declaration.parameters.size(); ++i) {
        text += fmt::format("{}{}{}{}", i == 0 ? "" : ", ", declaration.parameter_types[i],
                            declaration.parameters[i].empty() ? "" : " ", declaration.parameters[i]);
    }
    return text + ")";
}

Signature signature_in_text(std::span<const KernelDeclaration* const> declarations, std::size_t arguments) {
    const KernelDeclaration& declaration = *declarations.front();
    const std::vector<std::string> names = parameter_names(declarations, arguments);
    const std::vector<TypePattern> patterns =
        read_patterns(declaration.parameter_types, declaration.template_parameters);
    Signature signature;
    signature.kernel = declaration.name;
    for (std::size_t i = 0; i < arguments; ++i) {
        Parameter& parameter = signature.parameters.emplace_back();
        parameter.name = names[i].empty() ? fmt::format("arg{}", i + 1) : names[i];
        parameter.type.kind = ParameterType::Kind::pointer;
        if (declaration.is_divided) continue;
        const auto at = static_cast<std::size_t>(pattern_index(patterns, arguments, i));
        parameter.spelling = declaration.parameter_types[at];
        parameter.type = type_in_text(parameter.spelling, patterns[at]);
    }
    return signature;
}

}  // namespace bascule
