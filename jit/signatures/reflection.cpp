#include <cstdlib>

#include <fmt/format.h>

#include <bascule/interface/errors/error.hpp>
#include <bascule/jit/signatures/demangle.hpp>
#include <bascule/jit/signatures/described_parameter.hpp>
#include <bascule/jit/signatures/reflection.hpp>

namespace bascule {
namespace {

// --- The reflected name

/// The text between `open` and the parenthesis that closes it.
std::string_view inside_parentheses(std::string_view text, std::size_t open) {
    int depth = 0;
    for (std::size_t i = open; i < text.size(); ++i) {
        if (text[i] == '(') ++depth;
        if (text[i] == ')' && --depth == 0) return text.substr(open + 1, i - open - 1);
    }
    return {};
}

/// The facts of all parameters, followed by those of all parameters' elements.
std::vector<TypeFacts> read_facts(std::string_view demangled) {
    static constexpr std::string_view start = "bascule::values<";
    std::vector<TypeFacts> facts;
    const std::size_t layouts = demangled.rfind("bascule::layouts<");
    if (layouts == demangled.npos) return facts;
    for (std::size_t at = demangled.find(start, layouts); at != demangled.npos;
         at = demangled.find(start, at + 1)) {
        const std::size_t begin = at + start.size();
        const std::vector<std::string_view> parts =
            split_list(demangled.substr(begin, demangled.find('>', begin) - begin));
        if (parts.size() != 3) return {};
        std::array<unsigned long, 3> numbers{};
        for (std::size_t i = 0; i < 3; ++i) {
            numbers[i] = std::strtoul(std::string(parts[i]).c_str(), nullptr, 10);
        }
        if (numbers[2] > static_cast<unsigned long>(TypeForm::unknown)) return {};
        facts.push_back({static_cast<std::uint32_t>(numbers[0]), static_cast<std::uint32_t>(numbers[1]),
                         static_cast<TypeForm>(numbers[2])});
    }
    return facts;
}

using Kind = ParameterType::Kind;

// --- Code that was compiled elsewhere

/// The facts of the elements of a pointer or a view; `bytes` is 0 for other types.
TypeFacts element_facts(const DemangledType& type) {
    if (type.is_pointer()) return facts_of_name(type.pointee[0]);
    return type.arguments.empty() ? TypeFacts{} : facts_of_name(type.arguments[0]);
}

ParameterType untyped(const CodeParameter& code) {
    ParameterType type;
    type.kind = Kind::untyped;
    type.element_kind = ParameterType::Element::any;
    type.dtype = {DType::Kind::opaque, code.bytes};
    return type;
}

bool has_size_of_number(std::uint32_t bytes) noexcept {
    return bytes == 1 || bytes == 2 || bytes == 4 || bytes == 8;
}

/// The type of a parameter for which only the code is known.
ParameterType describe_code(const CodeParameter& code) {
    ParameterType type = untyped(code);
    switch (code.type) {
        case CodeParameter::Type::floating:
            type.kind = Kind::scalar;
            type.element_kind = ParameterType::Element::named;
            type.dtype = {DType::Kind::floating, code.bytes};
            break;
        case CodeParameter::Type::pointer:
            type.kind = Kind::pointer;
            break;
        case CodeParameter::Type::bytes:
            type.kind = Kind::structure;
            type.element_kind = ParameterType::Element::named;
            break;
        case CodeParameter::Type::unknown:
            if (has_size_of_number(code.bytes)) break;
            type.kind = Kind::structure;
            type.element_kind = ParameterType::Element::named;
            break;
    }
    type.alignment = code.alignment;
    return type;
}

std::string spell_code(const ParameterType& type, std::uint32_t bytes) {
    switch (type.kind) {
        case Kind::scalar:
            return bytes == 4 ? "float" : "double";
        case Kind::pointer:
            return "void*";
        default:
            return fmt::format("{} byte{}", bytes, bytes == 1 ? "" : "s");
    }
}

bool is_own_or_cccl_view(const DemangledType& type) {
    return type.name == "bascule::array_view" || type.name == "bascule::masked_view" ||
           type.name == "cuda::std::span" || type.name == "cuda::std::mdspan";
}

Parameter read_parameter(const DemangledType* type, const CodeParameter& code) {
    Parameter parameter;
    parameter.bytes = code.bytes;
    parameter.alignment = code.alignment;
    const TypeFacts named = type == nullptr ? TypeFacts{} : facts_of_name(*type);
    if (named.bytes == code.bytes || (type != nullptr && is_own_or_cccl_view(*type))) {
        parameter.type =
            describe_parameter(*type, {code.bytes, code.alignment, named.form}, element_facts(*type));
        // If only the name of a class is known, any array is accepted, as for void*.
        ParameterType& made = parameter.type;
        if (takes_arrays(made) && made.element_kind == ParameterType::Element::opaque &&
            made.dtype.itemsize == 0)
            made.element_kind = ParameterType::Element::any;
    } else {
        parameter.type = describe_code(code);
    }
    if (type == nullptr) {
        parameter.spelling = spell_code(parameter.type, code.bytes);
        parameter.type.element = parameter.spelling;
    } else {
        parameter.spelling = spell(*type);
        if (parameter.type.element.empty()) parameter.type.element = parameter.spelling;
    }
    return parameter;
}

}  // namespace

std::string signature_expression(const std::string& kernel) {
    // A cast that selects an overload is a pointer already.
    const char* address = kernel.starts_with("static_cast<") ? "" : "&";
    return fmt::format("bascule::signature<decltype({}{})>", address, kernel);
}

Signature read_signature(const std::string& lowered_name, const std::string& kernel,
                         const std::vector<std::string>& names) {
    static constexpr std::string_view start = "void bascule::signature<void (*)(";
    const std::string demangled = demangle(lowered_name);
    if (!demangled.starts_with(start)) {
        throw Error(
            fmt::format("cannot read the parameters of kernel '{}': NVRTC named its signature '{}' ({}). "
                        "Please report this with your NVRTC's version.",
                        kernel, lowered_name, demangled));
    }
    const std::vector<std::string_view> types = split_list(inside_parentheses(demangled, start.size() - 1));
    const std::vector<TypeFacts> facts = read_facts(demangled);
    if (facts.size() != 2 * types.size()) {
        throw Error(
            fmt::format("cannot read the parameter sizes of kernel '{}' from '{}'. Please report this with "
                        "your NVRTC's version.",
                        kernel, demangled));
    }
    Signature signature;
    signature.kernel = kernel;
    for (std::size_t i = 0; i < types.size(); ++i) {
        const DemangledType type = parse_type(types[i]);
        Parameter parameter;
        parameter.name = i < names.size() && !names[i].empty() ? names[i] : fmt::format("arg{}", i + 1);
        parameter.spelling = spell(type);
        parameter.type = describe_parameter(type, facts[i], facts[types.size() + i]);
        parameter.bytes = facts[i].bytes;
        parameter.alignment = facts[i].alignment;
        signature.parameters.push_back(std::move(parameter));
    }
    lay_out(signature);
    return signature;
}

DemangledKernel demangle_kernel(const std::string& mangled) {
    if (!mangled.starts_with("_Z")) return {mangled, {}, false};  // extern "C"
    std::string text = demangle(mangled);
    if (text.starts_with("void ")) text.erase(0, 5);  // a template's mangled name includes the return type
    constexpr std::string_view unnamed = "(anonymous namespace)";
    int depth = 0;
    for (std::size_t i = 0; i < text.size(); ++i) {
        if (std::string_view(text).substr(i).starts_with(unnamed)) i += unnamed.size();
        if (text[i] == '<') ++depth;
        if (text[i] == '>') --depth;
        if (text[i] != '(' || depth != 0) continue;
        const std::size_t end = text.rfind(')');
        return {text.substr(0, i), text.substr(i + 1, end - i - 1), true};
    }
    return {mangled, {}, false};
}

Signature signature_from_name(const std::string& mangled, std::span<const CodeParameter> parameters) {
    const DemangledKernel kernel = demangle_kernel(mangled);
    std::vector<DemangledType> types;
    for (const std::string_view type : split_list(kernel.parameters)) types.push_back(parse_type(type));
    const bool fits = kernel.is_typed && types.size() == parameters.size();
    Signature signature;
    signature.kernel = kernel.name;
    for (std::size_t i = 0; i < parameters.size(); ++i) {
        Parameter& parameter =
            signature.parameters.emplace_back(read_parameter(fits ? &types[i] : nullptr, parameters[i]));
        parameter.name = fmt::format("arg{}", i + 1);
    }
    lay_out(signature);
    return signature;
}

}  // namespace bascule
