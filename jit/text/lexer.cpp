#include <cctype>
#include <string>
#include <utility>

#include <bascule/jit/text/lexer.hpp>

namespace bascule {
namespace {

bool starts_word(char c) noexcept { return std::isalpha(static_cast<unsigned char>(c)) != 0 || c == '_'; }

/// Text to tokens.
class Lexer {
  public:
    explicit Lexer(std::string_view text) : text_(text) {}

    LexedText run() && {
        while (skip_blank()) lexed_.tokens.push_back(next());
        lexed_.tokens.push_back({Token::Kind::end, {}, line_});
        return std::move(lexed_);
    }

  private:
    char at(std::size_t offset) const noexcept {
        return position_ + offset < text_.size() ? text_[position_ + offset] : '\0';
    }

    void advance() noexcept {
        if (text_[position_] == '\n') ++line_;
        ++position_;
    }

    /// Moves to the next token; false at the end.
    bool skip_blank() {
        bool line_start = position_ == 0;
        while (position_ < text_.size()) {
            const char c = text_[position_];
            if (c == '\n') {
                line_start = true;
                advance();
            } else if (std::isspace(static_cast<unsigned char>(c)) != 0) {
                advance();
            } else if (c == '\\' && (at(1) == '\n' || at(1) == '\r')) {
                advance();
            } else if (c == '/' && at(1) == '/') {
                skip_line();
            } else if (c == '/' && at(1) == '*') {
                skip_comment();
            } else if (c == '#' && (line_start || only_blank_before())) {
                skip_directive();
                line_start = true;
            } else {
                return true;
            }
        }
        return false;
    }

    bool only_blank_before() const noexcept {
        for (std::size_t i = position_; i > 0 && text_[i - 1] != '\n'; --i) {
            if (std::isspace(static_cast<unsigned char>(text_[i - 1])) == 0) return false;
        }
        return true;
    }

    /// To the end of the line; a backslash joins the next one to it.
    void skip_line() {
        while (position_ < text_.size() && text_[position_] != '\n') {
            const bool joined =
                text_[position_] == '\\' && (at(1) == '\n' || (at(1) == '\r' && at(2) == '\n'));
            if (joined) {
                while (text_[position_] != '\n') advance();
            }
            advance();
        }
    }

    /// A preprocessor line, whose comments may hide its end.
    void skip_directive() {
        std::size_t begin = position_ + 1;
        while (begin < text_.size() && (text_[begin] == ' ' || text_[begin] == '\t')) ++begin;
        note_conditional(text_.substr(begin, 6));
        while (position_ < text_.size() && text_[position_] != '\n') {
            if (text_[position_] == '/' && at(1) == '*') {
                skip_comment();
                continue;
            }
            if (text_[position_] == '/' && at(1) == '/') {
                skip_line();
                return;
            }
            const bool joined =
                text_[position_] == '\\' && (at(1) == '\n' || (at(1) == '\r' && at(2) == '\n'));
            if (joined) {
                while (text_[position_] != '\n') advance();
            }
            advance();
        }
    }

    void note_conditional(std::string_view directive) {
        const std::size_t position = lexed_.tokens.size();
        if (directive.starts_with("if")) lexed_.conditionals.push_back({Conditional::Kind::begin, position});
        if (directive.starts_with("el")) lexed_.conditionals.push_back({Conditional::Kind::next, position});
        if (directive.starts_with("endif")) lexed_.conditionals.push_back({Conditional::Kind::end, position});
    }

    void skip_comment() {
        advance();
        advance();
        while (position_ < text_.size() && !(text_[position_] == '*' && at(1) == '/')) advance();
        for (int i = 0; i < 2 && position_ < text_.size(); ++i) advance();
    }

    Token next() {
        const std::size_t start = position_;
        const int line = line_;
        const char c = text_[position_];
        if (starts_word(c)) {
            while (continues_word(at(0))) ++position_;
            const std::string_view word = text_.substr(start, position_ - start);
            if (at(0) == '"' && is_raw_prefix(word)) {
                skip_raw_string();
                return {Token::Kind::string, text_.substr(start, position_ - start), line};
            }
            if ((at(0) == '"' || at(0) == '\'') && is_prefix(word)) {
                skip_literal(at(0));
                return {Token::Kind::string, text_.substr(start, position_ - start), line};
            }
            return {Token::Kind::word, word, line};
        }
        if (std::isdigit(static_cast<unsigned char>(c)) != 0) {
            // Digit separators are no character literals.
            while (continues_word(at(0)) || at(0) == '.' || (at(0) == '\'' && continues_word(at(1))))
                ++position_;
            return {Token::Kind::punctuation, text_.substr(start, position_ - start), line};
        }
        if (c == '"' || c == '\'') {
            skip_literal(c);
            return {Token::Kind::string, text_.substr(start, position_ - start), line};
        }
        position_ += (c == ':' && at(1) == ':') || (c == '-' && at(1) == '>') ? 2 : 1;
        return {Token::Kind::punctuation, text_.substr(start, position_ - start), line};
    }

    static bool is_prefix(std::string_view word) {
        return word == "L" || word == "u" || word == "U" || word == "u8";
    }
    static bool is_raw_prefix(std::string_view word) {
        return word == "R" ||
               (word.size() > 1 && word.back() == 'R' && is_prefix(word.substr(0, word.size() - 1)));
    }

    void skip_literal(char quote) {
        advance();
        while (position_ < text_.size() && text_[position_] != quote && text_[position_] != '\n') {
            if (text_[position_] == '\\' && position_ + 1 < text_.size()) advance();
            advance();
        }
        if (position_ < text_.size() && text_[position_] == quote) advance();
    }

    void skip_raw_string() {
        advance();
        std::string ending = ")";
        while (position_ < text_.size() && text_[position_] != '(') {
            ending += text_[position_];
            advance();
        }
        ending += '"';
        const std::size_t end = text_.find(ending, position_);
        const std::size_t stop = end == std::string_view::npos ? text_.size() : end + ending.size();
        while (position_ < stop) advance();
    }

    std::string_view text_;
    std::size_t position_ = 0;
    int line_ = 1;
    LexedText lexed_;
};

}  // namespace

LexedText lex(std::string_view text) { return Lexer(text).run(); }

}  // namespace bascule
