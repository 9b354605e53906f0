// Shared by several of these tests: descriptors and parameters in one line each, and checks of errors.
#pragma once

#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <limits>
#include <optional>
#include <string>
#include <string_view>

#include <doctest/doctest.h>

#include <bascule/interface/arguments/argument.hpp>
#include <bascule/interface/arguments/signature.hpp>
#include <bascule/interface/arrays/array_interface.hpp>
#include <bascule/interface/errors/error.hpp>
#include <bascule/interface/errors/wording.hpp>

namespace bascule::testing {

constexpr std::int64_t int64_max = std::numeric_limits<std::int64_t>::max();
constexpr std::int64_t int64_min = std::numeric_limits<std::int64_t>::min();

/// During its lifetime, error messages give their advice as Python expressions.
struct InPython {
    InPython() { language_of_advice = Language::python; }
    ~InPython() { language_of_advice = Language::cpp; }
    InPython(const InPython&) = delete;
    InPython& operator=(const InPython&) = delete;
};

/// The ArgumentError that `action` throws, if any.
template <class Action>
std::optional<ArgumentError> caught(Action&& action) {
    try {
        action();
    } catch (const ArgumentError& error) {
        return error;
    }
    return std::nullopt;
}

/// Checks that `action` throws an error of that kind whose message has every part.
template <class Action>
void check_refused(Action&& action, ArgumentError::Kind kind, std::initializer_list<std::string_view> parts) {
    const std::optional<ArgumentError> error = caught(action);
    REQUIRE_MESSAGE(error.has_value(), "nothing was thrown");
    const std::string message = error->what();
    CAPTURE(message);
    CHECK(error->kind() == kind);
    for (const std::string_view part : parts) {
        CHECK_MESSAGE(message.find(part) != std::string::npos, "must say: ", std::string(part));
    }
    CHECK(message.back() != ' ');
}

inline constexpr std::uint64_t address = 0x7f0000000000;

inline Dimensions dimensions(std::initializer_list<std::int64_t> values) {
    return Dimensions(std::span(values.begin(), values.size()));
}

/// A descriptor without `strides` and `stream`.
inline RawInterface raw_array(std::string_view typestr, std::initializer_list<std::int64_t> shape) {
    RawInterface raw;
    raw.typestr = typestr;
    raw.shape = dimensions(shape);
    raw.pointer = address;
    return raw;
}

inline ArrayView array(std::string_view typestr, std::initializer_list<std::int64_t> shape) {
    return validate(raw_array(typestr, shape));
}

inline ArrayView strided(std::string_view typestr, std::initializer_list<std::int64_t> shape,
                         std::initializer_list<std::int64_t> strides) {
    RawInterface raw = raw_array(typestr, shape);
    raw.has_strides = true;
    raw.strides = dimensions(strides);
    return validate(raw);
}

inline ArrayView with_stream(std::uint64_t stream) {
    RawInterface raw = raw_array("<f4", {8});
    raw.stream = stream;
    return validate(raw);
}

/// `float f`, when called with ("float", "<f4").
inline Parameter scalar_parameter(const std::string& spelling, std::string_view typestr) {
    Parameter parameter;
    parameter.name = "f";
    parameter.spelling = spelling;
    parameter.type.kind = ParameterType::Kind::scalar;
    parameter.type.dtype = parse_typestr(typestr);
    parameter.bytes = parameter.type.dtype.itemsize;
    parameter.alignment = parameter.type.dtype.alignment();
    return parameter;
}

inline Parameter bfloat16_parameter() {
    Parameter parameter = scalar_parameter("__nv_bfloat16", "<V2");
    parameter.type.dtype = *dtype_named("bfloat16");
    parameter.alignment = 2;
    return parameter;
}

/// `float* p`, when called with ("float*", "<f4"); const if the spelling says so.
inline Parameter pointer_parameter(const std::string& spelling, std::string_view typestr) {
    Parameter parameter;
    parameter.name = "p";
    parameter.spelling = spelling;
    parameter.type.kind = ParameterType::Kind::pointer;
    parameter.type.dtype = parse_typestr(typestr);
    parameter.type.alignment = parameter.type.dtype.alignment();
    parameter.type.constant = spelling.starts_with("const ");
    parameter.bytes = 8;
    parameter.alignment = 8;
    return parameter;
}

/// `bascule::array_view<float, 2> p`, when called with ("float", "<f4", 2).
inline Parameter view_parameter(const std::string& element, std::string_view typestr, int rank) {
    Parameter parameter = pointer_parameter(element, typestr);
    parameter.spelling = "bascule::array_view<" + element + ", " + std::to_string(rank) + ">";
    parameter.type.kind = ParameterType::Kind::array_view;
    parameter.type.rank = rank;
    parameter.bytes = 8 + 16 * static_cast<std::uint32_t>(rank);
    return parameter;
}

inline Parameter opaque_parameter(const std::string& spelling, std::uint32_t bytes) {
    Parameter parameter;
    parameter.name = "s";
    parameter.spelling = spelling;
    parameter.bytes = bytes;
    return parameter;
}

inline Signature signature(std::initializer_list<Parameter> parameters) {
    Signature result;
    result.kernel = "k";
    result.parameters = parameters;
    lay_out(result);
    return result;
}

inline Scalar boolean(bool value) {
    Scalar scalar;
    scalar.kind = Scalar::Kind::boolean;
    scalar.boolean = value;
    return scalar;
}

inline Scalar integer(std::int64_t value) {
    Scalar scalar;
    scalar.integer = value;
    return scalar;
}

inline Scalar large(std::uint64_t value) {
    Scalar scalar;
    scalar.kind = Scalar::Kind::unsigned_integer;
    scalar.unsigned_integer = value;
    return scalar;
}

inline Scalar real(double value) {
    Scalar scalar;
    scalar.kind = Scalar::Kind::floating;
    scalar.floating = value;
    return scalar;
}

inline Scalar complex(double re, double im) {
    Scalar scalar;
    scalar.kind = Scalar::Kind::complex;
    scalar.real = re;
    scalar.imaginary = im;
    return scalar;
}

/// The value that the driver would read for argument `index`.
template <class T>
T passed(ArgumentPack& pack, int index) {
    T value;
    std::memcpy(&value, pack.table()[index], sizeof value);
    return value;
}

}  // namespace bascule::testing
