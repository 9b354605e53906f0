#include <fmt/format.h>

#include <bascule/interface/arguments/argument_type.hpp>
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

/// The rules of scalar_conversion, without the value: a range is not looked at.
Fit fit_scalar(const ArgumentType& argument, const ParameterType& parameter) noexcept {
    const DType from = argument.dtype;
    const DType to = parameter.dtype;
    if (argument.kind == ArgumentKind::strong_scalar && from == to) return Fit::exact;
    if (argument.kind == ArgumentKind::weak_scalar && from == to) return Fit::exact;
    if (from.kind == DType::Kind::boolean)
        return to.kind == DType::Kind::boolean ? Fit::exact : Fit::convertible;
    if (is_integer(from)) return is_integer(to) ? Fit::same_kind : Fit::convertible;
    if (from.kind == DType::Kind::datetime || from.kind == DType::Kind::timedelta) {
        return to == DType{DType::Kind::signed_integer, 8} ? Fit::exact : Fit::none;
    }
    if (number_kind(from) == DType::Kind::floating) {
        if (number_kind(to) == DType::Kind::floating) return Fit::same_kind;
        return to.kind == DType::Kind::complex ? Fit::convertible : Fit::none;
    }
    return to.kind == DType::Kind::complex ? Fit::same_kind : Fit::none;
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
    return {};
}

std::string_view element_name(DType dtype) noexcept {
    return dtype == DType{DType::Kind::opaque, 2} ? std::string_view("__nv_bfloat16") : cuda_name(dtype);
}

std::string describe(const ArgumentType& type) {
    switch (type.kind) {
        case ArgumentKind::array:
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

Fit fit(const ArgumentType& argument, const ParameterType& parameter) noexcept {
    const bool scalar =
        argument.kind == ArgumentKind::strong_scalar || argument.kind == ArgumentKind::weak_scalar;
    switch (parameter.kind) {
        case ParameterType::Kind::scalar:
            return scalar ? fit_scalar(argument, parameter) : Fit::none;
        case ParameterType::Kind::pointer:
        case ParameterType::Kind::array_view:
        case ParameterType::Kind::masked_view:
        case ParameterType::Kind::span:
            if (argument.kind == ArgumentKind::none) return Fit::convertible;
            if (argument.kind != ArgumentKind::array || (argument.readonly && !parameter.constant))
                return Fit::none;
            if (parameter.kind != ParameterType::Kind::pointer &&
                argument.rank != parameter.rank + (parameter.lanes > 0 ? 1 : 0)) {
                return Fit::none;
            }
            if (!accepts(parameter, argument.dtype)) return Fit::none;
            if (parameter.element_kind == ParameterType::Element::any) return Fit::convertible;
            if (parameter.kind == ParameterType::Kind::masked_view) {
                return argument.masked ? Fit::exact : Fit::same_kind;
            }
            // Refused when it is written, with the word masked_view, unless another overload says that word.
            return argument.masked ? Fit::convertible : Fit::exact;
        default:
            return scalar ? Fit::none : Fit::convertible;
    }
}

}  // namespace bascule
