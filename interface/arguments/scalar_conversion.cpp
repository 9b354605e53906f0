#include <cmath>
#include <cstring>

#include <fmt/format.h>

#include <bascule/interface/arguments/refusals.hpp>
#include <bascule/interface/arguments/scalar_conversion.hpp>
#include <bascule/interface/types/small_float.hpp>

namespace bascule {
namespace {

/// The shortest digits that give the same value when read, with ".0" if they would look like an integer.
std::string show(double value) {
    std::string text = fmt::format("{}", value);
    if (text.find_first_not_of("-0123456789") == text.npos) text += ".0";
    return text;
}

template <class... Values>
[[noreturn]] void refuse_scalar(const Refusal& refusal, const Parameter& parameter, const Scalar& scalar,
                                const Values&... values) {
    refuse(refusal, parameter, describe(scalar), values...);
}

template <class T>
void store(std::byte* out, T value) noexcept {
    std::memcpy(out, &value, sizeof value);
}

struct Range {
    std::int64_t low;
    std::uint64_t high;
};

Range range_of(const Parameter& parameter) noexcept {
    const DType dtype = parameter.type.dtype;
    if (dtype.kind == DType::Kind::boolean) return {0, 1};
    const std::uint64_t high = largest_integer(dtype);
    return {dtype.kind == DType::Kind::signed_integer ? static_cast<std::int64_t>(~high) : 0, high};
}

[[noreturn]] void refuse_range(Range range, const Parameter& parameter, const Scalar& scalar) {
    const bool boolean = parameter.type.dtype.kind == DType::Kind::boolean;
    const bool negative = scalar.kind == Scalar::Kind::integer && scalar.integer < 0;
    // The type that holds the value: long long for an int64, unsigned long long for a larger one.
    const char* wider = scalar.kind == Scalar::Kind::integer ? "long long" : "unsigned long long";
    refuse_scalar(boolean    ? refusals::not_boolean
                  : negative ? refusals::too_small
                             : refusals::too_large,
                  parameter, scalar, range.low, range.high, wider);
}

void write_integer(const Scalar& scalar, const Parameter& parameter, std::byte* out) {
    const Range range = range_of(parameter);
    bool in_range = false;
    std::uint64_t bits = 0;
    switch (scalar.kind) {
        case Scalar::Kind::boolean:
            in_range = true;
            bits = scalar.boolean ? 1 : 0;
            break;
        case Scalar::Kind::integer:
            in_range = scalar.integer >= range.low &&
                       (scalar.integer < 0 || static_cast<std::uint64_t>(scalar.integer) <= range.high);
            bits = static_cast<std::uint64_t>(scalar.integer);
            break;
        case Scalar::Kind::unsigned_integer:
            in_range = scalar.unsigned_integer <= range.high;
            bits = scalar.unsigned_integer;
            break;
        case Scalar::Kind::huge_integer:
            refuse_scalar(refusals::too_long, parameter, scalar);
        case Scalar::Kind::floating:
            refuse_scalar(refusals::float_for_integer, parameter, scalar);
        case Scalar::Kind::complex:
            refuse_scalar(refusals::complex_for_integer, parameter, scalar);
    }
    if (!in_range) refuse_range(range, parameter, scalar);
    std::memcpy(out, &bits, parameter.bytes);  // little-endian, as every device is
}

double to_double(const Scalar& scalar, const Parameter& parameter) {
    switch (scalar.kind) {
        case Scalar::Kind::boolean:
            return scalar.boolean ? 1.0 : 0.0;
        case Scalar::Kind::integer:
            return static_cast<double>(scalar.integer);
        case Scalar::Kind::unsigned_integer:
            return static_cast<double>(scalar.unsigned_integer);
        case Scalar::Kind::huge_integer:
            if (std::isinf(scalar.floating)) refuse_scalar(refusals::beyond_double, parameter, scalar);
            return scalar.floating;
        case Scalar::Kind::floating:
            return scalar.floating;
        case Scalar::Kind::complex:
            break;
    }
    refuse_scalar(refusals::complex_for_real, parameter, scalar);
}

[[noreturn]] void refuse_small(double value, const SmallFloat& format, const Scalar& scalar,
                               const Parameter& parameter) {
    if (std::isnan(value)) refuse_scalar(refusals::no_nan, parameter, scalar);
    if (std::isinf(value)) refuse_scalar(refusals::no_infinity, parameter, scalar);
    refuse_scalar(refusals::beyond_small_float, parameter, scalar, show(largest_number(format)),
                  format.infinity ? ", and this would become infinite" : "");
}

/// Writes a real number in a format of one or two bytes.
void write_small(double value, std::uint32_t bytes, const Scalar& scalar, const Parameter& parameter,
                 std::byte* out) {
    std::uint16_t pattern = 0;
    if (const SmallFloat* format = small_float(parameter.type.dtype)) {
        const auto rounded = nearest(*format, value);
        if (!rounded) refuse_small(value, *format, scalar, parameter);
        pattern = *rounded;
    } else {
        const auto power = to_power_of_two(value);
        if (!power) refuse_scalar(refusals::no_power_of_two, parameter, scalar);
        pattern = *power;
    }
    std::memcpy(out, &pattern, bytes);  // little-endian, as every device is
}

/// Writes a real number of `bytes` bytes.
void write_floating(double value, std::uint32_t bytes, const Scalar& scalar, const Parameter& parameter,
                    std::byte* out) {
    if (bytes == 8) {
        store(out, value);
    } else if (bytes == 4) {
        const auto narrow = static_cast<float>(value);
        if (std::isfinite(value) && std::isinf(narrow))
            refuse_scalar(refusals::beyond_float, parameter, scalar);
        store(out, narrow);
    } else {
        write_small(value, bytes, scalar, parameter, out);
    }
}

void write_complex(const Scalar& scalar, const Parameter& parameter, std::byte* out) {
    const bool complex = scalar.kind == Scalar::Kind::complex;
    const double real = complex ? scalar.real : to_double(scalar, parameter);
    const double imaginary = complex ? scalar.imaginary : 0.0;
    const std::uint32_t half = parameter.bytes / 2;
    write_floating(real, half, scalar, parameter, out);
    write_floating(imaginary, half, scalar, parameter, out + half);
}

bool is_time(const Scalar& scalar) noexcept {
    return scalar.dtype &&
           (scalar.dtype->kind == DType::Kind::datetime || scalar.dtype->kind == DType::Kind::timedelta);
}

}  // namespace

std::string describe(const Scalar& scalar) {
    if (is_time(scalar)) return fmt::format("the {} of {} units", to_string(*scalar.dtype), scalar.integer);
    switch (scalar.kind) {
        case Scalar::Kind::boolean:
            return scalar.boolean ? "True" : "False";
        case Scalar::Kind::integer:
            return std::to_string(scalar.integer);
        case Scalar::Kind::unsigned_integer:
            return std::to_string(scalar.unsigned_integer);
        case Scalar::Kind::huge_integer:
            return "an integer of more than 64 bits";
        case Scalar::Kind::floating:
            return "the float " + show(scalar.floating);
        case Scalar::Kind::complex:
            return fmt::format("the complex {}{:+}j", scalar.real, scalar.imaginary);
    }
    return {};
}

void write_scalar(const Scalar& scalar, const Parameter& parameter, std::byte* out) {
    const DType to = parameter.type.dtype;
    if (to.format != DType::Format::none) {
        write_floating(to_double(scalar, parameter), to.itemsize, scalar, parameter, out);
        return;
    }
    if (is_time(scalar) && to != DType{DType::Kind::signed_integer, 8})
        refuse_scalar(refusals::time_for_number, parameter, scalar);
    switch (to.kind) {
        case DType::Kind::boolean:
        case DType::Kind::signed_integer:
        case DType::Kind::unsigned_integer:
            write_integer(scalar, parameter, out);
            return;
        case DType::Kind::floating:
            write_floating(to_double(scalar, parameter), parameter.bytes, scalar, parameter, out);
            return;
        case DType::Kind::complex:
            write_complex(scalar, parameter, out);
            return;
        default:
            refuse_scalar(refusals::no_conversion, parameter, scalar);
    }
}

}  // namespace bascule
