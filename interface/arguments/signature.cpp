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

namespace {

bool is_plain(const Parameter& parameter) noexcept {
    const ParameterType& type = parameter.type;
    const bool number = type.dtype.format == DType::Format::none && type.dtype.kind != DType::Kind::opaque;
    if (type.kind == ParameterType::Kind::scalar) return number && parameter.bytes == type.dtype.itemsize;
    return type.kind == ParameterType::Kind::pointer && type.element_kind == ParameterType::Element::named &&
           type.lanes == 0 && number && parameter.bytes == sizeof(std::uint64_t) && type.alignment > 0;
}

}  // namespace

void lay_out(Signature& signature) noexcept {
    const std::uint32_t kernel = tag_of(signature.kernel);
    std::int32_t index = 0;
    std::uint32_t offset = 0;
    for (Parameter& parameter : signature.parameters) {
        offset = (offset + parameter.alignment - 1) / parameter.alignment * parameter.alignment;
        parameter.offset = offset;
        offset += parameter.bytes;
        parameter.plain = is_plain(parameter);
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
