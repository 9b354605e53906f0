#include <algorithm>
#include <array>
#include <charconv>

#include <fmt/format.h>

#include <bascule/jit/variables/ptx_text.hpp>

namespace bascule {
namespace {

std::uint64_t number_of(std::string_view word) noexcept {
    std::uint64_t value = 0;
    std::from_chars(word.data(), word.data() + word.size(), value);
    return value;
}

/// 1 for ".b8", 8 for ".f64"; 0 for other directives.
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

}  // namespace

void PtxTokens::skip_brackets(char open, char close) {
    int depth = 0;
    while (!at_end()) {
        const std::string_view token = take();
        if (token.size() == 1 && token[0] == open) ++depth;
        if (token.size() == 1 && token[0] == close && --depth == 0) return;
    }
}

void PtxTokens::next() {
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
            } else if (is_ptx_word(c)) {
                while (at_ + length < text_.size() && is_ptx_word(text_[at_ + length])) ++length;
            }
            current_ = text_.substr(at_, length);
            at_ += length;
            return;
        }
    }
}

PtxDeclaration read_ptx_declaration(PtxTokens& tokens, std::string_view ends) {
    static constexpr std::array<std::string_view, 6> spaces = {".global", ".const", ".shared",
                                                               ".local",  ".param", ".tex"};
    PtxDeclaration declared;
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
            // After `.ptr`, `.align` is the alignment of the pointee.
            const auto alignment = static_cast<std::uint32_t>(number_of(tokens.take()));
            if (!declared.is_pointer) declared.alignment = alignment;
        } else if (token == ".v2" || token == ".v4") {
            declared.elements *= token == ".v2" ? 2 : 4;
        } else if (token == ".ptr") {
            declared.is_pointer = true;
        } else if (const std::uint32_t bytes = bytes_of_type(token); bytes != 0) {
            declared.type = token;
            declared.element_bytes = bytes;
        } else if (is_ptx_name(token) && declared.name.empty() && declared.element_bytes != 0) {
            declared.name = token;
        }
    }
    return declared;
}

}  // namespace bascule
