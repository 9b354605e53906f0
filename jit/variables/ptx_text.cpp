#include <algorithm>
#include <array>
#include <charconv>
#include <cstdlib>

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

/// The statement that declares `variable`, up to its semicolon; empty if not found.
std::string_view statement_of(std::string_view ptx, std::string_view variable) {
    for (std::size_t at = ptx.find(variable); at != ptx.npos; at = ptx.find(variable, at + 1)) {
        const std::size_t end = at + variable.size();
        if (at == 0 || ptx[at - 1] != ' ' || end >= ptx.size() || is_ptx_word(ptx[end])) continue;
        const std::size_t line = ptx.rfind('\n', at) + 1;
        if (ptx.substr(line, at - line).find(".global") == std::string_view::npos) continue;
        const std::size_t semicolon = ptx.find(';', end);
        return semicolon == ptx.npos ? std::string_view() : ptx.substr(line, semicolon - line);
    }
    return {};
}

/// Parses `5`, `0x1F`, `7U`, optionally with a minus sign; nothing for other tokens.
std::optional<std::uint64_t> read_integer(PtxTokens& tokens) {
    const bool negative = tokens.is("-");
    if (negative) tokens.take();
    const std::string text(tokens.current());
    if (text.empty() || text[0] < '0' || text[0] > '9') return std::nullopt;
    tokens.take();
    char* end = nullptr;
    const std::uint64_t value = std::strtoull(text.c_str(), &end, 0);
    if (*end != '\0' && std::string_view(end) != "U") return std::nullopt;
    return negative ? -value : value;
}

/// Parses `generic(symbol)+8` or `symbol`; nothing for other tokens.
std::optional<InitialValue::Address> read_address(PtxTokens& tokens) {
    const bool generic = tokens.is("generic");
    if (generic) tokens.take();
    if (generic && tokens.take() != "(") return std::nullopt;
    if (!is_ptx_name(tokens.current())) return std::nullopt;
    InitialValue::Address address;
    address.symbol = tokens.take();
    if (generic && tokens.take() != ")") return std::nullopt;
    if (tokens.is("+")) tokens.take();
    const bool has_addend = !tokens.at_end() && !tokens.is(",") && !tokens.is("}");
    const std::optional<std::uint64_t> addend = has_addend ? read_integer(tokens) : 0;
    if (!addend) return std::nullopt;
    address.addend = static_cast<std::int64_t>(*addend);
    return address;
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

std::uint64_t InitialValue::integer(std::size_t offset, std::size_t width) const noexcept {
    std::uint64_t value = 0;
    for (std::size_t i = 0; i < width; ++i) value |= std::uint64_t{bytes[offset + i]} << (8 * i);
    return value;
}

std::optional<InitialValue> initial_value(std::string_view ptx, std::string_view variable) {
    PtxTokens tokens(statement_of(ptx, variable));
    const PtxDeclaration declared = read_ptx_declaration(tokens, "=");
    const std::uint32_t width = declared.element_bytes;
    if (width == 0 || width > 8 || declared.elements == 0 || declared.elements >= (1U << 20))
        return std::nullopt;
    InitialValue initial;
    initial.bytes.resize(declared.bytes());
    tokens.take();  // "=", or the end of the statement
    if (tokens.is("{")) tokens.take();
    for (std::uint32_t offset = 0; !tokens.at_end() && !tokens.is("}"); offset += width) {
        if (offset > 0 && tokens.take() != ",") return std::nullopt;
        if (offset + width > initial.bytes.size()) return std::nullopt;
        if (const auto integer = read_integer(tokens)) {
            for (std::uint32_t i = 0; i < width; ++i)
                initial.bytes[offset + i] = static_cast<std::uint8_t>(*integer >> (8 * i));
        } else if (auto address = width == 8 ? read_address(tokens) : std::nullopt) {
            address->offset = offset;
            initial.addresses.push_back(*std::move(address));
        } else {
            return std::nullopt;
        }
    }
    return initial;
}

}  // namespace bascule
