#include <algorithm>
#include <utility>

#include <bascule/jit/text/lexer.hpp>

namespace bascule {
namespace {

constexpr bool is_space(char c) noexcept { return c == ' ' || (c >= '\t' && c <= '\r'); }
constexpr bool is_digit(char c) noexcept { return c >= '0' && c <= '9'; }

char char_at(std::string_view text, std::size_t at) noexcept { return at < text.size() ? text[at] : '\0'; }

/// The position after the newline, if a backslash at `at` joins the next line to this one; otherwise `at`.
std::size_t behind_joint(std::string_view text, std::size_t at) noexcept {
    if (char_at(text, at) != '\\') return at;
    const std::size_t newline = at + (char_at(text, at + 1) == '\r' ? 2 : 1);
    return char_at(text, newline) == '\n' ? newline + 1 : at;
}

/// The position of the newline that ends a line, or the end of the text.
std::size_t line_comment_end(std::string_view text, std::size_t at) noexcept {
    while (at < text.size() && text[at] != '\n') at = std::max(at + 1, behind_joint(text, at));
    return at;
}

/// The piece up to the end of `closing`, searched from `from`; without one, up to the end of the text.
Piece piece_until(std::string_view closing, Piece::Kind kind, std::string_view text,
                  std::size_t from) noexcept {
    const std::size_t found = text.find(closing, std::min(from, text.size()));
    if (found == text.npos) return {kind, text.size(), false};
    return {kind, found + closing.size()};
}

/// `at`: the position of the opening quote.
Piece literal_at(std::string_view text, std::size_t at) noexcept {
    const char quote = text[at];
    for (++at; at < text.size() && text[at] != '\n'; ++at) {
        if (text[at] == quote) return {Piece::Kind::literal, at + 1};
        if (text[at] == '\\' && at + 1 < text.size()) ++at;
    }
    return {Piece::Kind::literal, at, false};
}

Piece raw_string_at(std::string_view text, std::size_t at) {
    constexpr std::size_t longest = 16;  // C++ allows no more between " and (
    const std::string_view delimiter = text.substr(at + 1, longest + 1);
    const std::size_t length = delimiter.find_first_of("( )\\\"\t\v\f\r\n");
    if (length == delimiter.npos || delimiter[length] != '(')
        return {Piece::Kind::literal, at + 1, false, true};
    Piece piece = piece_until(")" + std::string(delimiter.substr(0, length)) + "\"", Piece::Kind::literal,
                              text, at + length + 2);
    piece.raw = true;
    return piece;
}

bool is_prefix(std::string_view word) { return word == "L" || word == "u" || word == "U" || word == "u8"; }

Piece word_at(std::string_view text, std::size_t at) {
    std::size_t end = at;
    while (end < text.size() && continues_word(text[end])) ++end;
    const char quote = char_at(text, end);
    std::string_view word = text.substr(at, end - at);
    if ((quote != '"' && quote != '\'') || word.size() > 3) return {Piece::Kind::word, end};
    if (is_prefix(word)) return literal_at(text, end);
    const bool raw = quote == '"' && word.ends_with('R');
    if (raw) word.remove_suffix(1);
    if (!raw || (!word.empty() && !is_prefix(word))) return {Piece::Kind::word, end};
    return raw_string_at(text, end);
}

/// The end of a number; its digit separators are not character literals.
std::size_t number_end(std::string_view text, std::size_t at) noexcept {
    while (continues_word(char_at(text, at)) || char_at(text, at) == '.' ||
           (char_at(text, at) == '\'' && continues_word(char_at(text, at + 1)))) {
        ++at;
    }
    return at;
}

/// Splits a text into tokens.
class Lexer {
  public:
    explicit Lexer(std::string_view text) : text_(text) { lexed_.tokens.reserve(text.size() / 4); }

    LexedText run() && {
        while (at_ < text_.size()) {
            if (text_[at_] == '#' && line_start_) {
                skip_directive();
                continue;
            }
            const Piece piece = piece_at(text_, at_);
            if (piece.kind == Piece::Kind::blank) {
                line_start_ = line_start_ || text_.substr(at_, piece.end - at_).find('\n') != text_.npos;
            } else if (piece.kind != Piece::Kind::comment) {
                lexed_.tokens.push_back({kind_of(piece), text_.substr(at_, piece.end - at_), line_});
                line_start_ = false;
            }
            move_to(piece);
        }
        lexed_.tokens.push_back({Token::Kind::end, {}, line_});
        return std::move(lexed_);
    }

  private:
    static Token::Kind kind_of(const Piece& piece) noexcept {
        if (piece.kind == Piece::Kind::word) return Token::Kind::word;
        return piece.kind == Piece::Kind::literal ? Token::Kind::string : Token::Kind::punctuation;
    }

    void move_to(std::size_t end) noexcept {
        line_ += static_cast<int>(std::count(text_.begin() + static_cast<std::ptrdiff_t>(at_),
                                             text_.begin() + static_cast<std::ptrdiff_t>(end), '\n'));
        at_ = end;
    }
    void move_to(const Piece& piece) noexcept {
        if (piece.kind == Piece::Kind::blank || piece.quotes()) return move_to(piece.end);
        at_ = piece.end;
    }

    /// Skips a preprocessor line; a comment in it may contain newlines.
    void skip_directive() {
        const std::size_t name = text_.find_first_not_of(" \t", at_ + 1);
        if (name != text_.npos) note_conditional(text_.substr(name, 6));
        while (at_ < text_.size() && text_[at_] != '\n') {
            const Piece piece = text_[at_] == '/' ? piece_at(text_, at_) : Piece{};
            const std::size_t joined = behind_joint(text_, at_);
            move_to(piece.kind == Piece::Kind::comment ? piece.end : std::max(at_ + 1, joined));
        }
    }

    void note_conditional(std::string_view directive) {
        const std::size_t position = lexed_.tokens.size();
        if (directive.starts_with("if")) lexed_.conditionals.push_back({Conditional::Kind::begin, position});
        if (directive.starts_with("el")) lexed_.conditionals.push_back({Conditional::Kind::next, position});
        if (directive.starts_with("endif")) lexed_.conditionals.push_back({Conditional::Kind::end, position});
    }

    std::string_view text_;
    std::size_t at_ = 0;
    int line_ = 1;
    bool line_start_ = true;  // no token since the last newline
    LexedText lexed_;
};

}  // namespace

Piece piece_at(std::string_view text, std::size_t at) {
    using Kind = Piece::Kind;
    const char c = text[at], next = char_at(text, at + 1);
    if (is_space(c)) {
        std::size_t end = at + 1;
        while (end < text.size() && is_space(text[end])) ++end;
        return {Kind::blank, end};
    }
    if (c == '\\' && (next == '\n' || next == '\r')) return {Kind::blank, at + 1};
    if (c == '/' && next == '/') return {Kind::comment, line_comment_end(text, at)};
    if (c == '/' && next == '*') return piece_until("*/", Kind::comment, text, at + 2);
    if (is_digit(c)) return {Kind::number, number_end(text, at)};
    if (continues_word(c)) return word_at(text, at);
    if (c == '"' || c == '\'') return literal_at(text, at);
    const bool two = (c == ':' && next == ':') || (c == '-' && next == '>');
    return {Kind::mark, at + (two ? 2 : 1)};
}

LexedText lex(std::string_view text) { return Lexer(text).run(); }

}  // namespace bascule
