#include <algorithm>

#include <fmt/format.h>

#include <bascule/interface/arguments/signature.hpp>

namespace bascule {

int Signature::find(std::string_view name) const noexcept {
    const auto found = std::ranges::find(parameters, name, &Parameter::name);
    return found == parameters.end() ? -1 : static_cast<int>(found - parameters.begin());
}

bool names_tensor_map(const Parameter& parameter) noexcept {
    return parameter.spelling.find("CUtensorMap") != std::string::npos;
}

std::uint32_t tag_of(std::string_view kernel) noexcept {
    std::uint32_t hash = 2166136261U;  // FNV-1a
    for (const char each : kernel) hash = (hash ^ static_cast<unsigned char>(each)) * 16777619U;
    return hash;
}

namespace {

PlainTraits traits_of(const Parameter& parameter) noexcept {
    const ParameterType& type = parameter.type;
    if (type.image != ParameterType::Image::none) return takes_none;
    if (type.kind == ParameterType::Kind::scalar)
        return parameter.bytes == type.dtype.itemsize ? plain_scalar(type.dtype) : takes_none;
    // Plain arrays are aligned only to their elements' size.
    if (type.kind != ParameterType::Kind::pointer || type.element_kind != ParameterType::Element::named ||
        type.lanes != 0 || parameter.bytes != sizeof(std::uint64_t) || type.alignment > type.dtype.itemsize) {
        return takes_none;
    }
    const PlainTraits traits = plain_traits(type.dtype, type.constant);
    return traits == not_plain ? takes_none : traits;
}

/// "float* x", "int (*x)(int)".
std::string declaration(const Parameter& parameter) {
    const std::size_t star = parameter.spelling.find("(*)");
    if (star == std::string::npos) return fmt::format("{} {}", parameter.spelling, parameter.name);
    return std::string(parameter.spelling).insert(star + 2, parameter.name);
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
        parameter.plain = traits_of(parameter);
        parameter.tag = {kernel, index++};
    }
    signature.bytes = offset;
}

std::string_view advice_on_defaults(std::uint32_t defaults) noexcept {
    return defaults == 0 ? "" : ". A launch does not use C++ default arguments: pass every argument.";
}

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
