// The declarations of a PTX text's module scope. Source: the PTX ISA, "Directives" and "Linking Directives".
#include <algorithm>
#include <array>
#include <charconv>
#include <map>
#include <optional>

#include <fmt/format.h>

#include <bascule/interface/errors/error.hpp>
#include <bascule/jit/link/code.hpp>

namespace bascule {
namespace {

[[noreturn]] void fail(const Code& code, std::string_view why) {
    throw CompileError(fmt::format("{} is not PTX that can be read: {}.", code.name, why));
}

bool is_word(char c) noexcept {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '$' || c == '%' || c == '.' || c == ':';
}

bool is_directive(std::string_view word) noexcept { return word.starts_with('.'); }
bool is_name(std::string_view word) noexcept {
    return !word.empty() && is_word(word[0]) && !is_directive(word) && (word[0] < '0' || word[0] > '9');
}

std::uint64_t number_of(std::string_view word) noexcept {
    std::uint64_t value = 0;
    std::from_chars(word.data(), word.data() + word.size(), value);
    return value;
}

/// Words, strings and single characters; comments are no tokens.
class Tokens {
  public:
    explicit Tokens(std::string_view text) : text_(text) { next(); }

    std::string_view current() const noexcept { return current_; }  ///< empty at the end
    bool at_end() const noexcept { return current_.empty(); }
    bool is(std::string_view token) const noexcept { return current_ == token; }

    std::string_view take() {
        const std::string_view taken = current_;
        next();
        return taken;
    }
    /// Behind the bracket that closes the current one.
    void skip_brackets(char open, char close) {
        int depth = 0;
        while (!at_end()) {
            const std::string_view token = take();
            if (token.size() == 1 && token[0] == open) ++depth;
            if (token.size() == 1 && token[0] == close && --depth == 0) return;
        }
    }
    void skip_until(std::string_view token) {
        while (!at_end() && take() != token) {
        }
    }

  private:
    void next() {
        current_ = {};
        while (at_ < text_.size()) {
            const char c = text_[at_];
            const std::string_view rest = text_.substr(at_);
            if (c == ' ' || c == '\t' || c == '\r' || c == '\n' || c == '\0') {
                ++at_;
            } else if (rest.starts_with("//")) {
                at_ = std::min(text_.find('\n', at_), text_.size());
            } else if (rest.starts_with("/*")) {
                const std::size_t end = text_.find("*/", at_ + 2);
                at_ = end == text_.npos ? text_.size() : end + 2;
            } else {
                std::size_t length = 1;
                if (c == '"') {
                    const std::size_t end = text_.find('"', at_ + 1);
                    length = (end == text_.npos ? text_.size() : end + 1) - at_;
                } else if (is_word(c)) {
                    while (at_ + length < text_.size() && is_word(text_[at_ + length])) ++length;
                }
                current_ = text_.substr(at_, length);
                at_ += length;
                return;
            }
        }
    }

    std::string_view text_;
    std::size_t at_ = 0;
    std::string_view current_;
};

/// ".b8" is 1, ".f64" is 8; 0 for what is not a type of data.
std::uint32_t bytes_of_type(std::string_view directive) noexcept {
    static constexpr std::array<std::string_view, 4> kinds = {".b", ".u", ".s", ".f"};
    if (directive == ".texref" || directive == ".samplerref" || directive == ".surfref") return 8;
    for (const std::string_view kind : kinds) {
        if (!directive.starts_with(kind)) continue;
        const std::uint64_t bits = number_of(directive.substr(kind.size()));
        if (bits >= 8 && bits <= 128 && directive == fmt::format("{}{}", kind, bits))
            return static_cast<std::uint32_t>(bits / 8);
    }
    return 0;
}

/// What a variable or a parameter declares: `.global .align 4 .v2 .f32 name[2][3]`.
struct Declared {
    std::string_view name;
    std::string_view type;
    std::string_view space;
    std::uint32_t element_bytes = 0;
    std::uint32_t alignment = 0;  ///< 0: the type's own
    std::uint64_t elements = 1;
    bool is_array = false;
    bool is_pointer = false;  ///< .ptr

    std::uint64_t bytes() const noexcept { return element_bytes * elements; }
};

/// Up to a token of `ends`, which stays. Initial values are not looked at.
Declared read_declaration(Tokens& tokens, std::string_view ends) {
    static constexpr std::array<std::string_view, 6> spaces = {".global", ".const", ".shared",
                                                               ".local",  ".param", ".tex"};
    Declared declared;
    const auto ends_here = [&] {
        return tokens.at_end() ||
               (tokens.current().size() == 1 && ends.find(tokens.current()[0]) != ends.npos);
    };
    while (!ends_here()) {
        const std::string_view token = tokens.current();
        if (token == "[") {
            tokens.take();
            declared.is_array = true;
            declared.elements *= tokens.is("]") ? 0 : number_of(tokens.take());
            continue;
        }
        if (token == "{") {
            tokens.skip_brackets('{', '}');
            continue;
        }
        if (token == "(") {
            tokens.skip_brackets('(', ')');
            continue;
        }
        tokens.take();
        const bool is_space = std::ranges::find(spaces, token) != spaces.end();
        if (is_space && declared.space.empty()) {
            declared.space = token;
        } else if (token == ".align") {
            // Behind .ptr it is of what the pointer points to.
            const auto alignment = static_cast<std::uint32_t>(number_of(tokens.take()));
            if (!declared.is_pointer) declared.alignment = alignment;
        } else if (token == ".v2" || token == ".v4") {
            declared.elements *= token == ".v2" ? 2 : 4;
        } else if (token == ".ptr") {
            declared.is_pointer = true;
        } else if (const std::uint32_t bytes = bytes_of_type(token); bytes != 0) {
            declared.type = token;
            declared.element_bytes = bytes;
        } else if (is_name(token) && declared.name.empty() && declared.element_bytes != 0) {
            declared.name = token;
        }
    }
    return declared;
}

CodeParameter to_parameter(const Declared& declared) {
    CodeParameter parameter;
    parameter.bytes = static_cast<std::uint32_t>(declared.bytes());
    parameter.alignment = std::max(declared.alignment, declared.element_bytes);
    using Type = CodeParameter::Type;
    if (declared.is_array) {
        parameter.type = Type::bytes;
    } else if (declared.is_pointer) {
        parameter.type = Type::pointer;
    } else if (declared.type == ".f32" || declared.type == ".f64") {
        parameter.type = Type::floating;
    }
    return parameter;
}

/// "sm_90a" as a virtual architecture.
Arch arch_of(const Code& code, std::string_view target) {
    if (!target.starts_with("sm_") && !target.starts_with("compute_"))
        fail(code, fmt::format("its target '{}' is not an architecture", target));
    return parse_arch(fmt::format("compute_{}", target.substr(target.find('_') + 1)));
}

class Outliner {
  public:
    explicit Outliner(const Code& code) : code_(code), tokens_(code.bytes) {}

    CodeOutline read() {
        if (!tokens_.is(".version")) fail(code_, "it does not begin with .version");
        while (!tokens_.at_end()) read_directive();
        if (!has_target_) fail(code_, "it has no .target");
        for (CodeSymbol& symbol : outline_.symbols) {
            if (symbol.linkage == CodeSymbol::Linkage::external) symbol.is_needed = is_used(symbol.name);
        }
        return std::move(outline_);
    }

  private:
    void read_directive() {
        const std::string_view word = tokens_.current();
        if (word == ".target") {
            tokens_.take();
            outline_.arch = arch_of(code_, tokens_.take());
            has_target_ = true;
            while (tokens_.is(",")) {
                tokens_.take();
                tokens_.take();
            }
        } else if (word == ".version" || word == ".address_size") {
            tokens_.take();
            tokens_.take();
        } else if (word == ".file") {
            tokens_.take();
            tokens_.take();
            tokens_.take();
            while (tokens_.is(",")) {
                tokens_.take();
                tokens_.take();
            }
        } else if (word == ".section") {
            while (!tokens_.at_end() && !tokens_.is("{")) tokens_.take();
            tokens_.skip_brackets('{', '}');
        } else if (word == ".pragma" || word == ".alias") {
            tokens_.skip_until(";");
        } else if (is_directive(word)) {
            read_symbol();
        } else {
            tokens_.take();
        }
    }

    void read_symbol() {
        using Linkage = CodeSymbol::Linkage;
        static const std::map<std::string_view, Linkage> linkages = {{".visible", Linkage::global},
                                                                     {".weak", Linkage::weak},
                                                                     {".common", Linkage::weak},
                                                                     {".extern", Linkage::external}};
        CodeSymbol symbol;
        for (auto found = linkages.find(tokens_.current()); found != linkages.end();
             found = linkages.find(tokens_.current())) {
            symbol.linkage = found->second;
            tokens_.take();
        }
        if (tokens_.is(".entry") || tokens_.is(".func")) {
            read_function(std::move(symbol));
        } else {
            read_variable(std::move(symbol));
        }
    }

    void read_function(CodeSymbol symbol) {
        symbol.kind = tokens_.take() == ".entry" ? CodeSymbol::Kind::kernel : CodeSymbol::Kind::function;
        while (!tokens_.at_end() && !is_name(tokens_.current())) {
            if (tokens_.is("(")) {
                tokens_.skip_brackets('(', ')');  // what it returns
            } else {
                tokens_.take();
            }
        }
        symbol.name = tokens_.take();
        if (tokens_.is("(")) {
            while (!tokens_.at_end() && !tokens_.is(")")) {
                tokens_.take();
                const Declared declared = read_declaration(tokens_, ",)");
                if (symbol.kind == CodeSymbol::Kind::kernel && declared.element_bytes != 0)
                    symbol.parameters.push_back(to_parameter(declared));
            }
            tokens_.take();
        }
        while (!tokens_.at_end() && !tokens_.is("{") && !tokens_.is(";")) tokens_.take();
        const bool has_body = tokens_.is("{");
        if (has_body) {
            tokens_.skip_brackets('{', '}');
        } else {
            tokens_.take();
        }
        // `.visible .func f;` is of a function that is defined further down.
        if (has_body || symbol.linkage == CodeSymbol::Linkage::external) add(std::move(symbol));
    }

    void read_variable(CodeSymbol symbol) {
        symbol.kind = CodeSymbol::Kind::variable;
        const Declared declared = read_declaration(tokens_, ";,");
        tokens_.take();
        symbol.name = declared.name;
        symbol.bytes = declared.bytes();
        symbol.is_constant = declared.space == ".const";
        const bool is_dynamic_shared =
            declared.space == ".shared" && symbol.linkage == CodeSymbol::Linkage::external;
        if (!symbol.name.empty() && !is_dynamic_shared) add(std::move(symbol));
    }

    /// A definition takes the place of a declaration.
    void add(CodeSymbol symbol) {
        const auto known = std::ranges::find(outline_.symbols, symbol.name, &CodeSymbol::name);
        if (known == outline_.symbols.end()) {
            outline_.symbols.push_back(std::move(symbol));
        } else if (symbol.linkage != CodeSymbol::Linkage::external) {
            *known = std::move(symbol);
        }
    }

    /// Whether the name stands anywhere but in its declaration.
    bool is_used(std::string_view name) const {
        const std::string_view text = code_.bytes;
        int uses = 0;
        for (std::size_t at = text.find(name); at != text.npos; at = text.find(name, at + name.size())) {
            const std::size_t end = at + name.size();
            const bool whole =
                (at == 0 || !is_word(text[at - 1])) && (end == text.size() || !is_word(text[end]));
            if (whole && ++uses > 1) return true;
        }
        return false;
    }

    const Code& code_;
    Tokens tokens_;
    CodeOutline outline_;
    bool has_target_ = false;
};

}  // namespace

CodeOutline outline_of_ptx(const Code& ptx) { return Outliner(ptx).read(); }

namespace {

using Calls = std::map<std::string_view, std::vector<std::string_view>>;

/// `call.uni (result), name, (arguments);` and `call name;`
std::string_view called_by(Tokens& tokens) {
    if (tokens.is("(")) tokens.skip_brackets('(', ')');
    if (tokens.is(",")) tokens.take();
    return tokens.take();
}

/// Of every function with a body, what it calls.
Calls calls_of(std::string_view ptx) {
    Calls calls;
    Tokens tokens(ptx);
    while (!tokens.at_end()) {
        if (tokens.take() != ".func") continue;
        if (tokens.is("(")) tokens.skip_brackets('(', ')');
        const std::string_view name = tokens.take();
        while (!tokens.at_end() && !tokens.is("{") && !tokens.is(";")) tokens.take();
        if (!tokens.is("{")) continue;
        std::vector<std::string_view>& called = calls[name];
        int depth = 0;
        do {
            const std::string_view token = tokens.take();
            if (token == "{") ++depth;
            if (token == "}") --depth;
            if (token == "call" || token.starts_with("call.")) called.push_back(called_by(tokens));
        } while (depth > 0 && !tokens.at_end());
    }
    return calls;
}

}  // namespace

bool has_unknown_stack(std::string_view ptx) {
    if (ptx.find(".callprototype") != ptx.npos || ptx.find("alloca.") != ptx.npos) return true;
    if (ptx.find("call") == ptx.npos) return false;
    // Functions that call none of those that are left cannot be a part of a ring.
    Calls left = calls_of(ptx);
    const auto calls_none = [&](const auto& function) {
        return std::ranges::none_of(function.second, [&](auto name) { return left.contains(name); });
    };
    while (std::erase_if(left, calls_none) > 0) {
    }
    return !left.empty();
}

}  // namespace bascule
