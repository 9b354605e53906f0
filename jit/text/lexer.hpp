// Splits CUDA C++ text into words and punctuation, without comments, preprocessor lines and the contents of literals.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace bascule {

/// Whether this character can continue a name or a number.
constexpr bool continues_word(char c) noexcept {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

/// The smallest unit of a text: its kind and its end.
struct Piece {
    enum class Kind : std::uint8_t { blank, comment, word, number, literal, mark };
    Kind kind = Kind::mark;
    std::size_t end = 0;
    bool closed = true;  ///< false: a comment or a literal without an end
    bool raw = false;    ///< R"(...)"

    /// Whether the content of the piece is not code.
    bool quotes() const noexcept { return kind == Kind::comment || kind == Kind::literal; }
};

/// The piece that begins at `at`, which must be before the end of the text and not inside another piece. A literal includes
/// its prefix (u8"", LR"()"). An unclosed literal ends with the line, an unclosed block comment or raw string with the text.
Piece piece_at(std::string_view text, std::size_t at);

/// A word, a number, a string or a punctuation mark; views the text.
struct Token {
    enum class Kind : std::uint8_t { word, punctuation, string, end };
    Kind kind = Kind::end;
    std::string_view text;
    int line = 1;

    bool is(std::string_view expected) const noexcept { return kind != Kind::string && text == expected; }
    /// A faster overload for string literals, whose size the compiler knows: about ten of them are compared with each token.
    template <std::size_t N>
    bool is(const char (&expected)[N]) const noexcept {
        return text.size() == N - 1 && kind != Kind::string &&
               std::char_traits<char>::compare(text.data(), expected, N - 1) == 0;
    }
};

/// A preprocessor conditional before the token at `position`.
struct Conditional {
    enum class Kind : std::uint8_t { begin, next, end };
    Kind kind = Kind::begin;
    std::size_t position = 0;
};

struct LexedText {
    std::vector<Token> tokens;  ///< the last one is of kind `end`
    std::vector<Conditional> conditionals;
};

/// Reads the whole text; accepts malformed text too. The result views `text`.
LexedText lex(std::string_view text);

}  // namespace bascule
