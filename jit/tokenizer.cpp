// Not a C++ parser: it walks over the text once, knows what is no code (comments, literals, preprocessor
// lines), and keeps the scopes it is in.
#include <algorithm>
#include <array>
#include <cctype>

#include <bascule/jit/tokenizer.hpp>

namespace bascule {
namespace {

struct Token {
    enum class Kind : std::uint8_t { word, punctuation, string, end };
    Kind kind = Kind::end;
    std::string_view text;
    int line = 1;

    bool is(std::string_view expected) const noexcept { return kind != Kind::string && text == expected; }
};

bool starts_word(char c) noexcept { return std::isalpha(static_cast<unsigned char>(c)) != 0 || c == '_'; }
bool continues_word(char c) noexcept { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

/// Text to tokens.
class Lexer {
  public:
    explicit Lexer(std::string_view text) : text_(text) {}

    std::vector<Token> tokens() {
        std::vector<Token> tokens;
        while (skip_blank()) tokens.push_back(next());
        tokens.push_back({Token::Kind::end, {}, line_});
        return tokens;
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
};

/// Tokens to declarations.
class Finder {
  public:
    explicit Finder(std::vector<Token> tokens) : tokens_(std::move(tokens)) {}

    std::vector<KernelDeclaration> find() {
        while (peek().kind != Token::Kind::end) step();
        return std::move(found_);
    }

  private:
    struct Scope {
        std::string name;  ///< of a namespace or class; empty for anything else
        bool extern_c = false;
    };

    const Token& peek(std::size_t ahead = 0) const noexcept {
        return tokens_[std::min(position_ + ahead, tokens_.size() - 1)];
    }

    void step() {
        const Token& token = peek();
        if (token.is("namespace")) {
            read_namespace();
        } else if (token.is("extern") && peek(1).kind == Token::Kind::string && peek(1).text == "\"C\"") {
            position_ += 2;
            if (peek().is("{")) {
                scopes_.push_back({"", true});
                ++position_;
            } else {
                statement_is_extern_c_ = true;
            }
        } else if (token.is("template")) {
            ++position_;
            statement_is_template_ = true;
            if (peek().is("<")) skip_angles();
        } else if (token.is("__global__")) {
            read_kernel();
        } else if (token.is("{")) {
            scopes_.push_back({});
            ++position_;
            end_statement();
        } else if (token.is("}")) {
            if (!scopes_.empty()) scopes_.pop_back();
            ++position_;
            end_statement();
        } else {
            if (token.is(";")) end_statement();
            if (token.is("class") || token.is("struct")) {
                read_class();
            } else {
                ++position_;
            }
        }
    }

    void end_statement() noexcept {
        statement_is_template_ = false;
        statement_is_extern_c_ = false;
    }

    /// namespace a::b { ... }, inline or not, anonymous too; an alias has no brace.
    void read_namespace() {
        ++position_;
        std::string name;
        while (peek().kind == Token::Kind::word || peek().is("::")) {
            if (!peek().is("inline")) name += peek().text;
            ++position_;
        }
        if (!peek().is("{")) return;
        scopes_.push_back({name, false});
        ++position_;
    }

    /// class X ... { ... }: what stands in it is qualified with X.
    void read_class() {
        ++position_;
        std::string name;
        if (peek().kind == Token::Kind::word) name = peek().text;
        std::size_t ahead = 0;
        while (!peek(ahead).is("{") && !peek(ahead).is(";") && !peek(ahead).is("(") && !peek(ahead).is(")") &&
               !peek(ahead).is(",") && !peek(ahead).is(">") && !peek(ahead).is("=") &&
               peek(ahead).kind != Token::Kind::end) {
            ++ahead;
        }
        if (!peek(ahead).is("{")) return;
        position_ += ahead + 1;
        scopes_.push_back({name, false});
        end_statement();
    }

    void skip_angles() {
        int depth = 0;
        int round = 0;
        do {
            const Token& token = peek();
            if (token.kind == Token::Kind::end) return;
            if (token.is("(") || token.is("{")) ++round;
            if (token.is(")") || token.is("}")) --round;
            if (round == 0 && token.is("<")) ++depth;
            if (round == 0 && token.is(">")) --depth;
            ++position_;
        } while (depth > 0);
    }

    /// From "(" to behind its ")"; returns the tokens between.
    std::vector<Token> read_parentheses() {
        std::vector<Token> inside;
        int depth = 0;
        do {
            const Token& token = peek();
            if (token.kind == Token::Kind::end) return inside;
            if (token.is("(")) ++depth;
            if (token.is(")")) --depth;
            if (depth > 0 && !(depth == 1 && inside.empty() && token.is("("))) inside.push_back(token);
            ++position_;
        } while (depth > 0);
        return inside;
    }

    static bool is_attribute(std::string_view word) {
        static constexpr std::array attributes = {
            std::string_view("__launch_bounds__"), std::string_view("__cluster_dims__"),
            std::string_view("__maxnreg__"),       std::string_view("__block_size__"),
            std::string_view("__attribute__"),     std::string_view("requires"),
            std::string_view("noexcept"),          std::string_view("alignas"),
            std::string_view("decltype"),
        };
        return std::find(attributes.begin(), attributes.end(), word) != attributes.end();
    }

    /// Behind __global__ stand a return type and attributes, then name "(" parameters ")".
    void read_kernel() {
        KernelDeclaration kernel;
        kernel.is_template = statement_is_template_;
        kernel.is_extern_c = statement_is_extern_c_ || in_extern_c();
        ++position_;
        std::string name;
        bool joined = false;  // the last token was "::"
        while (peek().kind != Token::Kind::end && !peek().is(";") && !peek().is("{")) {
            const Token& token = peek();
            if (token.is("(")) {
                if (!name.empty()) break;
                read_parentheses();
            } else if (token.kind == Token::Kind::word && is_attribute(token.text) && peek(1).is("(")) {
                ++position_;
                read_parentheses();
            } else if (token.is("<")) {
                skip_angles();  // an explicit specialisation's arguments
                kernel.is_template = true;
            } else {
                if (token.kind == Token::Kind::word) {
                    name = joined ? name + std::string(token.text) : std::string(token.text);
                    kernel.line = token.line;
                } else if (token.is("::")) {
                    name += "::";
                }
                joined = token.is("::");
                ++position_;
            }
        }
        if (!peek().is("(") || name.empty()) return;
        kernel.parameters = parameter_names(read_parentheses());
        kernel.name = qualified(name);
        while (peek().kind != Token::Kind::end && !peek().is(";") && !peek().is("{")) {
            if (peek().is("__global__")) return;  // a text with a missing brace
            ++position_;
        }
        kernel.is_definition = peek().is("{");
        add(std::move(kernel));
    }

    bool in_extern_c() const noexcept {
        return std::any_of(scopes_.begin(), scopes_.end(), [](const Scope& scope) { return scope.extern_c; });
    }

    std::string qualified(const std::string& name) const {
        std::string prefix;
        for (const Scope& scope : scopes_) {
            if (!scope.name.empty()) prefix += scope.name + "::";
        }
        return prefix + name;
    }

    /// The last word of each parameter, before an array's brackets or a default.
    static std::vector<std::string> parameter_names(const std::vector<Token>& tokens) {
        std::vector<std::string> names;
        std::string name;
        int depth = 0;
        int words = 0;
        bool in_default = false;
        for (const Token& token : tokens) {
            if (token.is("(") || token.is("<") || token.is("[") || token.is("{")) ++depth;
            if (token.is(")") || token.is(">") || token.is("]") || token.is("}")) --depth;
            if (depth == 0 && token.is(",")) {
                names.push_back(words > 1 ? name : "");
                name.clear();
                words = 0;
                in_default = false;
            } else if (depth == 0 && token.is("=")) {
                in_default = true;
            } else if (depth == 0 && !in_default && token.kind == Token::Kind::word) {
                name = is_type_word(token.text) ? "" : std::string(token.text);
                ++words;
            } else if (depth == 0 && !in_default && (token.is("*") || token.is("&") || token.is(">"))) {
                name.clear();
                words = std::max(words, 1);
            }
        }
        const bool only_void = tokens.size() == 1 && tokens[0].is("void");
        if (!tokens.empty() && !only_void) names.push_back(words > 1 ? name : "");
        return names;
    }

    /// Words that end a parameter without a name.
    static bool is_type_word(std::string_view word) {
        static constexpr std::array words = {
            std::string_view("void"),
            std::string_view("bool"),
            std::string_view("char"),
            std::string_view("short"),
            std::string_view("int"),
            std::string_view("long"),
            std::string_view("float"),
            std::string_view("double"),
            std::string_view("signed"),
            std::string_view("unsigned"),
            std::string_view("const"),
            std::string_view("volatile"),
            std::string_view("auto"),
            std::string_view("__restrict__"),
            std::string_view("__grid_constant__"),
        };
        return std::find(words.begin(), words.end(), word) != words.end();
    }

    /// A declaration and its definition are one kernel; two definitions are overloads.
    void add(KernelDeclaration kernel) {
        for (KernelDeclaration& known : found_) {
            const bool same = known.name == kernel.name &&
                              known.parameters.size() == kernel.parameters.size() &&
                              known.is_template == kernel.is_template;
            if (same && !(known.is_definition && kernel.is_definition)) {
                if (kernel.is_definition) known = std::move(kernel);
                return;
            }
        }
        found_.push_back(std::move(kernel));
    }

    std::vector<Token> tokens_;
    std::size_t position_ = 0;
    std::vector<Scope> scopes_;
    bool statement_is_template_ = false;
    bool statement_is_extern_c_ = false;
    std::vector<KernelDeclaration> found_;
};

}  // namespace

std::vector<KernelDeclaration> find_kernels(std::string_view text) {
    return Finder(Lexer(text).tokens()).find();
}

}  // namespace bascule
