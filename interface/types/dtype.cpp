#include <charconv>
#include <limits>

#include <fmt/format.h>

#include <bascule/interface/errors/error.hpp>
#include <bascule/interface/errors/wording.hpp>
#include <bascule/interface/types/dtype.hpp>

namespace bascule {
namespace {

using DTypeKind = DType::Kind;
using Format = DType::Format;

[[noreturn]] void fail(ArgumentError::Kind kind, std::string_view typestr, std::string_view why) {
    const std::string got = shortened(typestr);
    throw ArgumentError(kind, fmt::format("'typestr' of __cuda_array_interface__ is \"{}\": {}.", got, why),
                        {.field = "typestr", .expected = "such as \"<f4\"", .got = got});
}

/// Parses an item size: decimal digits without leading zeros. Returns nothing for other text.
std::optional<std::uint32_t> to_itemsize(std::string_view digits) {
    if (digits.empty() || digits.size() > 9 || digits[0] == '0') return std::nullopt;
    std::uint32_t value = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    return error == std::errc() && end == digits.data() + digits.size() ? std::optional(value) : std::nullopt;
}

/// NumPy's units of time, in the order of DType::TimeUnit.
constexpr std::array<std::string_view, 14> units = {"generic", "Y",  "M",  "W",  "D",  "h",  "m",
                                                    "s",       "ms", "us", "ns", "ps", "fs", "as"};

/// Parses "ns" and "25s": a unit, optionally with a count that NumPy accepts. Returns false for other text.
bool read_unit(std::string_view text, DType& dtype) {
    const auto letters = text.find_first_not_of("0123456789");
    if (letters == text.npos) return false;
    const std::string_view name = text.substr(letters) == "\u03bcs" ? "us" : text.substr(letters);
    const auto unit = std::ranges::find(units, name);
    if (unit == units.end() || (unit == units.begin() && letters > 0)) return false;
    dtype.unit = static_cast<DType::TimeUnit>(unit - units.begin());
    if (letters == 0) return true;
    std::int32_t count = 0;
    if (std::from_chars(text.data(), text.data() + letters, count).ec != std::errc()) return false;
    dtype.count = static_cast<std::uint32_t>(count);
    return true;
}

/// "[25s]"; empty for a time without a unit and for types that are not times.
std::string bracketed_unit(DType dtype) {
    if (dtype.unit == DType::TimeUnit::generic) return {};
    const std::string count = dtype.count == 1 ? std::string() : std::to_string(dtype.count);
    return fmt::format("[{}{}]", count, units[static_cast<std::size_t>(dtype.unit)]);
}

constexpr std::string_view form =
    "it must be a byte order (< or |), a kind and a size in bytes, such as \"<f4\"";

DType parse_slowly(std::string_view typestr) {
    if (typestr.size() < 3) fail(ArgumentError::Kind::value, typestr, form);
    const char order = typestr[0];
    const char letter = typestr[1];
    if (order != '<' && order != '|' && order != '>' && order != '=') {
        fail(ArgumentError::Kind::value, typestr, form);
    }
    if (letter == 'O' || letter == 'S' || letter == 'U') {
        fail(ArgumentError::Kind::type, typestr,
             "Python objects and strings have no meaning on a device; pass numbers or opaque bytes");
    }
    std::string_view size = typestr.substr(2);
    const bool timed = letter == 'M' || letter == 'm';
    DType time;
    if (const auto bracket = size.find('['); timed && bracket != size.npos && size.back() == ']') {
        const std::string_view unit = size.substr(bracket + 1, size.size() - bracket - 2);
        if (!read_unit(unit, time)) fail(ArgumentError::Kind::value, typestr, "that is not a unit of time");
        size = size.substr(0, bracket);
    }
    const std::optional<std::uint32_t> itemsize = to_itemsize(size);
    if (!itemsize) fail(ArgumentError::Kind::value, typestr, form);
    if (order == '>' && *itemsize > 1) {
        fail(ArgumentError::Kind::value, typestr,
             "the data is big-endian, and devices are little-endian; swap the bytes on the host first");
    }
    if (letter == 'V') return {DTypeKind::opaque, *itemsize};
    for (const ElementType& row : element_types) {
        if (row.letter == letter && row.dtype.itemsize == *itemsize)
            return {row.dtype.kind, row.dtype.itemsize, row.dtype.format, time.unit, time.count};
    }
    fail(ArgumentError::Kind::value, typestr, "no element type of a device has that name");
}

}  // namespace

std::uint32_t DType::alignment() const noexcept { return element_type(*this) == nullptr ? 1 : itemsize; }

std::optional<DType> dtype_named(std::string_view name) noexcept {
    for (const ElementType& row : element_types) {
        if (row.name == name && row.dtype.format != Format::none) return row.dtype;
    }
    return std::nullopt;
}

DType::Kind number_kind(DType dtype) noexcept {
    if (dtype.format == Format::none) return dtype.kind;
    if (dtype.format < Format::int1) return DTypeKind::floating;
    return dtype.format < Format::uint1 ? DTypeKind::signed_integer : DTypeKind::unsigned_integer;
}

bool is_integer(DType dtype) noexcept {
    const DTypeKind kind = number_kind(dtype);
    return kind == DTypeKind::signed_integer || kind == DTypeKind::unsigned_integer;
}

bool same_elements(DType declared, DType given) noexcept {
    return declared.kind == given.kind && declared.itemsize == given.itemsize &&
           (declared.format == given.format || declared.format == Format::none ||
            given.format == Format::none);
}

DType parse_typestr(std::string_view typestr) {
    // The types of nearly all arrays, without a search.
    if (typestr.size() == 3 && typestr[0] == '<') {
        const char letter = typestr[1];
        const char digit = typestr[2];
        if (digit == '4' || digit == '8') {
            const auto itemsize = static_cast<std::uint32_t>(digit - '0');
            if (letter == 'f') return {DTypeKind::floating, itemsize};
            if (letter == 'i') return {DTypeKind::signed_integer, itemsize};
            if (letter == 'u') return {DTypeKind::unsigned_integer, itemsize};
        }
    }
    return parse_slowly(typestr);
}

std::string to_typestr(DType dtype) {
    const ElementType* row = element_type(dtype);
    if (row == nullptr) return fmt::format("|V{}", dtype.itemsize);
    const char order = dtype.itemsize == 1 && dtype.format == Format::none ? '|' : '<';
    return fmt::format("{}{}{}{}", order, row->letter, row->dtype.itemsize, bracketed_unit(dtype));
}

std::string to_string(DType dtype) {
    const ElementType* row = element_type(dtype);
    if (row != nullptr) return std::string(row->name) + bracketed_unit(dtype);
    return fmt::format("{} opaque bytes", dtype.itemsize);
}

std::string_view cuda_name(DType dtype) noexcept {
    const ElementType* row = element_type(dtype);
    return row == nullptr ? std::string_view{} : row->cuda;
}

std::uint64_t largest_integer(DType dtype) noexcept {
    const std::uint64_t all = std::numeric_limits<std::uint64_t>::max() >> (64 - 8 * dtype.itemsize);
    return dtype.kind == DType::Kind::signed_integer ? all >> 1 : all;
}

}  // namespace bascule
