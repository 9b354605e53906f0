// Finds kernels without parsing C++: walks over the tokens once and tracks the scopes.
#include <algorithm>
#include <utility>

#include <bascule/jit/text/lexer.hpp>
#include <bascule/jit/text/name_rows.hpp>
#include <bascule/jit/text/tokenizer.hpp>

namespace bascule {
namespace {

/// Finds the declarations among the tokens.
class Finder {
  public:
    explicit Finder(LexedText lexed)
        : tokens_(std::move(lexed.tokens)), conditionals_(std::move(lexed.conditionals)) {}

    std::vector<KernelDeclaration> find() {
        while (peek().kind != Token::Kind::end) step();
        return std::move(found_);
    }

  private:
    const Token& peek(std::size_t ahead = 0) const noexcept {
        return tokens_[std::min(position_ + ahead, tokens_.size() - 1)];
    }

    /// Resets the scope in each branch of an #if: each may open a brace that is closed once, after the #endif.
    void follow_conditionals() {
        for (; next_conditional_ < conditionals_.size(); ++next_conditional_) {
            const Conditional& conditional = conditionals_[next_conditional_];
            if (conditional.position > position_) return;
            if (conditional.kind == Conditional::Kind::begin) {
                branches_.push_back(scopes_);
            } else if (!branches_.empty() && conditional.kind == Conditional::Kind::next) {
                scopes_ = branches_.back();
            } else if (!branches_.empty()) {
                branches_.pop_back();
            }
        }
    }

    void step() {
        follow_conditionals();
        const Token& token = peek();
        if (token.is("namespace")) {
            read_namespace();
        } else if (token.is("template")) {
            ++position_;
            statement_is_template_ = true;
            const std::size_t begin = position_;
            if (peek().is("<")) skip_angles();
            header_ = {begin, position_};
        } else if (token.is("__global__")) {
            read_kernel();
        } else if (token.is("{")) {
            scopes_.emplace_back();
            ++position_;
            end_statement();
        } else if (token.is("}")) {
            if (!scopes_.empty()) scopes_.pop_back();
            ++position_;
            end_statement();
        } else if (token.is("requires")) {
            skip_requirement();
        } else {
            if (token.is(";")) end_statement();
            ++position_;
        }
    }

    void end_statement() noexcept {
        statement_is_template_ = false;
        header_ = {};
    }

    /// The tokens between the angle brackets of the last `template <...>`.
    std::span<const Token> header_tokens() const noexcept {
        if (header_.end < header_.begin + 2) return {};
        return std::span(tokens_).subspan(header_.begin + 1, header_.end - header_.begin - 2);
    }

    /// Enters namespace a::b { ... }, which may be inline or anonymous; a namespace alias has no brace.
    void read_namespace() {
        ++position_;
        if (peek().is("[")) skip_balanced("[", "]");
        std::string name;
        while (peek().kind == Token::Kind::word || peek().is("::")) {
            if (!peek().is("inline")) name += peek().text;
            ++position_;
            if (peek().is("[")) skip_balanced("[", "]");
        }
        if (!peek().is("{")) return;
        scopes_.push_back(std::move(name));
        ++position_;
    }

    /// Skips requires (...), requires { ... } and requires (T a) { ... }: their braces are not a scope.
    void skip_requirement() {
        ++position_;
        if (peek().is("(")) skip_balanced("(", ")");
        if (peek().is("{")) skip_balanced("{", "}");
    }

    void skip_balanced(std::string_view open, std::string_view close) {
        int depth = 0;
        do {
            if (peek().kind == Token::Kind::end) return;
            if (peek().is(open)) ++depth;
            if (peek().is(close)) --depth;
            ++position_;
        } while (depth > 0);
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

    /// Moves past the ")" that matches the current "("; returns the tokens between.
    std::span<const Token> read_parentheses() {
        const std::size_t begin = position_ + 1;
        skip_balanced("(", ")");
        return std::span(tokens_).subspan(begin, std::max(position_, begin + 1) - 1 - begin);
    }

    static bool is_attribute(std::string_view word) {
        return fits_one(
            "__launch_bounds__ __cluster_dims__ __maxnreg__ __block_size__ __attribute__ noexcept alignas decltype",
            word);
    }

    /// Whether a function's parameters end here: a body, a semicolon, or one of a few words follows.
    bool ends_declarator() const {
        return peek().kind != Token::Kind::string &&
               fits_one("{ ; -> [ noexcept requires try = __attribute__ __launch_bounds__", peek().text);
    }

    /// Reads a kernel: __global__, a return type and attributes, name "(" parameters ")".
    void read_kernel() {
        KernelDeclaration kernel;
        kernel.is_template = statement_is_template_;
        if (kernel.is_template) kernel.template_parameters = read_template_header(header_tokens());
        bool specialised = kernel.is_template && kernel.template_parameters.empty();
        kernel.is_conditional = !branches_.empty();
        kernel.lines.push_back(peek().line);
        ++position_;
        std::string name;
        bool joined = false;  // the last token was "::"
        while (peek().kind != Token::Kind::end && !peek().is(";") && !peek().is("{")) {
            const Token& token = peek();
            if (token.is("(")) {
                const std::size_t begin = position_;
                const std::span<const Token> inside = read_parentheses();
                if (!name.empty() && ends_declarator()) {
                    read_parameters(inside, kernel);
                    kernel.is_divided = is_divided(begin, position_);
                    kernel.lines.push_back(kernel.line);
                    kernel.name = qualified(name);
                    finish(std::move(kernel), specialised);
                    return;
                }
                name.clear();  // NAME(...) was a macro invocation
            } else if (token.is("[")) {
                skip_balanced("[", "]");
            } else if (token.kind == Token::Kind::word && is_attribute(token.text) && peek(1).is("(")) {
                ++position_;
                read_parentheses();
            } else if (token.is("<")) {
                skip_angles();  // an explicit specialisation's arguments
                kernel.is_template = specialised = true;
            } else {
                if (token.kind == Token::Kind::word) {
                    if (!joined) name.clear();
                    name += token.text;
                    kernel.line = token.line;
                } else if (token.is("::")) {
                    name += name.empty() ? "" : "::";
                }
                joined = token.is("::");
                ++position_;
            }
        }
    }

    /// Whether a preprocessor conditional is between these tokens.
    bool is_divided(std::size_t begin, std::size_t end) const {
        return std::ranges::any_of(conditionals_, [&](const Conditional& each) {
            return each.position > begin && each.position < end;
        });
    }

    static void keep_common_names(KernelDeclaration& known, const KernelDeclaration& other) {
        for (std::size_t i = 0; i < known.parameters.size(); ++i) {
            if (known.parameters[i] != other.parameters[i]) known.parameters[i].clear();
        }
    }

    static void keep_common_names_of(KernelDeclaration& first, KernelDeclaration& second) {
        keep_common_names(first, second);
        keep_common_names(second, first);
    }

    /// Whether a parameter has a name in both, and not the same.
    static bool are_named_differently(const KernelDeclaration& first, const KernelDeclaration& second) {
        return !std::ranges::equal(first.parameters, second.parameters, [](const auto& a, const auto& b) {
            return a == b || a.empty() || b.empty();
        });
    }

    /// Clears parameter names of the template that differ in this specialisation, which is an instance of the template.
    void compare_names(const KernelDeclaration& specialisation) {
        for (KernelDeclaration& known : found_) {
            if (known.is_template && known.name == specialisation.name &&
                known.parameters.size() == specialisation.parameters.size())
                keep_common_names(known, specialisation);
        }
    }

    /// Reads from the end of the parameters to the body or the semicolon.
    void finish(KernelDeclaration kernel, bool specialised) {
        while (peek().kind != Token::Kind::end && !peek().is(";") && !peek().is("{")) {
            if (peek().is("__global__")) return;  // a text with a missing brace
            if (peek().is("requires")) {
                skip_requirement();
            } else {
                ++position_;
            }
        }
        kernel.is_definition = peek().is("{");
        if (specialised) {
            compare_names(kernel);  // its template decides which instances exist
        } else {
            add(std::move(kernel));
        }
    }

    std::string qualified(const std::string& name) const {
        std::string prefix;
        for (const std::string& scope : scopes_) prefix += scope.empty() ? "" : scope + "::";
        return prefix + name;
    }

    static void read_parameters(std::span<const Token> tokens, KernelDeclaration& kernel) {
        if (tokens.empty() || (tokens.size() == 1 && tokens[0].is("void"))) return;
        for (std::span<const Token> parameter : split_at_commas(tokens)) {
            const std::string name = parameter_name(parameter);
            kernel.parameters.push_back(name);
            kernel.parameter_types.push_back(parameter_type(parameter, name, kernel));
            if (std::ranges::any_of(parameter, [](const Token& token) { return token.is("="); }))
                ++kernel.defaults;
        }
    }

    /// The parameter without its name and its default argument. Each `auto` in it is a template parameter.
    static std::string parameter_type(std::span<const Token> tokens, const std::string& name,
                                      KernelDeclaration& kernel) {
        std::vector<Token> type;
        for (auto token = tokens.begin(); token != tokens.end() && !token->is("="); ++token) {
            const bool is_name =
                !name.empty() && token->is(name) &&
                (token + 1 == tokens.end() || token[1].is("=") || token[1].is("[") || token[1].is(")"));
            if (is_name) continue;
            type.push_back(*token);
            if (token->is("auto")) kernel.template_parameters.push_back(abbreviated(kernel));
        }
        if (!kernel.template_parameters.empty()) kernel.is_template = true;
        return spell(type);
    }

    static TemplateParameter abbreviated(const KernelDeclaration& kernel) {
        const auto before = std::ranges::count(kernel.template_parameters, true, &TemplateParameter::is_auto);
        TemplateParameter parameter;
        parameter.name = "auto:" + std::to_string(before + 1);
        parameter.is_auto = true;
        return parameter;
    }

    /// The name of a parameter is the last word outside brackets, if a type precedes it: `const float* x[4]`. `float`,
    /// `const Point` and `ns::Point` have no name.
    static std::string parameter_name(std::span<const Token> tokens) {
        if (std::string name = name_in_declarator(tokens); !name.empty()) return name;
        std::string name;
        bool has_type = false;
        bool joined = false;
        int depth = 0;
        for (const Token& token : tokens) {
            const bool closes = token.is(")") || token.is(">") || token.is("]");
            if (closes) --depth;
            if (depth == 0) {
                if (token.is("=")) break;
                if (token.kind == Token::Kind::word && !is_qualifier(token.text)) {
                    // The first word is the type or its beginning: unsigned int, ns::Point.
                    const bool is_type = !has_type || joined || is_builtin(token.text);
                    name = is_type ? "" : std::string(token.text);
                    has_type = true;
                } else if (token.is("*") || token.is("&") || token.is(">")) {
                    name.clear();
                }
                joined = token.is("::");
            }
            if (token.is("(") || token.is("<") || token.is("[")) ++depth;
        }
        return name;
    }

    /// `f` of `int (*f)(float)`, `rows` of `const float (*rows)[4]`; empty for other declarators.
    static std::string name_in_declarator(std::span<const Token> tokens) {
        for (std::size_t i = 0; i + 3 < tokens.size(); ++i) {
            const bool named = tokens[i].is("(") && (tokens[i + 1].is("*") || tokens[i + 1].is("&")) &&
                               tokens[i + 2].kind == Token::Kind::word && tokens[i + 3].is(")");
            if (named) return std::string(tokens[i + 2].text);
        }
        return {};
    }

    /// Whether the word says nothing about whether a name follows.
    static bool is_qualifier(std::string_view word) {
        return fits_one(
            "const volatile struct class enum union typename __restrict__ __grid_constant__ __restrict alignas",
            word);
    }

    static bool is_builtin(std::string_view word) {
        return fits_one("void bool char short int long float double signed unsigned auto", word);
    }

    /// Adds a kernel. A declaration and its definition are one kernel. Two definitions are two: an #if may choose one, or
    /// macros put them in different namespaces.
    void add(KernelDeclaration kernel) {
        for (KernelDeclaration& known : found_) {
            if (known.name != kernel.name || known.parameter_types != kernel.parameter_types ||
                known.is_template != kernel.is_template)
                continue;
            if (known.is_definition && kernel.is_definition) {
                if (known.is_redeclared) keep_common_names_of(known, kernel);  // either may be meant
                continue;
            }
            known.defaults = kernel.defaults = std::max(known.defaults, kernel.defaults);
            kernel.lines.insert(kernel.lines.end(), known.lines.begin(), known.lines.end());
            known.lines = kernel.lines;
            // The compiler may not see one of the two, or they may be two functions.
            if (known.is_conditional || kernel.is_conditional || are_named_differently(known, kernel))
                keep_common_names_of(known, kernel);
            if (kernel.is_definition) known = std::move(kernel);
            known.is_redeclared = true;
            return;
        }
        found_.push_back(std::move(kernel));
    }

    std::vector<Token> tokens_;
    std::size_t position_ = 0;
    std::vector<Conditional> conditionals_;
    std::size_t next_conditional_ = 0;
    std::vector<std::string> scopes_;                 // names of namespaces; empty for other scopes
    std::vector<std::vector<std::string>> branches_;  // the value of scopes_ at each open #if
    struct Range {
        std::size_t begin = 0, end = 0;
    };
    Range header_;  // of the last `template`, with its brackets
    bool statement_is_template_ = false;
    std::vector<KernelDeclaration> found_;
};

}  // namespace

std::vector<KernelDeclaration> find_kernels(std::string_view text) { return Finder(lex(text)).find(); }

}  // namespace bascule
