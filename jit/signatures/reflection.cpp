#include <array>
#include <cstdlib>
#include <string_view>

#include <fmt/format.h>

#include <bascule/interface/errors/error.hpp>
#include <bascule/jit/signatures/demangle.hpp>
#include <bascule/jit/signatures/demangled_type.hpp>
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

}  // namespace bascule
