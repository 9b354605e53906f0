#include <algorithm>
#include <array>
#include <cstdlib>
#include <cxxabi.h>
#include <memory>
#include <string_view>

#include <fmt/format.h>

#include <bascule/interface/error.hpp>
#include <bascule/jit/reflection.hpp>

namespace bascule {
namespace {

// --- A C++ type as the demangler writes it

/// `float const*`, `bascule::array_view<float const, 2>`: qualifiers stand behind what they qualify.
struct Type {
    std::string name;             ///< "float", "bascule::array_view"; empty for a pointer or reference
    std::vector<Type> arguments;  ///< of a template
    std::string literal;          ///< a template argument that is a value
    std::vector<Type> pointee;    ///< one for a pointer, none otherwise
    bool constant = false;
    bool is_function = false;  ///< pointers to functions and the like: not looked into

    bool is_pointer() const noexcept { return !pointee.empty(); }
};

/// Splits on commas outside every bracket.
std::vector<std::string_view> split(std::string_view text) {
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

bool drop_suffix(std::string_view& text, std::string_view suffix) {
    if (!text.ends_with(suffix)) return false;
    text.remove_suffix(suffix.size());
    while (text.ends_with(' ')) text.remove_suffix(1);
    return true;
}

/// cuda::std::__4::span -> cuda::std::span: the inline namespace is a version, not a name.
std::string without_inline_namespaces(std::string_view name) {
    std::string out;
    while (!name.empty()) {
        const std::size_t end = name.find("::");
        const std::string_view part = name.substr(0, end);
        const bool versioned =
            part.size() > 2 && part.starts_with("__") && part.find_first_not_of("0123456789", 2) == part.npos;
        if (!versioned) out += (out.empty() ? "" : "::") + std::string(part);
        name = end == name.npos ? std::string_view{} : name.substr(end + 2);
    }
    return out;
}

/// Where the template arguments that end `text` begin; npos where none do.
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

Type parse_type(std::string_view text) {
    while (text.ends_with(' ')) text.remove_suffix(1);
    Type type;
    if (drop_suffix(text, "&") || text.find("(*)") != text.npos || text.ends_with(")") ||
        text.ends_with("]")) {
        type.name = std::string(text);
        type.is_function = true;
        return type;
    }
    if (drop_suffix(text, "const")) {
        type = parse_type(text);
        type.constant = true;
        return type;
    }
    if (drop_suffix(text, "volatile") || drop_suffix(text, "__restrict")) return parse_type(text);
    if (drop_suffix(text, "*")) {
        type.pointee.push_back(parse_type(text));
        return type;
    }
    const std::size_t open = opening_bracket(text);
    if (open != text.npos) {
        for (std::string_view argument : split(text.substr(open + 1, text.size() - open - 2))) {
            const bool is_value =
                argument[0] == '(' || argument[0] == '-' || (argument[0] >= '0' && argument[0] <= '9');
            if (is_value) {
                Type value;
                value.literal = std::string(argument);
                type.arguments.push_back(std::move(value));
            } else {
                type.arguments.push_back(parse_type(argument));
            }
        }
        text = text.substr(0, open);
    }
    type.name = without_inline_namespaces(text);
    return type;
}

/// As a person writes it: `const float*`, `bascule::array_view<const float, 2>`.
std::string spell(const Type& type) {
    if (!type.literal.empty()) return type.literal;
    if (type.is_pointer()) return spell(type.pointee[0]) + (type.constant ? "* const" : "*");
    std::string text = type.constant ? "const " : "";
    text += type.name;
    if (!type.arguments.empty()) {
        text += "<";
        for (std::size_t i = 0; i < type.arguments.size(); ++i) {
            const bool default_rank =
                type.name == "bascule::array_view" && i == 1 && type.arguments[i].literal == "1";
            if (default_rank) continue;
            text += (i == 0 ? "" : ", ") + spell(type.arguments[i]);
        }
        text += ">";
    }
    return text;
}

// --- What an argument is checked against

struct ScalarRow {
    std::string_view name;
    DType dtype;
    bool bfloat16 = false;
    bool character = false;
};

using Kind = DType::Kind;

constexpr std::array scalars = {
    ScalarRow{"bool", {Kind::boolean, 1}},
    ScalarRow{"char", {Kind::signed_integer, 1}, false, true},
    ScalarRow{"signed char", {Kind::signed_integer, 1}},
    ScalarRow{"unsigned char", {Kind::unsigned_integer, 1}},
    ScalarRow{"short", {Kind::signed_integer, 2}},
    ScalarRow{"unsigned short", {Kind::unsigned_integer, 2}},
    ScalarRow{"int", {Kind::signed_integer, 4}},
    ScalarRow{"unsigned int", {Kind::unsigned_integer, 4}},
    ScalarRow{"long", {Kind::signed_integer, 8}},
    ScalarRow{"unsigned long", {Kind::unsigned_integer, 8}},
    ScalarRow{"long long", {Kind::signed_integer, 8}},
    ScalarRow{"unsigned long long", {Kind::unsigned_integer, 8}},
    ScalarRow{"wchar_t", {Kind::signed_integer, 4}},
    ScalarRow{"char16_t", {Kind::unsigned_integer, 2}},
    ScalarRow{"char32_t", {Kind::unsigned_integer, 4}},
    ScalarRow{"float", {Kind::floating, 4}},
    ScalarRow{"double", {Kind::floating, 8}},
    ScalarRow{"__half", {Kind::floating, 2}},
    ScalarRow{"__nv_bfloat16", {Kind::opaque, 2}, true},
};

/// Fills in dtype and its flags; false for a type that is none of the known ones.
bool name_element(const Type& type, ParameterType& out) {
    if (type.name == "cuda::std::complex" && type.arguments.size() == 1) {
        const std::string& part = type.arguments[0].name;
        if (part != "float" && part != "double") return false;
        out.dtype = {Kind::complex, part == "float" ? 8u : 16u};
        return true;
    }
    if (!type.arguments.empty()) return false;
    const auto row = std::find_if(scalars.begin(), scalars.end(),
                                  [&](const ScalarRow& each) { return each.name == type.name; });
    if (row == scalars.end()) return false;
    out.dtype = row->dtype;
    out.bfloat16 = row->bfloat16;
    out.character = row->character;
    return true;
}

void describe_elements(const Type& element, ParameterType& out) {
    out.constant = element.constant;
    if (element.name == "void") {
        out.any_element = true;
    } else if (element.is_pointer() || !name_element(element, out)) {
        out.opaque_element = true;
    } else {
        out.alignment = out.bfloat16 ? 2 : out.dtype.alignment();
    }
}

ParameterType describe_parameter(const Type& type) {
    ParameterType out;
    if (type.is_pointer()) {
        out.kind = ParameterType::Kind::pointer;
        describe_elements(type.pointee[0], out);
    } else if (type.name == "bascule::array_view" && type.arguments.size() == 2) {
        out.kind = ParameterType::Kind::array_view;
        out.rank = std::atoi(type.arguments[1].literal.c_str());
        describe_elements(type.arguments[0], out);
    } else if (!type.is_function && name_element(type, out)) {
        out.kind = ParameterType::Kind::scalar;
        out.alignment = out.bfloat16 ? 2 : out.dtype.alignment();
    }
    return out;
}

// --- The reflected name

std::string demangle(const std::string& name) {
    int status = 0;
    const std::unique_ptr<char, void (*)(void*)> text(
        abi::__cxa_demangle(name.c_str(), nullptr, nullptr, &status), std::free);
    return status == 0 && text != nullptr ? std::string(text.get()) : std::string();
}

/// The text between `open` and the parenthesis that closes it.
std::string_view inside_parentheses(std::string_view text, std::size_t open) {
    int depth = 0;
    for (std::size_t i = open; i < text.size(); ++i) {
        if (text[i] == '(') ++depth;
        if (text[i] == ')' && --depth == 0) return text.substr(open + 1, i - open - 1);
    }
    return {};
}

std::vector<std::uint32_t> read_values(std::string_view demangled) {
    static constexpr std::string_view start = "bascule::values<";
    const std::size_t at = demangled.rfind(start);
    if (at == demangled.npos) return {};
    const std::size_t begin = at + start.size();
    std::vector<std::uint32_t> values;
    for (std::string_view part : split(demangled.substr(begin, demangled.find('>', begin) - begin))) {
        values.push_back(static_cast<std::uint32_t>(std::strtoul(std::string(part).c_str(), nullptr, 10)));
    }
    return values;
}

}  // namespace

std::string signature_expression(const std::string& kernel) {
    // A cast that picks an overload is a pointer already.
    const char* address = kernel.starts_with("static_cast<") ? "" : "&";
    return fmt::format("bascule::signature<decltype({}{})>", address, kernel);
}

Signature read_signature(const std::string& lowered_name, const std::string& kernel,
                         const std::vector<std::string>& names) {
    static constexpr std::string_view start = "void bascule::signature<void (*)(";
    const std::string demangled = demangle(lowered_name);
    if (!demangled.starts_with(start)) {
        throw Error(
            fmt::format("cannot read the parameters of kernel '{}': NVRTC called its signature '{}' ({}). "
                        "Please report this "
                        "with your NVRTC's version.",
                        kernel, lowered_name, demangled));
    }
    const std::vector<std::string_view> types = split(inside_parentheses(demangled, start.size() - 1));
    const std::vector<std::uint32_t> layout = read_values(demangled);
    if (layout.size() != 2 * types.size()) {
        throw Error(fmt::format(
            "cannot read the parameter sizes of kernel '{}' from '{}'. Please report this with your NVRTC's "
            "version.",
            kernel, demangled));
    }
    Signature signature;
    signature.kernel = kernel;
    for (std::size_t i = 0; i < types.size(); ++i) {
        const Type type = parse_type(types[i]);
        Parameter parameter;
        parameter.name = i < names.size() && !names[i].empty() ? names[i] : fmt::format("arg{}", i + 1);
        parameter.spelling = spell(type);
        parameter.type = describe_parameter(type);
        parameter.bytes = layout[i];
        parameter.alignment = layout[types.size() + i];
        signature.parameters.push_back(std::move(parameter));
    }
    lay_out(signature);
    return signature;
}

Signature read_signature(const KernelImage& kernel) {
    // An instance is called as it was asked for; a cast that picks an overload is no name.
    const bool is_instance = kernel.expression.starts_with(kernel.name);
    return read_signature(kernel.reflected, is_instance ? kernel.expression : kernel.name,
                          kernel.parameter_names);
}

}  // namespace bascule
