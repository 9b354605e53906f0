#include <string_view>

#include <fmt/format.h>

#include <bascule/interface/signature.hpp>

namespace bascule {

int Signature::find(std::string_view name) const noexcept {
    for (std::size_t i = 0; i < parameters.size(); ++i) {
        if (parameters[i].name == name) return static_cast<int>(i);
    }
    return -1;
}

void lay_out(Signature& signature) noexcept {
    std::uint32_t offset = 0;
    for (Parameter& parameter : signature.parameters) {
        offset = (offset + parameter.alignment - 1) / parameter.alignment * parameter.alignment;
        parameter.offset = offset;
        offset += parameter.bytes;
    }
    signature.bytes = offset;
}

namespace {

/// "float* x", "int (*x)(int)": the name stands where C++ has it.
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
