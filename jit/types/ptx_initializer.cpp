// Source: the PTX ISA, "Variable Declarations" and "Initializers".
#include <cstdlib>

#include <bascule/jit/types/demangled_type.hpp>
#include <bascule/jit/types/ptx_initializer.hpp>

namespace bascule {
namespace {

/// `.global .align 8 .u64 name[2] = {generic(target), 5};` in its parts.
struct Declaration {
    std::uint32_t element_bytes = 0;
    std::uint64_t count = 1;
    std::string_view values;  ///< between the braces; empty where there is no initialiser
};

bool is_name_character(char c) noexcept {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '$';
}

/// The statement that declares `variable`, up to its semicolon; empty when there is none.
std::string_view statement_of(std::string_view ptx, std::string_view variable, std::size_t& name_at) {
    for (std::size_t at = ptx.find(variable); at != ptx.npos; at = ptx.find(variable, at + 1)) {
        const std::size_t end = at + variable.size();
        if (at == 0 || ptx[at - 1] != ' ' || end >= ptx.size() || is_name_character(ptx[end])) continue;
        const std::size_t line = ptx.rfind('\n', at) + 1;
        if (ptx.substr(line, at - line).find(".global") == std::string_view::npos) continue;
        const std::size_t semicolon = ptx.find(';', end);
        if (semicolon == ptx.npos) return {};
        name_at = at - line;
        return ptx.substr(line, semicolon - line);
    }
    return {};
}

/// Of ".u64", ".b8", ".f32": the bits that its name ends with, in bytes.
std::uint32_t bytes_of_type(std::string_view head) {
    while (head.ends_with(' ')) head.remove_suffix(1);
    const std::size_t digits = head.find_last_not_of("0123456789");
    if (digits == head.npos || digits + 1 == head.size()) return 0;
    return static_cast<std::uint32_t>(std::atoi(std::string(head.substr(digits + 1)).c_str())) / 8;
}

std::optional<Declaration> parse_declaration(std::string_view statement, std::size_t name_at,
                                             std::size_t name_size) {
    Declaration declaration;
    declaration.element_bytes = bytes_of_type(statement.substr(0, name_at));
    std::string_view rest = statement.substr(name_at + name_size);
    if (rest.starts_with('[')) {
        declaration.count = std::strtoull(std::string(rest.substr(1)).c_str(), nullptr, 10);
        rest.remove_prefix(std::min(rest.find(']') + 1, rest.size()));
    }
    const std::size_t equals = rest.find('=');
    if (equals != rest.npos) {
        rest.remove_prefix(equals + 1);
        while (rest.starts_with(' ')) rest.remove_prefix(1);
        if (rest.starts_with('{') && rest.ends_with('}')) rest = rest.substr(1, rest.size() - 2);
        declaration.values = rest;
    }
    const bool known = declaration.element_bytes > 0 && declaration.element_bytes <= 8 &&
                       declaration.count > 0 && declaration.count < (1u << 20);
    return known ? std::optional(declaration) : std::nullopt;
}

/// `generic(symbol)+8`, `symbol`: an address. False for anything else.
bool read_address(std::string_view value, InitialValue::Address& address) {
    static constexpr std::string_view generic = "generic(";
    std::string_view symbol = value;
    if (value.starts_with(generic)) {
        const std::size_t close = value.find(')');
        if (close == value.npos) return false;
        symbol = value.substr(generic.size(), close - generic.size());
        value.remove_prefix(close + 1);
    } else {
        const std::size_t plus = value.find('+');
        symbol = value.substr(0, plus);
        value.remove_prefix(symbol.size());
    }
    if (symbol.empty() || !is_name_character(symbol[0]) || (symbol[0] >= '0' && symbol[0] <= '9'))
        return false;
    address.symbol = std::string(symbol);
    if (value.empty()) return true;
    if (value[0] != '+' && value[0] != '-') return false;
    char* end = nullptr;
    const std::string text(value);
    address.addend = std::strtoll(text.c_str(), &end, 10);
    return *end == '\0';
}

bool read_integer(std::string_view value, std::uint64_t& out) {
    const std::string text(value);
    char* end = nullptr;
    out = text.starts_with('-') ? static_cast<std::uint64_t>(std::strtoll(text.c_str(), &end, 0))
                                : std::strtoull(text.c_str(), &end, 0);
    return !text.empty() && (*end == '\0' || std::string_view(end) == "U");
}

}  // namespace

std::uint64_t InitialValue::integer(std::size_t offset, std::size_t width) const noexcept {
    std::uint64_t value = 0;
    for (std::size_t i = 0; i < width; ++i) value |= std::uint64_t{bytes[offset + i]} << (8 * i);
    return value;
}

std::optional<InitialValue> initial_value(std::string_view ptx, std::string_view variable) {
    std::size_t name_at = 0;
    const std::string_view statement = statement_of(ptx, variable, name_at);
    if (statement.empty()) return std::nullopt;
    const std::optional<Declaration> declaration = parse_declaration(statement, name_at, variable.size());
    if (!declaration) return std::nullopt;

    InitialValue initial;
    initial.bytes.resize(declaration->count * declaration->element_bytes);
    std::size_t offset = 0;
    for (std::string_view value : split_list(declaration->values)) {
        if (offset + declaration->element_bytes > initial.bytes.size()) return std::nullopt;
        InitialValue::Address address;
        std::uint64_t integer = 0;
        if (read_integer(value, integer)) {
            for (std::size_t i = 0; i < declaration->element_bytes; ++i) {
                initial.bytes[offset + i] = static_cast<std::uint8_t>(integer >> (8 * i));
            }
        } else if (declaration->element_bytes == 8 && read_address(value, address)) {
            address.offset = static_cast<std::uint32_t>(offset);
            initial.addresses.push_back(std::move(address));
        } else {
            return std::nullopt;
        }
        offset += declaration->element_bytes;
    }
    return initial;
}

}  // namespace bascule
