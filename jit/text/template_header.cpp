#include <algorithm>

#include <bascule/jit/text/lexer.hpp>
#include <bascule/jit/text/name_rows.hpp>
#include <bascule/jit/text/template_header.hpp>

namespace bascule {
namespace {

/// Common types of value parameters. Any other name may be a concept.
bool is_value_type(const Token& token) {
    static constexpr std::string_view types =
        "bool char short int long signed unsigned float double auto size_t ptrdiff_t int8_t int16_t int32_t int64_t "
        "uint8_t uint16_t uint32_t uint64_t intptr_t uintptr_t wchar_t char8_t char16_t char32_t uint enum";
    return token.kind == Token::Kind::word && fits_one(types, token.text);
}

TemplateParameter::Kind kind_of(std::span<const Token> declared) {
    if (declared.front().is("template")) return TemplateParameter::Kind::template_;
    const bool names_type = declared.front().is("class") || declared.front().is("typename");
    // `typename X::type N` declares a value, `typename T` a type.
    const bool qualified = std::ranges::any_of(declared, [](const Token& token) { return token.is("::"); });
    if (names_type) return qualified ? TemplateParameter::Kind::value : TemplateParameter::Kind::type;
    if (std::ranges::any_of(declared, is_value_type)) return TemplateParameter::Kind::value;
    return TemplateParameter::Kind::type_or_value;
}

TemplateParameter read_parameter(std::span<const Token> tokens) {
    TemplateParameter parameter;
    const auto equals = std::ranges::find_if(tokens, [](const Token& token) { return token.is("="); });
    const auto declared = tokens.first(static_cast<std::size_t>(equals - tokens.begin()));
    if (equals != tokens.end()) {
        parameter.default_argument =
            spell(tokens.subspan(static_cast<std::size_t>(equals - tokens.begin()) + 1));
    }
    if (declared.empty()) return parameter;
    parameter.kind = kind_of(declared);
    parameter.is_pack = std::ranges::any_of(declared, [](const Token& token) { return token.is("."); });
    // The last word is the name unless the type consists of it alone: `class`, `int`, `ns::Kind`.
    const Token& last = declared.back();
    const bool only_type = declared.size() == 1 || is_value_type(last) || last.is("class") ||
                           last.is("typename") || declared[declared.size() - 2].is("::");
    if (last.kind == Token::Kind::word && !only_type) parameter.name = std::string(last.text);
    return parameter;
}

}  // namespace

std::vector<TemplateParameter> read_template_header(std::span<const Token> tokens) {
    std::vector<TemplateParameter> parameters;
    if (tokens.empty()) return parameters;
    for (std::span<const Token> part : split_at_commas(tokens)) parameters.push_back(read_parameter(part));
    return parameters;
}

std::vector<std::span<const Token>> split_at_commas(std::span<const Token> tokens) {
    std::vector<std::span<const Token>> parts;
    int depth = 0;
    std::size_t begin = 0;
    for (std::size_t i = 0; i < tokens.size(); ++i) {
        const Token& token = tokens[i];
        if (token.is("(") || token.is("<") || token.is("[") || token.is("{")) ++depth;
        if (token.is(")") || token.is(">") || token.is("]") || token.is("}")) --depth;
        if (depth == 0 && token.is(",")) {
            parts.push_back(tokens.subspan(begin, i - begin));
            begin = i + 1;
        }
    }
    parts.push_back(tokens.subspan(begin));
    return parts;
}

std::string spell(std::span<const Token> tokens) {
    std::string text;
    for (const Token& token : tokens) {
        if (!text.empty() && !token.text.empty()) {
            const char before = text.back();
            const bool word = continues_word(token.text.front());
            const bool apart = (continues_word(before) && word) || before == ',' ||
                               ((before == '*' || before == '>' || before == '&') && word);
            if (apart) text += ' ';
        }
        text += token.text;
    }
    return text;
}

}  // namespace bascule
