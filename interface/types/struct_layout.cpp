// Source: NumPy's array interface protocol, `descr`.
#include <algorithm>
#include <limits>

#include <fmt/format.h>

#include <bascule/interface/errors/rejection.hpp>
#include <bascule/interface/errors/shortened.hpp>
#include <bascule/interface/types/dimensions.hpp>
#include <bascule/interface/types/struct_layout.hpp>

namespace bascule {
namespace {

[[noreturn]] void fail(ErrorKind kind, const std::string& message) {
    throw ArgumentError(kind, "'descr' of __cuda_array_interface__ " + message, {.field = "descr"});
}

std::uint64_t count_of(std::span<const std::int64_t> shape, const std::string& name) {
    if (shape.size() > static_cast<std::size_t>(max_dimensions)) {
        fail(ErrorKind::value, fmt::format("gives field '{}' {} dimensions; the limit is {}.",
                                           shortened(name), shape.size(), max_dimensions));
    }
    std::uint64_t count = 1;
    for (const std::int64_t extent : shape) {
        if (extent < 0) {
            fail(ErrorKind::value,
                 fmt::format("gives field '{}' a negative extent, {}.", shortened(name), extent));
        }
        if (__builtin_mul_overflow(count, static_cast<std::uint64_t>(extent), &count)) {
            fail(ErrorKind::value,
                 fmt::format("gives field '{}' more than 2**64 elements.", shortened(name)));
        }
    }
    return count;
}

DType element_type(const DescrEntry& entry) {
    try {
        return parse_typestr(entry.typestr);
    } catch (const ArgumentError& error) {
        const bool object = error.kind() == ErrorKind::type;
        fail(error.kind(), fmt::format("gives field '{}' the type \"{}\"{}", shortened(entry.name),
                                       shortened(entry.typestr),
                                       object ? ": Python objects and strings have no meaning on a device."
                                              : ", which no device has. Use a type such as \"<f4\"."));
    }
}

/// Lays the entries out from offset 0; adds their size to `end`.
std::vector<StructField> lay_out(std::span<const DescrEntry> descr, std::uint64_t& end);

void add(const DescrEntry& entry, std::vector<StructField>& fields, std::uint64_t& end) {
    StructField field;
    field.name = entry.name;
    field.shape = entry.shape;
    const std::uint64_t count = count_of(entry.shape, entry.name);
    std::uint64_t element = 0;
    if (entry.typestr.empty()) {
        field.nested = lay_out(entry.nested, element);
        if (element > std::numeric_limits<std::uint32_t>::max()) element = 0;  // refused below, by the total
        field.dtype = {DType::Kind::opaque, static_cast<std::uint32_t>(element)};
    } else {
        field.dtype = element_type(entry);
        element = field.dtype.itemsize;
    }
    std::uint64_t bytes = 0;
    if (__builtin_mul_overflow(count, element, &bytes) || bytes > std::numeric_limits<std::uint32_t>::max() ||
        end + bytes > std::numeric_limits<std::uint32_t>::max()) {
        fail(ErrorKind::value,
             fmt::format("makes a structure of more than 4 GiB with field '{}'.", shortened(entry.name)));
    }
    field.offset = static_cast<std::uint32_t>(end);
    end += bytes;
    if (entry.name.empty()) return;  // padding
    if (std::ranges::count(fields, entry.name, &StructField::name) != 0)
        fail(ErrorKind::value, fmt::format("has two fields '{}'.", shortened(entry.name)));
    fields.push_back(std::move(field));
}

std::vector<StructField> lay_out(std::span<const DescrEntry> descr, std::uint64_t& end) {
    std::vector<StructField> fields;
    for (const DescrEntry& entry : descr) add(entry, fields, end);
    return fields;
}

std::string describe_field(const StructField& field) {
    std::string text = field.name + ": ";
    if (!field.shape.empty()) text += fmt::format("{} ", to_string(Dimensions(field.shape)));
    if (field.nested.empty()) {
        text += to_string(field.dtype);
    } else {
        text += to_string(StructLayout{field.dtype.itemsize, field.nested});
    }
    return text + fmt::format(" at {}", field.offset);
}

/// Whether the fields are elements of `dtype` from `at` on without gaps; moves `at` to their end.
bool follow(std::span<const StructField> fields, DType dtype, std::uint64_t base,
            std::uint64_t& at) noexcept {
    for (const StructField& field : fields) {
        if (field.bytes() == 0) continue;
        if (base + field.offset != at) return false;
        const std::uint64_t count = field.bytes() / field.dtype.itemsize;
        if (field.nested.empty()) {
            if (!same_elements(dtype, field.dtype)) return false;
            at += count * dtype.itemsize;
        } else {
            for (std::uint64_t i = 0; i < count; ++i) {
                if (!follow(field.nested, dtype, at, at)) return false;
            }
        }
    }
    return true;
}

}  // namespace

std::uint64_t StructField::bytes() const noexcept {
    std::uint64_t total = dtype.itemsize;
    for (const std::int64_t extent : shape) total *= static_cast<std::uint64_t>(extent);
    return total;
}

StructLayout parse_descr(std::span<const DescrEntry> descr, std::uint32_t bytes) {
    std::uint64_t end = 0;
    StructLayout layout{bytes, lay_out(descr, end)};
    if (end != bytes) {
        fail(ErrorKind::value, fmt::format("describes {} bytes, and 'typestr' says {}: this is a bug in the "
                                           "producing library.",
                                           end, bytes));
    }
    return layout;
}

std::string to_string(const StructLayout& layout) {
    std::string text = "{";
    for (const StructField& field : layout.fields) text += describe_field(field) + ", ";
    return text + fmt::format("{} bytes}}", layout.bytes);
}

bool is_sequence_of(const StructLayout& layout, DType dtype, int count) noexcept {
    std::uint64_t at = 0;
    return layout.bytes == dtype.itemsize * static_cast<std::uint32_t>(count) &&
           follow(layout.fields, dtype, 0, at) && at == layout.bytes;
}

}  // namespace bascule
