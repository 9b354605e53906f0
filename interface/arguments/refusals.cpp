#include <fmt/format.h>

#include <bascule/interface/arguments/refusals.hpp>
#include <bascule/interface/errors/wording.hpp>

namespace bascule {

ArgumentError detail::refusal_of(const Refusal& refusal, const Parameter& parameter, const std::string& got,
                                 RefusalValues values) {
    const ParameterType& type = parameter.type;
    values.push_back(fmt::arg("declared", parameter.spelling));
    values.push_back(fmt::arg("got", got));
    values.push_back(fmt::arg("pass", what_to_pass(parameter)));
    values.push_back(fmt::arg("bytes", parameter.bytes));
    values.push_back(fmt::arg("element", type.element));
    values.push_back(fmt::arg("lanes", type.lanes));
    values.push_back(fmt::arg("lane", to_string(type.dtype)));
    values.push_back(
        fmt::arg("raw_pointer", advice("bascule.raw_pointer(address)", "bascule::RawPointer{address}")));
    const std::string text = std::string(refusal.problem) +
                             advice(refusal.advice, refusal.in_cpp.empty() ? refusal.advice : refusal.in_cpp);
    return {refusal.kind, fmt::vformat(text, values), {.expected = parameter.spelling, .got = got}};
}

namespace {

/// Describes valid arguments for an untyped parameter. Its size does not tell how to convert a number.
std::string untyped_value(const Parameter& parameter) {
    const std::string number =
        advice(fmt::format("a NumPy scalar or a ctypes number of {} bytes, whose type is what is passed, or "
                           "bascule.raw_bytes(its {} bytes)",
                           parameter.bytes, parameter.bytes),
               fmt::format("bascule::RawBytes of its {} bytes", parameter.bytes));
    return may_be_pointer(parameter.type) ? "a device array for a pointer; for a value " + number : number;
}

}  // namespace

std::string what_to_pass(const Parameter& parameter) {
    const ParameterType& declared = parameter.type;
    if (declared.image == ParameterType::Image::texture)
        return advice("a texture: bascule.texture(array) makes one", "a bascule::Texture");
    if (declared.image == ParameterType::Image::surface)
        return advice("a surface: bascule.surface(array) makes one", "a bascule::Surface");
    if (names_tensor_map(parameter) &&
        (can_hold_tensor_map(parameter) || can_point_to_tensor_map(declared))) {
        return advice("a tensor map: bascule.tensor_map(array, box) makes one", "a bascule::TensorMap");
    }
    switch (declared.kind) {
        case ParameterType::Kind::scalar:
            return "a number";
        case ParameterType::Kind::pointer:
            if (declared.element_kind == ParameterType::Element::function) {
                return advice("bascule.raw_pointer(address)", "bascule::RawPointer{address}") +
                       " with an address that a kernel wrote to memory";
            }
            return "a device array";
        case ParameterType::Kind::array_view:
        case ParameterType::Kind::masked_view:
        case ParameterType::Kind::span:
            return "a device array";
        case ParameterType::Kind::vector:
            return fmt::format("a tuple of {} numbers", declared.lanes);
        case ParameterType::Kind::structure:
            return advice(fmt::format("a NumPy structured scalar or a ctypes structure with its fields, a "
                                      "tuple with a value for each member, or bascule.raw_bytes(its {} "
                                      "bytes)",
                                      parameter.bytes),
                          fmt::format("a struct of {} bytes that is trivially copyable", parameter.bytes));
        case ParameterType::Kind::untyped:
            return untyped_value(parameter);
        case ParameterType::Kind::opaque:
            break;
    }
    return advice(fmt::format("bascule.raw_bytes(its {} bytes)", parameter.bytes),
                  fmt::format("bascule::RawBytes of its {} bytes", parameter.bytes));
}

}  // namespace bascule
