#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include <bascule/jit/templates/kernel_declaration.hpp>
#include <bascule/jit/templates/specialization.hpp>
#include <bascule/jit/templates/type_pattern.hpp>

namespace bascule {
namespace {

/// What the text tells about a parameter: enough for messages, and to decide whether bytes may be passed.
ParameterType type_in_text(const std::string& text, const TypePattern& pattern) {
    ParameterType type;
    using Declared = ParameterType::Kind;
    const auto has = [&](std::string_view part) { return text.find(part) != text.npos; };
    if (pattern.kind == TypePattern::Kind::value || pattern.kind == TypePattern::Kind::pointer || has("*")) {
        type.kind = Declared::pointer;
    } else if (has("masked_view")) {
        type.kind = Declared::masked_view;
    } else if (pattern.kind == TypePattern::Kind::view || has("array_view") || has("span")) {
        type.kind = Declared::array_view;
    }
    return type;
}

}  // namespace

bool takes(const KernelDeclaration& declaration, std::size_t arguments) {
    if (declaration.is_divided) return true;  // their number is not known
    const std::size_t parameters = declaration.parameters.size();
    const bool has_pack = std::ranges::any_of(
        declaration.parameter_types, [](const std::string& type) { return type.find("...") != type.npos; });
    return has_pack ? arguments + 1 >= parameters : arguments == parameters;
}

std::vector<std::string> parameter_names(std::span<const KernelDeclaration* const> declarations,
                                         std::size_t parameters) {
    std::vector<std::string> names(parameters);
    for (std::size_t d = 0; d < declarations.size(); ++d) {
        const KernelDeclaration& declaration = *declarations[d];
        const std::vector<TypePattern> patterns =
            read_patterns(declaration.parameter_types, declaration.template_parameters);
        for (std::size_t i = 0; i < parameters; ++i) {
            if (declaration.is_divided) {
                names[i].clear();
                continue;
            }
            const auto at = static_cast<std::size_t>(pattern_index(patterns, parameters, i));
            std::string name = declaration.parameters[at];
            if (!name.empty() && patterns[at].is_pack) name += fmt::format("{}", i + 1 - at);
            if (d == 0) {
                names[i] = std::move(name);
            } else if (names[i] != name) {
                names[i].clear();
            }
        }
    }
    return names;
}

std::string spell(const KernelDeclaration& declaration) {
    std::string text;
    for (const TemplateParameter& parameter : declaration.template_parameters) {
        if (parameter.is_auto) continue;
        text += fmt::format("{}{}{}", text.empty() ? "template <" : ", ", parameter.name,
                            parameter.is_pack ? "..." : "");
    }
    text += fmt::format("{}void {}(", text.empty() ? "" : "> ", declaration.name);
    for (std::size_t i = 0; i < declaration.parameters.size(); ++i) {
        text += fmt::format("{}{}{}{}", i == 0 ? "" : ", ", declaration.parameter_types[i],
                            declaration.parameters[i].empty() ? "" : " ", declaration.parameters[i]);
    }
    return text + ")";
}

Signature signature_in_text(std::span<const KernelDeclaration* const> declarations, std::size_t arguments) {
    const KernelDeclaration& declaration = *declarations.front();
    const std::vector<std::string> names = parameter_names(declarations, arguments);
    const std::vector<TypePattern> patterns =
        read_patterns(declaration.parameter_types, declaration.template_parameters);
    Signature signature;
    signature.kernel = declaration.name;
    for (std::size_t i = 0; i < arguments; ++i) {
        Parameter& parameter = signature.parameters.emplace_back();
        parameter.name = names[i].empty() ? fmt::format("arg{}", i + 1) : names[i];
        parameter.type.kind = ParameterType::Kind::pointer;
        if (declaration.is_divided) continue;
        const auto at = static_cast<std::size_t>(pattern_index(patterns, arguments, i));
        parameter.spelling = declaration.parameter_types[at];
        parameter.type = type_in_text(parameter.spelling, patterns[at]);
    }
    return signature;
}

}  // namespace bascule
