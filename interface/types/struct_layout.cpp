// Source: NumPy's array interface protocol, `descr`.
#include <algorithm>
#include <limits>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <bascule/interface/errors/rejection.hpp>
#include <bascule/interface/errors/wording.hpp>
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

constexpr std::size_t most_fields_told = 8;

/// The alignment that np.dtype(..., align=True) uses. It aligns a complex number like its parts, unlike
/// cuda::std::complex.
std::uint32_t alignment_of(const StructField& field) noexcept {
    if (!field.nested.empty()) {
        std::uint32_t widest = 1;
        for (const StructField& inner : field.nested) widest = std::max(widest, alignment_of(inner));
        return widest;
    }
    const DType dtype = field.dtype;
    if (dtype.kind == DType::Kind::opaque && dtype.format == DType::Format::none) return 1;
    return dtype.kind == DType::Kind::complex ? dtype.itemsize / 2 : dtype.itemsize;
}

std::uint64_t round_up(std::uint64_t value, std::uint64_t multiple) noexcept {
    return (value + multiple - 1) / multiple * multiple;
}

/// Appends text about each field whose offset differs. `bases`: the offsets of the enclosing structures.
void tell_places(const std::vector<StructField>& given, const std::vector<StructField>& declared,
                 const std::string& path, std::pair<std::uint64_t, std::uint64_t> bases,
                 std::string_view cpp_type, LayoutSource source, std::vector<std::string>& told) {
    for (std::size_t i = 0; i < given.size(); ++i) {
        const auto& [here, there] =
            std::pair(bases.first + given[i].offset, bases.second + declared[i].offset);
        const std::string name = path + given[i].name;
        if (given[i].offset != declared[i].offset) {
            told.push_back(told.empty()
                               ? fmt::format("field '{}' lies at byte {} in the {} and at byte {} in the "
                                             "kernel's `{}`",
                                             name, here, to_string(source), there, cpp_type)
                               : fmt::format("'{}' at byte {} and at byte {}", name, here, there));
        }
        tell_places(given[i].nested, declared[i].nested, name + ".", {here, there}, cpp_type, source, told);
    }
}

StructLayout in_order_of_places(StructLayout layout) {
    std::ranges::sort(layout.fields, {}, &StructField::offset);
    return layout;
}

std::vector<std::string_view> names_of(const StructLayout& layout) {
    std::vector<std::string_view> names;
    for (const StructField& field : layout.fields) names.emplace_back(field.name);
    return names;
}

StructLayout inside(const StructField& field) { return {field.dtype.itemsize, field.nested}; }

/// Advice on how to change the structure. Each change is tried first, and suggested only if it helps.
std::string advice_for(const StructLayout& given, const StructLayout& declared, LayoutSource source) {
    const StructLayout ordered = in_order_of_places(declared);
    const std::string order = fmt::format("{}", fmt::join(names_of(ordered), ", "));
    const bool same_order = names_of(ordered) == names_of(given);
    const bool aligned = place_in_order(ordered, true) == ordered;
    const bool is_dtype = source == LayoutSource::dtype;
    const auto differs = std::ranges::mismatch(given.fields, declared.fields, {}, inside, inside);
    const bool same_inside = differs.in1 == given.fields.end();
    const bool helps_unaligned = !same_order && same_inside && place_in_order(ordered, false) == ordered;
    if (is_dtype && aligned && !helps_unaligned) {
        const bool nested =
            std::ranges::any_of(given.fields, [](const StructField& each) { return !each.nested.empty(); });
        return fmt::format(
            "{} np.dtype(..., align=True){}.",
            same_order
                ? "Make the dtype aligned:"
                : fmt::format("List the fields in the order of the struct, {}, and align them:", order),
            nested ? ", and so the dtypes of structures inside it" : "");
    }
    if (!same_inside) {
        return fmt::format("For '{}': {}", differs.in1->name,
                           advice_for(inside(*differs.in1), inside(*differs.in2), source));
    }
    if (!same_order && (helps_unaligned || (!is_dtype && aligned)))
        return fmt::format("List the fields in the order of the struct: {}.", order);
    if (!is_dtype)
        return "Declare the members of the struct in the ctypes structure, with the same types and "
               "alignment.";
    std::vector<std::uint32_t> offsets;
    for (const StructField& field : ordered.fields) offsets.push_back(field.offset);
    return fmt::format(
        "Give the dtype the offsets and the size of the struct: np.dtype({{'names': ['{}'], 'formats': "
        "[...], 'offsets': [{}], 'itemsize': {}}}).",
        fmt::join(names_of(ordered), "', '"), fmt::join(offsets, ", "), declared.bytes);
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

StructLayout place_in_order(const StructLayout& layout, bool aligned) {
    StructLayout placed{0, layout.fields};
    std::uint64_t end = 0;
    std::uint32_t widest = 1;
    for (StructField& field : placed.fields) {
        const std::uint32_t alignment = aligned ? alignment_of(field) : 1;
        if (aligned && !field.nested.empty()) {
            StructLayout inner = place_in_order({field.dtype.itemsize, field.nested}, true);
            field.nested = std::move(inner.fields);
            field.dtype.itemsize = inner.bytes;
        }
        widest = std::max(widest, alignment);
        end = round_up(end, alignment);
        field.offset = static_cast<std::uint32_t>(end);
        end += field.bytes();
    }
    placed.bytes = static_cast<std::uint32_t>(round_up(end, widest));
    return placed;
}

std::string describe_difference(const StructLayout& given, const StructLayout& declared,
                                std::string_view cpp_type, LayoutSource source) {
    if (given == declared) return {};
    std::vector<std::string> told;
    tell_places(given.fields, declared.fields, "", {0, 0}, cpp_type, source, told);
    if (told.size() > most_fields_told) {
        const std::size_t more = told.size() - most_fields_told;
        told.resize(most_fields_told);
        told.push_back(fmt::format("and {} more", more));
    }
    if (told.empty() || given.bytes != declared.bytes) {
        told.push_back(
            given.bytes != declared.bytes
                ? fmt::format("the {} has {} bytes and the kernel's `{}` {}", to_string(source), given.bytes,
                              cpp_type, declared.bytes)
                : fmt::format("structures inside the {} and inside the kernel's `{}` differ in size",
                              to_string(source), cpp_type));
    }
    return fmt::format("{}. {}", fmt::join(told, ", "), advice_for(given, declared, source));
}

}  // namespace bascule
