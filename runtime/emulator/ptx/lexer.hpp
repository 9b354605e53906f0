// Splits PTX text into tokens that point into it.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace emulated::ptx {

struct Token {
    enum class Kind : std::uint8_t {
        word,         ///< identifier, register, special register or whole opcode: `ld.global.f32`, `%tid.x`
        directive,    ///< begins with a dot and ends before the next one: `.reg`, `.b32`
        integer,      ///< value in `bits`
        floating,     ///< the bits of a double in `bits`
        float_bits,   ///< 0f...: the bits of a float in `bits`
        string,       ///< without its quotes
        punctuation,  ///< one character
        end,
    };
    Kind kind = Kind::end;
    std::uint32_t line = 0;
    std::string_view text;
    std::uint64_t bits = 0;

    bool is(std::string_view what) const noexcept { return kind != Kind::string && text == what; }
};

/// A syntax error, with its line. Caught by program::load.
struct SyntaxError : std::runtime_error {
    SyntaxError(std::uint32_t at_line, const std::string& message)
        : std::runtime_error(message), line(at_line) {}
    std::uint32_t line;
};

/// All tokens of `text`, the last one of kind `end`. They borrow `text`. Throws: SyntaxError.
std::vector<Token> tokenize(std::string_view text);

}  // namespace emulated::ptx
