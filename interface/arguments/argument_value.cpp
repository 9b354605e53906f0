#include <fmt/format.h>

#include <bascule/interface/arguments/argument_value.hpp>
#include <bascule/interface/arguments/array_argument.hpp>

namespace bascule {
namespace {

using ArgumentKind = ArgumentType::Kind;

DType weak_type(const Scalar& scalar) noexcept {
    switch (scalar.kind) {
        case Scalar::Kind::boolean:
            return {DType::Kind::boolean, 1};
        case Scalar::Kind::floating:
            return {DType::Kind::floating, 8};
        case Scalar::Kind::complex:
            return {DType::Kind::complex, 16};
        default:
            return {DType::Kind::signed_integer, 4};
    }
}

/// The type that C++ promotes numbers of this type to, or the type itself.
DType promoted(DType from) noexcept {
    if (from.kind == DType::Kind::boolean || (is_integer(from) && from.itemsize < 4))
        return {DType::Kind::signed_integer, 4};
    if (from == DType{DType::Kind::floating, 4}) return {DType::Kind::floating, 8};
    if (number_kind(from) == DType::Kind::floating && from.itemsize < 4) return {DType::Kind::floating, 4};
    return from;
}

/// The rules of scalar_conversion for types alone: the value may still be out of range.
ConversionRank rank_of_scalar(const ArgumentType& argument, const ParameterType& parameter) noexcept {
    const DType from = argument.dtype;
    const DType to = parameter.dtype;
    if (from == to) return ConversionRank::exact;
    if (from.kind == DType::Kind::datetime || from.kind == DType::Kind::timedelta) {
        return to == DType{DType::Kind::signed_integer, 8} ? ConversionRank::exact : ConversionRank::none;
    }
    const bool from_integer = is_integer(from) || from.kind == DType::Kind::boolean;
    if (!from_integer && to.kind != DType::Kind::complex) {
        const bool both_floating =
            number_kind(from) == DType::Kind::floating && number_kind(to) == DType::Kind::floating;
        if (!both_floating) return ConversionRank::none;
    }
    if (to == promoted(from)) return ConversionRank::promotion;
    // A Python number has no C++ type, so every type of its kind is a promotion.
    const bool same_kind = (is_integer(from) && is_integer(to)) || number_kind(from) == number_kind(to);
    if (argument.kind == ArgumentKind::weak_scalar && same_kind) return ConversionRank::promotion;
    return to.kind == DType::Kind::complex ? ConversionRank::class_conversion : ConversionRank::conversion;
}

/// Whether the dtype is exactly that of the declared elements.
bool is_element(const ParameterType& parameter, DType dtype) noexcept {
    return dtype == parameter.dtype && parameter.lanes == 0 && !parameter.character;
}

ConversionRank rank_of_array(const ArgumentType& argument, const Parameter& declared) noexcept {
    const ParameterType& parameter = declared.type;
    if (argument.readonly && !parameter.constant) return ConversionRank::none;
    if (!takes_addresses(parameter) && argument.rank != parameter.rank + (parameter.lanes > 0 ? 1 : 0))
        return ConversionRank::none;
    if (!accepts(parameter, argument.dtype)) return ConversionRank::none;
    const bool adds_const = parameter.constant && !argument.readonly;
    if (parameter.element_kind == ParameterType::Element::any)
        return adds_const ? ConversionRank::pointer_to_const : ConversionRank::conversion;
    // A view without a mask ranks low here and is not excluded: write_array refuses the masked array with a message
    // that advises masked_view. An overload with masked_view ranks higher.
    const bool takes_masks = parameter.kind == ParameterType::Kind::masked_view;
    if (argument.masked != takes_masks)
        return takes_masks ? ConversionRank::promotion : ConversionRank::conversion;
    if (!is_element(parameter, argument.dtype)) return ConversionRank::promotion;
    const bool adds_volatile = declared.spelling.find("volatile ") != std::string::npos;
    if (adds_const && adds_volatile) return ConversionRank::added_qualifiers;
    return adds_const || adds_volatile ? ConversionRank::added_qualifier : ConversionRank::exact;
}

const char* article(const std::string& word) noexcept {
    return word.starts_with("i") || word.starts_with("8") ? "an" : "a";  // int32; 8 opaque bytes
}

}  // namespace

ArgumentType type_of(const ArgumentValue& value) noexcept {
    if (const auto* array = std::get_if<ArrayView>(&value)) {
        return {ArgumentKind::array, array->dtype, array->ndim(), !array->writable_by_kernels(),
                array->mask != nullptr};
    }
    if (const auto* scalar = std::get_if<Scalar>(&value)) {
        if (scalar->dtype) return {ArgumentKind::strong_scalar, *scalar->dtype};
        return {ArgumentKind::weak_scalar, weak_type(*scalar)};
    }
    if (std::holds_alternative<ImageArgument>(value))
        return {ArgumentKind::strong_scalar, {DType::Kind::unsigned_integer, 8}};
    return {};
}

std::string_view element_name(DType dtype) noexcept {
    return dtype == DType{DType::Kind::opaque, 2} ? std::string_view("__nv_bfloat16") : cuda_name(dtype);
}

std::string describe(const ArgumentType& type) {
    switch (type.kind) {
        case ArgumentKind::array:
            if (type.readonly) return fmt::format("a read-only {} array", to_string(type.dtype));
            return fmt::format("{} {} array", article(to_string(type.dtype)), to_string(type.dtype));
        case ArgumentKind::strong_scalar:
            return fmt::format("a NumPy {}", to_string(type.dtype));
        case ArgumentKind::weak_scalar:
            switch (type.dtype.kind) {
                case DType::Kind::boolean:
                    return "a Python bool";
                case DType::Kind::floating:
                    return "a Python float";
                case DType::Kind::complex:
                    return "a Python complex";
                default:
                    return "a Python int";
            }
        case ArgumentKind::none:
            break;
    }
    return "an argument without a type";
}

ConversionRank rank_of(const ArgumentType& argument, const Parameter& declared) noexcept {
    const ParameterType& parameter = declared.type;
    switch (argument.kind) {
        case ArgumentKind::array:
            if (takes_arrays(parameter)) return rank_of_array(argument, declared);
            return parameter.kind == ParameterType::Kind::scalar ? ConversionRank::none
                                                                 : ConversionRank::class_conversion;
        case ArgumentKind::strong_scalar:
        case ArgumentKind::weak_scalar:
            return parameter.kind == ParameterType::Kind::scalar ? rank_of_scalar(argument, parameter)
                                                                 : ConversionRank::none;
        case ArgumentKind::none:
            break;
    }
    if (parameter.kind == ParameterType::Kind::scalar) return ConversionRank::none;
    return takes_arrays(parameter) ? ConversionRank::conversion : ConversionRank::class_conversion;
}

}  // namespace bascule
