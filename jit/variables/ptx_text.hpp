// Splits PTX text into tokens and reads its declarations. Source: the PTX ISA, "Lexical Elements" and "Variable
// Declarations".
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace bascule {

/// Whether this character can continue a name, a number or a directive.
constexpr bool is_ptx_word(char c) noexcept {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '$' || c == '%' || c == '.' || c == ':';
}
constexpr bool is_ptx_directive(std::string_view word) noexcept { return word.starts_with('.'); }
constexpr bool is_ptx_name(std::string_view word) noexcept {
    return !word.empty() && is_ptx_word(word[0]) && !is_ptx_directive(word) &&
           (word[0] < '0' || word[0] > '9');
}

/// The words, strings and single characters of a text; skips comments.
class PtxTokens {
  public:
    explicit PtxTokens(std::string_view text) : text_(text) { next(); }

    std::string_view current() const noexcept { return current_; }  ///< empty at the end
    bool at_end() const noexcept { return current_.empty(); }
    bool is(std::string_view token) const noexcept { return current_ == token; }

    std::string_view take() {
        const std::string_view taken = current_;
        next();
        return taken;
    }
    /// Moves past the bracket that closes the current one.
    void skip_brackets(char open, char close);
    void skip_until(std::string_view token) {
        while (!at_end() && take() != token) {
        }
    }

  private:
    void next();

    std::string_view text_;
    std::size_t at_ = 0;
    std::string_view current_;
};

/// The declaration of a variable or a parameter: `.global .align 4 .v2 .f32 name[2][3]`.
struct PtxDeclaration {
    std::string_view name;
    std::string_view type;
    std::string_view space;
    std::uint32_t element_bytes = 0;
    std::uint32_t alignment = 0;  ///< 0: the alignment of the type
    std::uint64_t elements = 1;
    bool is_array = false;
    bool is_pointer = false;  ///< .ptr

    std::uint64_t bytes() const noexcept { return element_bytes * elements; }
};

/// Reads a declaration up to one of the tokens in `ends`, which it does not take. Does not read initial values.
PtxDeclaration read_ptx_declaration(PtxTokens& tokens, std::string_view ends);

}  // namespace bascule
