#include "ptx/lexer.hpp"

#include <algorithm>
#include <bit>
#include <cctype>
#include <charconv>

namespace emulated::ptx {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool starts_word(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '$' || c == '%';
}
bool continues_word(char c) { return starts_word(c) || is_digit(c); }

class Lexer {
  public:
    explicit Lexer(std::string_view text) : text_(text) {}

    std::vector<Token> run() {
        std::vector<Token> tokens;
        tokens.reserve(text_.size() / 4);
        while (skip_blank()) tokens.push_back(next());
        tokens.push_back({Token::Kind::end, line_, "end of file", 0});
        return tokens;
    }

  private:
    char peek(std::size_t ahead = 0) const { return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0'; }

    // Returns false at the end of the text.
    bool skip_blank() {
        while (at_ < text_.size()) {
            const char c = text_[at_];
            if (c == '\n') {
                ++line_;
                ++at_;
            } else if (c == ' ' || c == '\t' || c == '\r' || c == '\0' || c == '\f') {
                ++at_;
            } else if (c == '/' && peek(1) == '/') {
                while (at_ < text_.size() && text_[at_] != '\n') ++at_;
            } else if (c == '/' && peek(1) == '*') {
                skip_block_comment();
            } else {
                return true;
            }
        }
        return false;
    }

    void skip_block_comment() {
        const std::uint32_t opened = line_;
        for (at_ += 2; at_ < text_.size(); ++at_) {
            if (text_[at_] == '\n') ++line_;
            if (text_[at_] == '*' && peek(1) == '/') {
                at_ += 2;
                return;
            }
        }
        throw SyntaxError(opened, "this comment is never closed: add */");
    }

    Token next() {
        const char c = peek();
        if (starts_word(c)) return word();
        if (is_digit(c)) return number();
        if (c == '.' && starts_word(peek(1))) {
            const std::size_t from = at_++;
            while (continues_word(peek())) ++at_;
            return make(Token::Kind::directive, from);
        }
        if (c == '"') return string();
        if (std::string_view(",;:{}()[]<>+-!|=@*&~^?").find(c) == std::string_view::npos) {
            throw SyntaxError(line_, std::string("the character '") + c + "' has no meaning in PTX here");
        }
        const std::size_t from = at_++;
        return make(Token::Kind::punctuation, from);
    }

    Token make(Token::Kind kind, std::size_t from, std::uint64_t bits = 0) const {
        return {kind, line_, text_.substr(from, at_ - from), bits};
    }

    // Parts joined by '.' or '::' belong to one word, so an opcode or %tid.x is one token.
    Token word() {
        const std::size_t from = at_;
        for (;;) {
            while (continues_word(peek())) ++at_;
            if (peek() == '.' && continues_word(peek(1))) {
                at_ += 1;
            } else if (peek() == ':' && peek(1) == ':' && continues_word(peek(2))) {
                at_ += 2;
            } else {
                return make(Token::Kind::word, from);
            }
        }
    }

    Token string() {
        const std::size_t from = ++at_;
        while (at_ < text_.size() && text_[at_] != '"' && text_[at_] != '\n') ++at_;
        if (peek() != '"') throw SyntaxError(line_, "this string is never closed: add a quote");
        Token token = make(Token::Kind::string, from);
        ++at_;
        return token;
    }

    Token number() {
        const std::size_t from = at_;
        if (peek() == '0' && (peek(1) == 'f' || peek(1) == 'F'))
            return hexadecimal(8, Token::Kind::float_bits);
        if (peek() == '0' && (peek(1) == 'd' || peek(1) == 'D'))
            return hexadecimal(16, Token::Kind::floating);
        int base = 10;
        if (peek() == '0') {
            const char mark = peek(1);
            if (mark == 'x' || mark == 'X') base = 16;
            if (mark == 'b' || mark == 'B') base = 2;
            if (is_digit(mark)) base = 8;
            at_ += base == 16 || base == 2 ? 2 : 0;
        }
        std::size_t end = at_;
        while (is_digit(peek(end - at_)) || (base == 16 && std::isxdigit(peek(end - at_)))) ++end;
        const char after = end < text_.size() ? text_[end] : '\0';
        if (base == 10 && (after == '.' || after == 'e' || after == 'E')) return decimal_float(from);
        std::uint64_t value = 0;
        const auto parsed = std::from_chars(text_.data() + at_, text_.data() + end, value, base);
        if (parsed.ec != std::errc() || parsed.ptr != text_.data() + end) {
            throw SyntaxError(line_, "the integer '" + std::string(text_.substr(from, end - from)) +
                                         "' does not fit 64 bits or has a digit outside its base");
        }
        at_ = end;
        if (peek() == 'U') ++at_;
        return make(Token::Kind::integer, from, value);
    }

    Token decimal_float(std::size_t from) {
        double value = 0;
        const auto parsed = std::from_chars(text_.data() + from, text_.data() + text_.size(), value);
        if (parsed.ec != std::errc()) throw SyntaxError(line_, "this number does not fit a double");
        at_ = static_cast<std::size_t>(parsed.ptr - text_.data());
        return make(Token::Kind::floating, from, std::bit_cast<std::uint64_t>(value));
    }

    Token hexadecimal(std::size_t digits, Token::Kind kind) {
        const std::size_t from = at_;
        at_ += 2;
        std::uint64_t value = 0;
        const char* begin = text_.data() + at_;
        const char* end = text_.data() + std::min(text_.size(), at_ + digits);
        const auto parsed = std::from_chars(begin, end, value, 16);
        if (parsed.ec != std::errc() || parsed.ptr != begin + digits) {
            throw SyntaxError(line_, "0f needs exactly 8 hexadecimal digits and 0d exactly 16");
        }
        at_ += digits;
        return make(kind, from, value);
    }

    std::string_view text_;
    std::size_t at_ = 0;
    std::uint32_t line_ = 1;
};

}  // namespace

std::vector<Token> tokenize(std::string_view text) { return Lexer(text).run(); }

}  // namespace emulated::ptx
