#include <string_view>

#include <fmt/format.h>

#include <bascule/interface/arguments/signature.hpp>

namespace bascule {

int Signature::find(std::string_view name) const noexcept {
    for (std::size_t i = 0; i < parameters.size(); ++i) {
        if (parameters[i].name == name) return static_cast<int>(i);
    }
    return -1;
}

std::uint32_t tag_of(std::string_view kernel) noexcept {
    std::uint32_t hash = 2166136261U;  // FNV-1a
    for (const char each : kernel) hash = (hash ^ static_cast<unsigned char>(each)) * 16777619U;
    return hash;
}

void lay_out(Signature& signature) noexcept {
    const std::uint32_t kernel = tag_of(signature.kernel);
    std::int32_t index = 0;
    std::uint32_t offset = 0;
    for (Parameter& parameter : signature.parameters) {
        offset = (offset + parameter.alignment - 1) / parameter.alignment * parameter.alignment;
        parameter.offset = offset;
        offset += parameter.bytes;
        parameter.tag = {kernel, index++};
    }
    signature.bytes = offset;
}

namespace {

/// "float* x", "int (*x)(int)": the name is where C++ puts it.
std::string declaration(const Parameter& parameter) {
    const std::size_t star = parameter.spelling.find("(*)");
    if (star == std::string::npos) return fmt::format("{} {}", parameter.spelling, parameter.name);
    return std::string(parameter.spelling).insert(star + 2, parameter.name);
}

}  // namespace

std::string to_string(const Signature& signature) {
    std::string text = fmt::format("void {}(", signature.kernel);
    const char* separator = "";
    for (const Parameter& parameter : signature.parameters) {
        text += separator + declaration(parameter);
        separator = ", ";
    }
    return text + ")";
}

}  // namespace bascule
