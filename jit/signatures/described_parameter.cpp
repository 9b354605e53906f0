#include <algorithm>
#include <cstdlib>

#include <fmt/format.h>

#include <bascule/jit/signatures/described_parameter.hpp>

namespace bascule {
namespace {

struct ScalarRow {
    std::string_view name;
    DType dtype;
    bool character = false;
};

using DTypeKind = DType::Kind;
using Declared = ParameterType::Kind;
using Element = ParameterType::Element;

/// Names of scalar types in addition to those of element_types.
constexpr std::array other_scalars = {
    ScalarRow{"char", {DTypeKind::signed_integer, 1}, true},
    ScalarRow{"char8_t", {DTypeKind::unsigned_integer, 1}},
    ScalarRow{"long", {DTypeKind::signed_integer, 8}},
    ScalarRow{"unsigned long", {DTypeKind::unsigned_integer, 8}},
    ScalarRow{"wchar_t", {DTypeKind::signed_integer, 4}},
    ScalarRow{"char16_t", {DTypeKind::unsigned_integer, 2}},
    ScalarRow{"char32_t", {DTypeKind::unsigned_integer, 4}},
};

std::optional<ScalarRow> scalar_named(std::string_view name) {
    if (name.empty()) return std::nullopt;
    if (const auto row = std::ranges::find(other_scalars, name, &ScalarRow::name); row != other_scalars.end())
        return *row;
    const auto row = std::ranges::find(element_types, name, &ElementType::cuda);
    return row == element_types.end() ? std::nullopt : std::optional(ScalarRow{name, row->dtype});
}

/// CUDA's vector types by prefix; the number of lanes follows, and for some an alignment.
struct VectorRow {
    std::string_view prefix;
    std::string_view lane;
};

constexpr std::array vectors = {
    VectorRow{"char", "signed char"},
    VectorRow{"uchar", "unsigned char"},
    VectorRow{"short", "short"},
    VectorRow{"ushort", "unsigned short"},
    VectorRow{"int", "int"},
    VectorRow{"uint", "unsigned int"},
    VectorRow{"long", "long"},
    VectorRow{"ulong", "unsigned long"},
    VectorRow{"longlong", "long long"},
    VectorRow{"ulonglong", "unsigned long long"},
    VectorRow{"float", "float"},
    VectorRow{"double", "double"},
};

struct Vector {
    std::string_view lane;
    int lanes = 0;
};

/// "float4" -> {"float", 4}; also "double4_16a", "__half2" and dim3. Other types have no lanes.
Vector vector_named(std::string_view name) {
    if (name == "__half2") return {"__half", 2};
    if (name == "__nv_bfloat162") return {"__nv_bfloat16", 2};
    if (name == "dim3") return {"unsigned int", 3};
    // Two or four one-byte numbers. (fp4x2 and fp6x4 pack their bits: they are bytes without a dtype.)
    for (const std::string_view lane : {"__nv_fp8_e4m3", "__nv_fp8_e5m2", "__nv_fp8_e8m0"}) {
        for (const int lanes : {2, 4}) {
            if (name == fmt::format("__nv_fp8x{}{}", lanes, lane.substr(8))) return {lane, lanes};
        }
    }
    if (name.ends_with("_16a") || name.ends_with("_32a")) name.remove_suffix(4);
    if (name.empty() || name.back() < '1' || name.back() > '4') return {};
    const std::string_view prefix = name.substr(0, name.size() - 1);
    const auto row = std::ranges::find(vectors, prefix, &VectorRow::prefix);
    return row == vectors.end() ? Vector{} : Vector{row->lane, name.back() - '0'};
}

void take(const ScalarRow& row, ParameterType& out) {
    out.dtype = row.dtype;
    out.character = row.character;
}

bool name_complex(const DemangledType& type, ParameterType& out) {
    if (type.arguments.size() != 1) return false;
    if (type.name != "cuda::std::complex" && type.name != "thrust::complex") return false;
    const std::string& part = type.arguments[0].name;
    if (part != "float" && part != "double") return false;
    out.dtype = {DTypeKind::complex, part == "float" ? 8u : 16u};
    return true;
}

bool name_element(const DemangledType& type, TypeFacts facts, ParameterType& out);

/// A cuda::std::array of numbers has one lane for each element.
bool name_array(const DemangledType& type, TypeFacts facts, ParameterType& out) {
    if (type.name != "cuda::std::array" || type.arguments.size() != 2) return false;
    const auto length = static_cast<std::uint32_t>(std::atoi(type.arguments[1].literal.c_str()));
    if (length == 0 || facts.bytes % length != 0) return false;
    ParameterType element;
    const TypeFacts its{facts.bytes / length, facts.alignment, TypeForm::named};
    if (!name_element(type.arguments[0], its, element) || element.lanes != 0) return false;
    if (element.dtype.itemsize != its.bytes) return false;
    out.dtype = element.dtype;
    out.character = element.character;
    out.lanes = static_cast<int>(length);
    return true;
}

/// Fills in dtype, lanes and flags; returns false if the type has no dtype.
bool name_element(const DemangledType& type, TypeFacts facts, ParameterType& out) {
    if (type.is_pointer() || type.is_closed) return false;
    if (name_complex(type, out) || name_array(type, facts, out)) return true;
    if (type.name == "bascule::unaligned" && type.arguments.size() == 1) {
        return name_element(type.arguments[0], {facts.bytes, facts.alignment, TypeForm::named}, out);
    }
    if (facts.form >= TypeForm::signed_enumeration && facts.form <= TypeForm::bool_enumeration) {
        const DTypeKind kind = facts.form == TypeForm::signed_enumeration     ? DTypeKind::signed_integer
                               : facts.form == TypeForm::unsigned_enumeration ? DTypeKind::unsigned_integer
                                                                              : DTypeKind::boolean;
        out.dtype = {kind, facts.bytes};
        return true;
    }
    if (!type.arguments.empty()) return false;
    if (const auto row = scalar_named(type.name); row && row->dtype.itemsize == facts.bytes) {
        take(*row, out);
        return true;
    }
    const Vector vector = vector_named(type.name);
    const auto lane = scalar_named(vector.lane);
    if (!lane || lane->dtype.itemsize * static_cast<std::uint32_t>(vector.lanes) != facts.bytes) {
        return false;
    }
    take(*lane, out);
    out.lanes = vector.lanes;
    return true;
}

std::string spell_unqualified(DemangledType type) {
    type.constant = type.is_volatile = false;
    return spell(type);
}

void describe_elements(const DemangledType& element, TypeFacts facts, ParameterType& out) {
    out.element = spell_unqualified(element);
    out.constant = element.constant;
    out.alignment = facts.alignment;
    if (name_element(element, facts, out)) return;
    out.dtype = {DTypeKind::opaque, facts.bytes};
    if (element.name == "void") {
        out.element_kind = Element::any;
    } else if (element.is_pointer()) {
        out.element_kind = Element::pointer;
        out.dtype = {DTypeKind::unsigned_integer, 8};
    } else {
        out.element_kind = facts.form == TypeForm::structure ? Element::structure : Element::opaque;
    }
}

std::int64_t static_extent(const DemangledType& argument) {
    // dynamic_extent is the largest size_t.
    return static_cast<std::int64_t>(std::strtoull(argument.literal.c_str(), nullptr, 10));
}

/// cuda::std::span<T, N>.
bool describe_span(const DemangledType& type, ParameterType& out) {
    if (type.name != "cuda::std::span" || type.arguments.size() != 2) return false;
    out.static_extents = {static_extent(type.arguments[1])};
    out.index = {DTypeKind::unsigned_integer, 8};
    out.rank = 1;
    return true;
}

/// cuda::std::mdspan<T, extents<I, N...>, layout, default_accessor<T>>.
bool describe_mdspan(const DemangledType& type, ParameterType& out) {
    if (type.name != "cuda::std::mdspan" || type.arguments.size() != 4) return false;
    const DemangledType& extents = type.arguments[1];
    const std::string& layout = type.arguments[2].name;
    if (extents.name != "cuda::std::extents" || extents.arguments.empty()) return false;
    if (type.arguments[3].name != "cuda::std::default_accessor") return false;
    if (layout == "cuda::std::layout_left") {
        out.order = ParameterType::Order::left;
    } else if (layout == "cuda::std::layout_stride") {
        out.order = ParameterType::Order::strided;
    } else if (layout != "cuda::std::layout_right") {
        return false;
    }
    const auto index = scalar_named(extents.arguments[0].name);
    if (!index) return false;
    out.index = index->dtype;
    for (std::size_t i = 1; i < extents.arguments.size(); ++i) {
        out.static_extents.push_back(static_extent(extents.arguments[i]));
    }
    out.rank = static_cast<int>(out.static_extents.size());
    return true;
}

/// Parses the numbers in "[3][4]"; empty if one of them is not positive.
std::vector<std::int64_t> extents_in(std::string_view text) {
    std::vector<std::int64_t> extents;
    while (text.starts_with('[')) {
        extents.push_back(std::atoll(std::string(text.substr(1)).c_str()));
        if (extents.back() <= 0) return {};
        text.remove_prefix(std::min(text.find(']') + 1, text.size()));
    }
    return text.empty() ? extents : std::vector<std::int64_t>{};
}

/// Describes `float (*) [3][4]`, to which `float x[][3][4]` decays: arrays whose last axes have 3 and 4 elements.
void describe_rows(const DemangledType& type, std::size_t star, TypeFacts row, ParameterType& out) {
    out.kind = Declared::pointer;
    const std::vector<std::int64_t> extents = extents_in(std::string_view(type.name).substr(star + 5));
    const DemangledType element = parse_type(std::string_view(type.name).substr(0, star));
    std::int64_t length = 1;
    for (const std::int64_t extent : extents) length *= extent;
    if (!extents.empty()) {
        describe_elements(element, {row.bytes / static_cast<std::uint32_t>(length), row.alignment, row.form},
                          out);
    }
    if (!extents.empty() && out.element_kind == Element::named && out.lanes == 0) {
        out.lanes = static_cast<int>(length);
        if (extents.size() > 1) out.row = extents;
    } else {
        out.element_kind = Element::opaque;
        out.dtype = {DTypeKind::opaque, row.bytes};
        out.lanes = 0;
    }
    out.element = spell_unqualified(element) + type.name.substr(star + 5);
    out.constant = element.constant;
    out.alignment = row.alignment;
}

/// The alignment of vector types such as float4; the name of double4_32a contains it.
std::uint32_t alignment_of_vector(std::string_view name, std::uint32_t lane, int lanes) {
    if (name.ends_with("_16a")) return 16;
    if (name.ends_with("_32a")) return 32;
    if (name == "dim3" || lanes == 1 || lanes == 3) return lane;
    return std::min(16U, lane * static_cast<std::uint32_t>(lanes));
}

}  // namespace

ParameterType describe_parameter(const DemangledType& type, TypeFacts whole, TypeFacts element) {
    ParameterType out;
    if (type.is_pointer()) {
        out.kind = Declared::pointer;
        describe_elements(type.pointee[0], element, out);
    } else if (const std::size_t star = type.name.find(" (*) ["); type.is_closed && star != type.name.npos) {
        describe_rows(type, star, element, out);
    } else if (type.is_function) {
        out.kind = Declared::pointer;
        out.element_kind = Element::function;
    } else if ((type.name == "bascule::array_view" || type.name == "bascule::masked_view") &&
               type.arguments.size() == 2) {
        out.kind = type.name == "bascule::array_view" ? Declared::array_view : Declared::masked_view;
        out.rank = std::atoi(type.arguments[1].literal.c_str());
        describe_elements(type.arguments[0], element, out);
    } else if (describe_span(type, out) || describe_mdspan(type, out)) {
        out.kind = Declared::span;
        describe_elements(type.arguments[0], element, out);
    } else if (name_element(type, whole, out)) {
        out.kind = out.lanes > 0 ? Declared::vector : Declared::scalar;
        out.alignment = whole.alignment;
    } else {
        out.kind = whole.form == TypeForm::structure ? Declared::structure : Declared::opaque;
        out.alignment = whole.alignment;
        out.dtype = {DTypeKind::opaque, whole.bytes};
        out.element = spell(type);
    }
    return out;
}

TypeFacts facts_of_name(const DemangledType& type) {
    if (type.is_pointer() || type.is_function) return {8, 8, TypeForm::named};
    if (type.name == "cuda::std::array" && type.arguments.size() == 2) {
        TypeFacts facts = facts_of_name(type.arguments[0]);
        facts.bytes *= static_cast<std::uint32_t>(std::atoi(type.arguments[1].literal.c_str()));
        facts.form = TypeForm::structure;
        return facts;
    }
    if (ParameterType complex; name_complex(type, complex))
        return {complex.dtype.itemsize, complex.dtype.itemsize, TypeForm::structure};
    if (type.is_closed || !type.arguments.empty()) return {};
    if (const auto row = scalar_named(type.name))
        return {row->dtype.itemsize, row->dtype.itemsize, TypeForm::named};
    const Vector vector = vector_named(type.name);
    const auto lane = scalar_named(vector.lane);
    if (!lane) return {};
    const std::uint32_t bytes = lane->dtype.itemsize;
    return {bytes * static_cast<std::uint32_t>(vector.lanes),
            alignment_of_vector(type.name, bytes, vector.lanes), TypeForm::structure};
}

}  // namespace bascule
