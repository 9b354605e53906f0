#include <algorithm>
#include <array>
#include <optional>

#include <bascule/jit/lexer.hpp>
#include <bascule/jit/type_pattern.hpp>

namespace bascule {
namespace {

/// Words that do not change what is deduced.
bool is_decoration(const Token& token) {
    static constexpr std::array<std::string_view, 7> words = {
        "const", "volatile", "__restrict__", "__restrict", "__grid_constant__", "typename", "restrict"};
    return std::any_of(words.begin(), words.end(), [&](std::string_view word) { return token.is(word); });
}

class Reader {
  public:
    explicit Reader(std::span<const TemplateParameter> parameters) : parameters_(parameters) {}

    TypePattern read(const std::string& type) {
        const LexedText lexed = lex(type);
        std::vector<Token> tokens;
        bool is_pack = false;
        for (const Token& token : lexed.tokens) {
            if (token.is(".")) is_pack = true;
            if (token.kind != Token::Kind::end && !is_decoration(token) && !token.is("."))
                tokens.push_back(token);
        }
        TypePattern pattern = read_tokens(tokens);
        pattern.is_pack = is_pack;
        return pattern;
    }

  private:
    TypePattern read_tokens(std::span<const Token> tokens) {
        // Every auto counts, wherever it stands.
        std::vector<int> mentioned;
        for (const Token& token : tokens) {
            const int index = index_of(token);
            mentioned.push_back(index);
        }
        if (std::all_of(mentioned.begin(), mentioned.end(), [](int index) { return index < 0; })) return {};

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

    /// Where the "<" of a type stands whose first argument is its elements' type and whose second its rank.
    static std::optional<std::size_t> opening_of_view(std::span<const Token> tokens) {
        std::string name;
        for (std::size_t i = 0; i < tokens.size(); ++i) {
            if (!tokens[i].is("<")) {
                name += tokens[i].text;
                continue;
            }
            static constexpr std::array<std::string_view, 3> views = {"array_view", "masked_view", "span"};
            const std::size_t colons = name.rfind("::");
            const std::string last = colons == name.npos ? name : name.substr(colons + 2);
            if (std::find(views.begin(), views.end(), last) == views.end()) return std::nullopt;
            return i;
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

}  // namespace

std::vector<TypePattern> read_patterns(std::span<const std::string> types,
                                       std::span<const TemplateParameter> parameters) {
    Reader reader(parameters);
    std::vector<TypePattern> patterns;
    for (const std::string& type : types) patterns.push_back(reader.read(type));
    return patterns;
}

}  // namespace bascule
