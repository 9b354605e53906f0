#include <algorithm>

#include <bascule/jit/signatures/demangled_type.hpp>

namespace bascule {
namespace {

constexpr std::string_view dynamic_extent = "18446744073709551615";

bool drop_suffix(std::string_view& text, std::string_view suffix) {
    if (!text.ends_with(suffix)) return false;
    text.remove_suffix(suffix.size());
    while (text.ends_with(' ')) text.remove_suffix(1);
    return true;
}

constexpr std::string_view digits = "0123456789";

/// Whether the component is not written in a text: inline namespaces are versions (cuda::std::__4::span), and unnamed
/// namespaces have no name.
bool is_no_name(std::string_view part) {
    const bool numbered =
        part.size() > 2 && part.starts_with("__") && part.find_first_not_of(digits, 2) == part.npos;
    return numbered || part == "(anonymous namespace)";
}

/// Recognises CCCL's inline namespaces, which change with each release, by their form: reserved names and macro names
/// that contain a number. THRUST_300101_SM_800_NS, _V_300500_SM_800, __version_bump_ver4_.
bool is_version_of_cccl(std::string_view part) {
    if (part.find_first_of(digits) == part.npos) return false;
    return part.starts_with("_V_") || part.starts_with("__version") ||
           (part.ends_with("_NS") && part.find_first_of("abcdefghijklmnopqrstuvwxyz") == part.npos);
}

std::string without_inline_namespaces(std::string_view name) {
    const std::string_view root = name.substr(0, name.find("::"));
    const bool is_cccl = root == "cuda" || root == "thrust" || root == "cub";
    std::string out;
    while (!name.empty()) {
        const std::size_t end = name.find("::");
        const std::string_view part = name.substr(0, end);
        if (!is_no_name(part) && !(is_cccl && is_version_of_cccl(part)))
            out += (out.empty() ? "" : "::") + std::string(part);
        name = end == name.npos ? std::string_view{} : name.substr(end + 2);
    }
    return out;
}

/// The position of the "<" that matches the ">" at the end of `text`; npos if `text` ends otherwise.
std::size_t opening_bracket(std::string_view text) {
    if (!text.ends_with('>')) return text.npos;
    int depth = 0;
    for (std::size_t i = text.size(); i-- > 0;) {
        if (text[i] == '>' || text[i] == ')') ++depth;
        if (text[i] == '(') --depth;
        if (text[i] == '<' && --depth == 0) return i;
    }
    return text.npos;
}

/// "4ul" -> "4", "(unsigned char)7" unchanged; empty for text that is not a value.
std::string literal_of(std::string_view text) {
    std::string_view digits = text;
    if (text.starts_with('(') && !text.starts_with("(anonymous namespace)")) {
        digits.remove_prefix(std::min(text.find(')') + 1, text.size()));
    }
    if (digits.empty() || (digits[0] != '-' && (digits[0] < '0' || digits[0] > '9'))) return {};
    while (text.ends_with('u') || text.ends_with('l')) text.remove_suffix(1);
    return std::string(text);
}

DemangledType closed(std::string_view text, bool is_function) {
    DemangledType type;
    type.name = std::string(text);
    type.is_function = is_function;
    type.is_closed = true;
    return type;
}

bool is_default_argument(const DemangledType& type, std::size_t index) {
    const DemangledType& argument = type.arguments[index];
    if (type.name == "bascule::array_view" || type.name == "bascule::masked_view")
        return index == 1 && argument.literal == "1";
    if (type.name == "cuda::std::span") return index == 1 && argument.literal == dynamic_extent;
    if (type.name != "cuda::std::mdspan") return false;
    if (index == 3) return argument.name == "cuda::std::default_accessor";
    return index == 2 && argument.name == "cuda::std::layout_right" &&
           (type.arguments.size() < 4 || is_default_argument(type, 3));
}

}  // namespace

std::vector<std::string_view> split_list(std::string_view text) {
    std::vector<std::string_view> parts;
    int depth = 0;
    std::size_t start = 0;
    for (std::size_t i = 0; i < text.size(); ++i) {
        const char c = text[i];
        if (c == '<' || c == '(' || c == '[') ++depth;
        if (c == '>' || c == ')' || c == ']') --depth;
        if (c == ',' && depth == 0) {
            parts.push_back(text.substr(start, i - start));
            start = i + 1;
        }
    }
    if (!text.empty()) parts.push_back(text.substr(start));
    for (std::string_view& part : parts) {
        part.remove_prefix(std::min(part.find_first_not_of(' '), part.size()));
        part.remove_suffix(part.size() - 1 - std::min(part.find_last_not_of(' '), part.size() - 1));
    }
    return parts;
}

DemangledType parse_type(std::string_view text) {
    while (text.ends_with(' ')) text.remove_suffix(1);
    const bool to_function = text.find("(*)(") != text.npos || text.find("(&)(") != text.npos;
    if (to_function || (text.ends_with(')') && !text.starts_with("decltype"))) return closed(text, true);
    if (text.ends_with('&') || text.ends_with("::*") || text.ends_with(')') || text.ends_with(']')) {
        return closed(text, false);
    }
    DemangledType type;
    if (drop_suffix(text, " const")) {
        type = parse_type(text);
        type.constant = true;
        return type;
    }
    if (drop_suffix(text, " volatile")) {
        type = parse_type(text);
        type.is_volatile = true;
        return type;
    }
    if (drop_suffix(text, " restrict") || drop_suffix(text, "__restrict")) return parse_type(text);
    if (drop_suffix(text, "*")) {
        type.pointee.push_back(parse_type(text));
        return type;
    }
    const std::size_t open = opening_bracket(text);
    if (open != text.npos) {
        for (std::string_view argument : split_list(text.substr(open + 1, text.size() - open - 2))) {
            if (std::string value = literal_of(argument); !value.empty()) {
                type.arguments.emplace_back().literal = std::move(value);
            } else {
                type.arguments.push_back(parse_type(argument));
            }
        }
        text = text.substr(0, open);
    }
    type.name = without_inline_namespaces(text);
    return type;
}

std::string spell(const DemangledType& type) {
    if (type.literal == dynamic_extent) return "cuda::std::dynamic_extent";
    if (!type.literal.empty()) return type.literal;
    if (const std::size_t rows = type.name.find(" (*) ["); type.is_closed && rows != type.name.npos) {
        return spell(parse_type(std::string_view(type.name).substr(0, rows))) + " (*)" +
               type.name.substr(rows + 5);
    }
    const std::string qualifiers =
        std::string(type.constant ? "const " : "") + (type.is_volatile ? "volatile " : "");
    if (type.is_pointer()) {
        std::string text = spell(type.pointee[0]) + "*";
        if (type.constant) text += " const";
        if (type.is_volatile) text += " volatile";
        return text;
    }
    std::string text = qualifiers + type.name;
    const char* separator = "<";
    for (std::size_t i = 0; i < type.arguments.size(); ++i) {
        if (is_default_argument(type, i)) continue;
        text += separator + spell(type.arguments[i]);
        separator = ", ";
    }
    return text + (*separator == ',' ? ">" : "");
}

}  // namespace bascule
