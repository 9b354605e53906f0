#include <cstddef>

#include <fmt/format.h>

#include <bascule/interface/errors/shortened.hpp>

namespace bascule {
namespace {

/// The number of bytes of the printable UTF-8 character that `text` begins with; 0 if it must be escaped. Invalid UTF-8
/// would make the conversion of the exception to Python fail.
std::size_t printable_length(std::string_view text) noexcept {
    const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
    if (byte(0) < 0x80) return byte(0) < 0x20 || byte(0) == 0x7F ? 0 : 1;
    const std::size_t length = byte(0) >= 0xF0 ? 4 : byte(0) >= 0xE0 ? 3 : 2;
    if (byte(0) < 0xC2 || byte(0) > 0xF4 || text.size() < length) return 0;
    for (std::size_t i = 1; i < length; ++i) {
        if ((byte(i) & 0xC0) != 0x80) return 0;
    }
    // Overlong forms, surrogates, characters beyond U+10FFFF, and the control characters U+0080 to U+009F.
    const bool bad = (byte(0) == 0xE0 && byte(1) < 0xA0) || (byte(0) == 0xED && byte(1) > 0x9F) ||
                     (byte(0) == 0xF0 && byte(1) < 0x90) || (byte(0) == 0xF4 && byte(1) > 0x8F) ||
                     (byte(0) == 0xC2 && byte(1) < 0xA0);
    return bad ? 0 : length;
}

}  // namespace

std::string shortened(std::string_view text) {
    static constexpr std::size_t longest = 60;
    std::string out;
    std::size_t at = 0;
    for (std::size_t shown = 0; at < text.size() && shown < longest; ++shown) {
        const std::size_t length = printable_length(text.substr(at));
        if (length == 0) {
            out += fmt::format("\\x{:02x}", static_cast<unsigned char>(text[at]));
            ++at;
            continue;
        }
        if (text[at] == '"' || text[at] == '\\') out += '\\';
        out += text.substr(at, length);
        at += length;
    }
    if (at < text.size()) out += "...";
    return out;
}

}  // namespace bascule
