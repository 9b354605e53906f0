#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include <bascule/interface/errors/wording.hpp>

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

std::string with_options(std::string text) {
    if (language_of_advice.load(std::memory_order_relaxed) == Language::python) return text;
    constexpr std::string_view python = "CompileOptions(";
    for (std::size_t at = text.find(python); at != text.npos; at = text.find(python, at + 1)) {
        const std::size_t end = text.find(')', at);
        const std::size_t equals = text.find('=', at);
        if (end == text.npos || equals > end) continue;
        text.replace(end, 1, "}");
        text.replace(equals, 1, " = ");
        text.replace(at + python.size() - 1, 1, "{.");
    }
    return text;
}

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

std::size_t edit_distance(std::string_view from, std::string_view to) {
    // Three rows of the usual table: a swap looks two rows back.
    std::vector<std::size_t> before(to.size() + 1), above(to.size() + 1), row(to.size() + 1);
    for (std::size_t j = 0; j <= to.size(); ++j) above[j] = j;
    for (std::size_t i = 1; i <= from.size(); ++i) {
        row[0] = i;
        for (std::size_t j = 1; j <= to.size(); ++j) {
            const std::size_t changed = above[j - 1] + (from[i - 1] == to[j - 1] ? 0 : 1);
            row[j] = std::min({above[j] + 1, row[j - 1] + 1, changed});
            if (i > 1 && j > 1 && from[i - 1] == to[j - 2] && from[i - 2] == to[j - 1]) {
                row[j] = std::min(row[j], before[j - 2] + 1);
            }
        }
        std::swap(before, above);
        std::swap(above, row);
    }
    return above[to.size()];
}

std::string nearest_name(std::string_view wanted, const std::vector<std::string>& names) {
    std::string nearest;
    std::size_t least = std::max<std::size_t>(2, wanted.size() / 3) + 1;
    for (const std::string& name : names) {
        const std::size_t distance = edit_distance(wanted, name);
        if (distance < least && distance < name.size()) {
            least = distance;
            nearest = name;
        }
    }
    return nearest;
}

std::string did_you_mean(std::string_view wanted, const std::vector<std::string>& names) {
    const std::string nearest = nearest_name(wanted, names);
    return nearest.empty() ? nearest : " Did you mean '" + nearest + "'?";
}

}  // namespace bascule
