#include <algorithm>
#include <charconv>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <bascule/interface/errors/error.hpp>
#include <bascule/jit/signatures/demangle.hpp>
#include <bascule/jit/text/lexer.hpp>
#include <bascule/jit/variables/ptx_text.hpp>
#include <bascule/jit/variables/variable.hpp>

namespace bascule {

std::uint64_t Variable::bytes() const noexcept {
    std::uint64_t bytes = dtype.itemsize;
    for (const std::int64_t extent : shape) bytes *= static_cast<std::uint64_t>(extent);
    return bytes;
}

namespace {

constexpr std::string_view name_letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_$";

constexpr std::array<std::string_view, 2> local_scopes = {"_INTERNAL_", "_GLOBAL__N_"};

bool is_local(std::string_view name) {
    return std::ranges::any_of(local_scopes,
                               [&](std::string_view scope) { return name.find(scope) != name.npos; });
}

/// Shortens the scopes that the compiler generated: "31_INTERNAL_00000000_6_abc_cu_vol" becomes "_INTERNAL_".
std::string without_local_scopes(std::string name) {
    for (const std::string_view scope : local_scopes) {
        for (std::size_t at = name.find(scope); at != name.npos; at = name.find(scope, at + 1)) {
            std::size_t digits = at;
            while (digits > 0 && name[digits - 1] >= '0' && name[digits - 1] <= '9') --digits;
            std::size_t length = 0;
            std::from_chars(name.data() + digits, name.data() + at, length);
            if (length < scope.size() || length > name.size() - at) continue;
            name.replace(digits, at - digits + length, scope);
            at = digits;
        }
    }
    return name;
}

/// Removes the scopes that without_local_scopes has shortened: "_ZN_INTERNAL__GLOBAL__N_5counterE" becomes
/// "_ZN5counterE".
std::string without_scopes(std::string name) {
    for (const std::string_view scope : local_scopes) {
        for (std::size_t at = name.find(scope); at != name.npos; at = name.find(scope))
            name.erase(at, scope.size());
    }
    return name;
}

/// Walks over the text's namespaces to find qualified names for messages.
class VariableFinder {
  public:
    explicit VariableFinder(std::string_view text) : text_(lex(text)), tokens_(text_.tokens) {}

    std::vector<std::string> find() {
        while (tokens_[at_].kind != Token::Kind::end) {
            if (tokens_[at_].is("namespace")) {
                enter_namespace();
            } else if (tokens_[at_].is("}")) {
                if (!scopes_.empty()) scopes_.pop_back();
                ++at_;
            } else if (tokens_[at_].is("{")) {
                // Skips a body with its declarations, unless it belongs to extern "C".
                if (at_ > 0 && tokens_[at_ - 1].kind == Token::Kind::string) {
                    scopes_.emplace_back();
                    ++at_;
                } else {
                    skip("{", "}");
                }
            } else if (is_space(tokens_[at_])) {
                declaration();
            } else {
                ++at_;
            }
        }
        return std::move(found_);
    }

  private:
    static bool is_space(const Token& token) {
        return token.is("__device__") || token.is("__constant__") || token.is("__managed__");
    }

    void enter_namespace() {
        std::string name;
        for (++at_; tokens_[at_].kind == Token::Kind::word || tokens_[at_].is("::"); ++at_) {
            if (!tokens_[at_].is("inline")) name += tokens_[at_].text;
        }
        if (!tokens_[at_].is("{")) return;  // an alias
        scopes_.push_back(std::move(name));
        ++at_;
    }

    /// Reads from `__device__` to the end of the declaration; a function ends at its parameters.
    void declaration() {
        std::string name;
        while (tokens_[at_].kind != Token::Kind::end) {
            const Token& token = tokens_[at_];
            if (token.is("__align__") || token.is("alignas")) {
                ++at_;
                if (tokens_[at_].is("(")) skip("(", ")");
            } else if (token.is("<")) {
                skip("<", ">");
            } else if (token.is("struct") || token.is("class") || token.is("union") || token.is("enum")) {
                type_specifier();
            } else if (token.is("(") || token.is("__global__")) {
                ++at_;
                return;
            } else if (token.is("[") || token.is("=") || token.is(";") || token.is(",") || token.is("{")) {
                add(name);
                // In `int a[2], b = 3;` the second declarator has the type of the first.
                while (!tokens_[at_].is(";") && !tokens_[at_].is(",") &&
                       tokens_[at_].kind != Token::Kind::end) {
                    skip_one();
                }
                if (!tokens_[at_].is(",")) return;
                ++at_;
            } else {
                if (token.kind == Token::Kind::word) name = token.text;
                ++at_;
            }
        }
    }

    /// Skips a type's definition: "struct {...}", "enum class E : int {...}". If there is none, skips only the word
    /// `struct`.
    void type_specifier() {
        std::size_t end = at_ + 1;
        int names = 0;
        bool has_base = false;
        for (; tokens_[end].kind == Token::Kind::word || tokens_[end].is("::") || tokens_[end].is(":");
             ++end) {
            has_base = has_base || tokens_[end].is(":");
            const bool is_name = tokens_[end].kind == Token::Kind::word && !tokens_[end].is("class") &&
                                 !tokens_[end].is("final") && !tokens_[end - 1].is("::");
            if (is_name) ++names;
        }
        // "struct S v {...}" initialises v.
        if (!tokens_[end].is("{") || (names > 1 && !has_base)) {
            ++at_;
            return;
        }
        at_ = end;
        skip("{", "}");
    }

    void add(const std::string& name) {
        if (name.empty() || is_space({Token::Kind::word, name, 0})) return;
        std::string qualified;
        for (const std::string& scope : scopes_) qualified += scope.empty() ? "" : scope + "::";
        qualified += name;
        if (std::ranges::find(found_, qualified) == found_.end()) found_.push_back(qualified);
    }

    void skip_one() {
        if (tokens_[at_].is("{")) return skip("{", "}");
        if (tokens_[at_].is("(")) return skip("(", ")");
        if (tokens_[at_].is("[")) return skip("[", "]");
        ++at_;
    }

    void skip(std::string_view open, std::string_view close) {
        int depth = 0;
        for (; tokens_[at_].kind != Token::Kind::end; ++at_) {
            if (tokens_[at_].is(open)) ++depth;
            if (tokens_[at_].is(close) && --depth == 0) {
                ++at_;
                return;
            }
        }
    }

    LexedText text_;
    std::vector<Token>& tokens_;
    std::size_t at_ = 0;
    std::vector<std::string> scopes_;
    std::vector<std::string> found_;
};

/// The mangled name of the managed variable that the text calls `name`; empty if not found.
std::string managed_name(const std::string& name, std::string_view ptx) {
    for (std::size_t at = ptx.find(".managed"); at != ptx.npos; at = ptx.find(".managed", at + 1)) {
        PtxTokens tokens(ptx.substr(ptx.rfind(".global", at)));
        std::string mangled(read_ptx_declaration(tokens, "=;").name);
        if (name_in_text(mangled) == name) return mangled;
    }
    return {};
}

}  // namespace

std::string name_in_image(const Variable& variable, std::string_view ptx) {
    if (variable.lowered_name.empty()) return managed_name(variable.name, ptx);
    if (!is_local(variable.lowered_name)) return variable.lowered_name;
    const std::string wanted = without_local_scopes(variable.lowered_name);
    for (std::size_t at = ptx.find("_ZN"); at != ptx.npos; at = ptx.find("_ZN", at)) {
        const std::string_view rest = ptx.substr(at);
        std::string name(rest.substr(0, rest.find_first_not_of(name_letters)));
        if (is_local(name) && without_local_scopes(name) == wanted) return name;
        at += name.size();
    }
    return variable.lowered_name;
}

std::string name_in_every_image(const std::string& lowered_name) {
    return without_local_scopes(lowered_name);
}

std::string name_in_text(const std::string& lowered_name) {
    if (lowered_name.starts_with("_ZZ")) return {};
    std::string name = readable_name(without_scopes(without_local_scopes(lowered_name)));
    return name.starts_with("_Z") ? std::string() : name;
}

bool has_variables(std::string_view ptx) noexcept {
    // A declaration begins with its state space; in instructions it follows other parts: "ld.global.u32".
    for (const std::string_view space : {".global", ".const"}) {
        for (std::size_t at = ptx.find(space); at != ptx.npos; at = ptx.find(space, at + 1)) {
            const char before = at == 0 ? '\n' : ptx[at - 1];
            const char after = at + space.size() < ptx.size() ? ptx[at + space.size()] : '\n';
            const bool in_instruction = name_letters.find(before) != name_letters.npos;
            const bool whole = name_letters.find(after) == name_letters.npos;
            if (whole && (!in_instruction || after != '.')) return true;
        }
    }
    return false;
}

std::vector<std::string> find_variables(std::string_view text) { return VariableFinder(text).find(); }

std::string qualified_variable(const std::string& name, const std::vector<std::string>& known,
                               const std::string& source_name) {
    const std::string_view base = std::string_view(name).substr(0, name.find('<'));
    std::vector<std::string> matches;
    for (const std::string& each : known) {
        if (each == base) return name;
        if (each.ends_with(base) && each.substr(0, each.size() - base.size()).ends_with("::"))
            matches.push_back(each);
    }
    if (matches.size() > 1) {
        throw CompileError(fmt::format("{} has several variables '{}': use a qualified name: {}.",
                                       source_name, base, fmt::join(matches, ", ")),
                           {.name_expression = name});
    }
    return matches.empty() ? name : matches[0] + name.substr(base.size());
}

}  // namespace bascule
