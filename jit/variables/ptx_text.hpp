// Splits PTX text into tokens, reads its declarations, and the initial bytes of global variables, by which probes report
// layouts. Source: the PTX ISA, "Lexical Elements", "Variable Declarations" and "Initializers".
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

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

/// The bytes of a variable before any kernel has run; 0 at the places of addresses.
struct InitialValue {
    struct Address {
        std::uint32_t offset = 0;  ///< in the variable
        std::string symbol;
        std::int64_t addend = 0;  ///< bytes after the symbol
    };
    std::vector<std::uint8_t> bytes;
    std::vector<Address> addresses;

    std::uint64_t integer(std::size_t offset, std::size_t width) const noexcept;  ///< little-endian
};

/// Returns nothing if the text has no such variable, or its declaration has an unknown form.
std::optional<InitialValue> initial_value(std::string_view ptx, std::string_view variable);

}  // namespace bascule
