// Checks the host's signature against the kernel's own.
#include <fmt/format.h>

#include <bascule/interface/arguments/array_argument.hpp>
#include <bascule/interface/errors/error.hpp>
#include <bascule/runtime/kernels/typed_kernel.hpp>

namespace bascule::detail {
namespace {

std::string spell(const HostType& type) {
    std::string element(type.dtype.itemsize > 0 ? cuda_name(type.dtype) : "void");
    switch (type.kind) {
        case HostType::Kind::scalar:
            return element;
        case HostType::Kind::pointer:
            return fmt::format("{}{}*", type.constant ? "const " : "", element);
        case HostType::Kind::array:
            return "bascule::ArrayView";
        case HostType::Kind::texture:
            return "bascule::Texture";
        case HostType::Kind::surface:
            return "bascule::Surface";
        case HostType::Kind::tensor_map:
            return "bascule::TensorMap";
        case HostType::Kind::bytes:
            return fmt::format("a structure of {} bytes", type.bytes);
    }
    return {};
}

/// `void*` on either side matches all element types.
bool fits_pointer(const HostType& type, const ParameterType& declared) {
    if (type.constant && !declared.constant) return false;
    return type.dtype.itemsize == 0 || accepts(declared, type.dtype);
}

bool matches(const HostType& type, const Parameter& parameter) {
    using Declared = ParameterType::Kind;
    const ParameterType& declared = parameter.type;
    switch (type.kind) {
        case HostType::Kind::scalar:
            return (declared.kind == Declared::scalar && declared.dtype == type.dtype &&
                    declared.image == ParameterType::Image::none) ||
                   (declared.kind == Declared::untyped && parameter.bytes == type.bytes);
        case HostType::Kind::pointer:
            return may_be_pointer(declared) ||
                   (declared.kind == Declared::pointer && fits_pointer(type, declared));
        case HostType::Kind::array:
            return takes_arrays(declared);
        case HostType::Kind::texture:
            return can_hold_handle(declared) && declared.image != ParameterType::Image::surface;
        case HostType::Kind::surface:
            return can_hold_handle(declared) && declared.image != ParameterType::Image::texture;
        case HostType::Kind::tensor_map:
            return can_hold_tensor_map(parameter);
        case HostType::Kind::bytes:
            return (declared.kind == Declared::structure || declared.kind == Declared::opaque ||
                    declared.kind == Declared::vector || declared.kind == Declared::untyped) &&
                   parameter.bytes == type.bytes;
    }
    return false;
}

void check(const Signature& signature, std::span<const HostType> types) {
    ArgumentPack::check_count(signature, types.size());
    for (std::size_t i = 0; i < types.size(); ++i) {
        const Parameter& parameter = signature.parameters[i];
        if (matches(types[i], parameter)) continue;
        throw ArgumentError(
            ArgumentError::Kind::type,
            fmt::format("the kernel declares `{}`, and typed<...> says {}. Write the kernel's own type: {}",
                        parameter.spelling, spell(types[i]), to_string(signature)),
            {.expected = parameter.spelling, .got = spell(types[i])})
            .with_argument(static_cast<int>(i), parameter.name);
    }
}

/// A value of this type. Overloads are chosen by type only.
ArgumentValue example_of(const HostType& type) {
    if (type.kind == HostType::Kind::scalar) {
        Scalar scalar;
        scalar.dtype = type.dtype;
        return scalar;
    }
    if (type.kind == HostType::Kind::texture) return ImageArgument{0, false, {}};
    if (type.kind == HostType::Kind::surface) return ImageArgument{0, true, {}};
    if (type.kind != HostType::Kind::pointer || type.dtype.itemsize == 0) return std::monostate{};
    ArrayView array;
    array.dtype = type.dtype;
    array.readonly = type.constant;
    array.shape.push_back(0);
    array.size = 0;
    return array;
}

}  // namespace

Kernel choose_typed(const Kernel& kernel, std::vector<std::string> template_arguments,
                    std::span<const HostType> types, Device device) {
    Kernel chosen = template_arguments.empty() ? kernel.resolve_function(device)
                                               : kernel.instantiate({std::move(template_arguments), {}});
    if (!chosen.is_function()) {
        std::vector<ArgumentValue> examples;
        for (const HostType& type : types) examples.push_back(example_of(type));
        chosen = chosen.for_arguments(examples, device);
    }
    check(chosen.signature(device), types);
    return chosen;
}

}  // namespace bascule::detail
