// Source: the PTX ISA, "Variable Declarations" and "Initializers".
#include <cstdlib>

#include <bascule/jit/variables/ptx_initializer.hpp>
#include <bascule/jit/variables/ptx_text.hpp>

namespace bascule {
namespace {

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
