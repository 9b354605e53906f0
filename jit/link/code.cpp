#include <algorithm>
#include <array>

#include <bascule/jit/link/code.hpp>

namespace bascule {
namespace {

using namespace std::string_view_literals;

struct Beginning {
    std::string_view bytes;
    CodeKind kind;
};
constexpr std::array beginnings = {
    Beginning{"\x7f"
              "ELF"sv,
              CodeKind::cubin},
    Beginning{"\xed\x43\x4e\x7f"sv, CodeKind::lto_ir}, Beginning{"\x50\xed\x55\xba"sv, CodeKind::fat_binary},
    Beginning{"\xb1\x43\x62\x46"sv, CodeKind::fat_binary},  // nvcc's wrapper around one
};

/// The text after leading white space and comments.
std::string_view without_comments(std::string_view text) noexcept {
    while (true) {
        text.remove_prefix(std::min(text.find_first_not_of(" \t\r\n"), text.size()));
        const bool line = text.starts_with("//");
        if (!line && !text.starts_with("/*")) return text;
        const std::size_t end = line ? text.find('\n') : text.find("*/", 2);
        if (end == text.npos) return {};
        text.remove_prefix(end + (line ? 1 : 2));
    }
}

}  // namespace

CodeKind kind_of_code(std::string_view bytes) noexcept {
    for (const Beginning& each : beginnings) {
        if (bytes.starts_with(each.bytes)) return each.kind;
    }
    return without_comments(bytes).starts_with(".version") ? CodeKind::ptx : CodeKind::unknown;
}

const char* to_string(CodeKind kind) noexcept {
    static constexpr const char* names[] = {"PTX", "a cubin", "LTO-IR", "a fat binary", "no code of CUDA's"};
    return names[static_cast<std::size_t>(kind)];
}

}  // namespace bascule
