// Source: the DLPack specification 1.3, and its text for Python.
#include <algorithm>
#include <array>
#include <bit>
#include <string_view>

#include <fmt/format.h>

#include <bascule/interface/arrays/dlpack.hpp>
#include <bascule/interface/errors/error.hpp>
#include <bascule/interface/errors/shortened.hpp>

namespace bascule::dlpack {
namespace {

using DTypeKind = DType::Kind;
using Format = DType::Format;

/// One row an element type: DLPack's code and bits, and ours.
struct Row {
    std::uint8_t code;
    std::uint8_t bits;
    DType dtype;
};

constexpr std::array rows = {
    Row{0, 8, {DTypeKind::signed_integer, 1}},
    Row{0, 16, {DTypeKind::signed_integer, 2}},
    Row{0, 32, {DTypeKind::signed_integer, 4}},
    Row{0, 64, {DTypeKind::signed_integer, 8}},
    Row{1, 8, {DTypeKind::unsigned_integer, 1}},
    Row{1, 16, {DTypeKind::unsigned_integer, 2}},
    Row{1, 32, {DTypeKind::unsigned_integer, 4}},
    Row{1, 64, {DTypeKind::unsigned_integer, 8}},
    Row{2, 16, {DTypeKind::floating, 2}},
    Row{2, 32, {DTypeKind::floating, 4}},
    Row{2, 64, {DTypeKind::floating, 8}},
    Row{4, 16, {DTypeKind::opaque, 2, Format::bfloat16}},
    Row{5, 64, {DTypeKind::complex, 8}},
    Row{5, 128, {DTypeKind::complex, 16}},
    Row{6, 8, {DTypeKind::boolean, 1}},
    Row{7, 8, {DTypeKind::opaque, 1, Format::float8_e3m4}},
    Row{8, 8, {DTypeKind::opaque, 1, Format::float8_e4m3}},
    Row{9, 8, {DTypeKind::opaque, 1, Format::float8_e4m3b11fnuz}},
    Row{10, 8, {DTypeKind::opaque, 1, Format::float8_e4m3fn}},
    Row{11, 8, {DTypeKind::opaque, 1, Format::float8_e4m3fnuz}},
    Row{12, 8, {DTypeKind::opaque, 1, Format::float8_e5m2}},
    Row{13, 8, {DTypeKind::opaque, 1, Format::float8_e5m2fnuz}},
    Row{14, 8, {DTypeKind::opaque, 1, Format::float8_e8m0fnu}},
};

/// By code and by the logarithm of the bits: the row's number, from 1; 0 where there is none. A launch looks
/// here once an argument.
constexpr auto row_numbers = [] {
    std::array<std::array<std::uint8_t, 8>, 18> numbers{};
    for (std::size_t i = 0; i < rows.size(); ++i) {
        numbers[rows[i].code][std::countr_zero(rows[i].bits)] = static_cast<std::uint8_t>(i + 1);
    }
    return numbers;
}();

/// What a person calls a type code.
std::string_view name_of(std::uint8_t code) noexcept {
    static constexpr std::array<std::string_view, 18> names = {"int",
                                                               "uint",
                                                               "float",
                                                               "opaque handle",
                                                               "bfloat",
                                                               "complex",
                                                               "bool",
                                                               "float8_e3m4",
                                                               "float8_e4m3",
                                                               "float8_e4m3b11fnuz",
                                                               "float8_e4m3fn",
                                                               "float8_e4m3fnuz",
                                                               "float8_e5m2",
                                                               "float8_e5m2fnuz",
                                                               "float8_e8m0fnu",
                                                               "float6_e2m3fn",
                                                               "float6_e3m2fn",
                                                               "float4_e2m1fn"};
    return code < names.size() ? names[code] : std::string_view("a code that this Bascule does not know");
}

[[noreturn]] void fail(ArgumentError::Kind kind, const char* field, const std::string& got,
                       const std::string& why) {
    throw ArgumentError(kind, fmt::format("'{}' of the DLPack tensor is {}: {}.", field, got, why),
                        {.field = field, .got = got});
}

[[noreturn]] void fail_dtype(DataType type) {
    const std::string got = fmt::format("code {} ({}) of {} bits and {} lanes", type.code, name_of(type.code),
                                        type.bits, type.lanes);
    if (type.lanes != 1) {
        fail(ArgumentError::Kind::not_supported, "dtype", got,
             "only elements of one lane are taken; give the lanes an axis of their own");
    }
    fail(ArgumentError::Kind::type, "dtype", got,
         "no array of Bascule has such elements; convert them, or view their bytes as uint8");
}

DType read_dtype(DataType type) {
    const std::optional<DType> dtype = dtype_of(type);
    if (!dtype) fail_dtype(type);
    return *dtype;
}

void read_shape(const Tensor& tensor, ArrayView& view) {
    if (tensor.ndim < 0 || tensor.ndim > max_dimensions) {
        fail(ArgumentError::Kind::value, "ndim", std::to_string(tensor.ndim),
             fmt::format("an array has from 0 to {} dimensions", max_dimensions));
    }
    if (tensor.ndim > 0 && tensor.shape == nullptr) {
        fail(ArgumentError::Kind::value, "shape", "NULL",
             fmt::format("an array of {} dimensions needs that many extents", tensor.ndim));
    }
    for (std::int32_t d = 0; d < tensor.ndim; ++d) view.shape.push_back(tensor.shape[d]);
}

/// Elements; 0 as soon as an extent is. Their bytes must fit 63 bits.
std::uint64_t count_elements(const Dimensions& shape, std::uint32_t itemsize) {
    bool overflow = false;
    bool empty = false;
    std::int64_t bytes = itemsize;
    for (const std::int64_t extent : shape) {
        if (extent < 0) {
            fail(ArgumentError::Kind::value, "shape", shortened(bascule::to_string(shape)),
                 "an extent cannot be negative");
        }
        empty = empty || extent == 0;
        overflow = __builtin_mul_overflow(bytes, extent, &bytes) || overflow;
    }
    if (empty) return 0;
    if (overflow) {
        fail(ArgumentError::Kind::value, "shape", shortened(bascule::to_string(shape)),
             fmt::format("with {} bytes per element that is more than 2**63 bytes", itemsize));
    }
    return static_cast<std::uint64_t>(bytes) / itemsize;
}

void read_pointer(const Tensor& tensor, ArrayView& view) {
    const auto base = static_cast<std::uint64_t>(reinterpret_cast<std::uintptr_t>(tensor.data));
    if (base == 0) {
        fail(ArgumentError::Kind::value, "data", "NULL",
             fmt::format("a null pointer cannot hold an array of shape {}", bascule::to_string(view.shape)));
    }
    if (__builtin_add_overflow(base, tensor.byte_offset, &view.pointer)) {
        fail(ArgumentError::Kind::value, "byte_offset", std::to_string(tensor.byte_offset),
             fmt::format("from {:#x} on that leaves the 64-bit address space", base));
    }
}

/// Without strides: C order.
void read_packed(ArrayView& view) {
    view.strides = view.shape;
    std::int64_t stride = view.dtype.itemsize;
    for (int d = view.ndim() - 1; d >= 0; --d) {
        view.strides[d] = stride;
        stride *= view.shape[d];
    }
    std::uint64_t end = 0;
    if (__builtin_add_overflow(view.pointer, static_cast<std::uint64_t>(stride) - 1, &end)) {
        fail(ArgumentError::Kind::value, "data", fmt::format("{:#x}", view.pointer),
             fmt::format("with shape {} the array would leave the 64-bit address space",
                         bascule::to_string(view.shape)));
    }
}

[[noreturn]] void fail_strides(const Tensor& tensor, const ArrayView& view) {
    const Dimensions strides({tensor.strides, static_cast<std::size_t>(tensor.ndim)});
    fail(ArgumentError::Kind::value, "strides", shortened(bascule::to_string(strides)),
         fmt::format("with shape {} and {} bytes per element the array would leave the 64-bit address space",
                     bascule::to_string(view.shape), view.dtype.itemsize));
}

/// The strides in bytes, and the lowest and highest address; each step is checked for overflow.
void read_strides(const Tensor& tensor, ArrayView& view) {
    std::uint64_t low = view.pointer;
    std::uint64_t high = view.pointer;
    bool wrong = __builtin_add_overflow(high, std::uint64_t{view.dtype.itemsize} - 1, &high);
    view.strides = view.shape;
    for (int d = 0; d < view.ndim(); ++d) {
        std::int64_t reach = 0;
        wrong =
            __builtin_mul_overflow(tensor.strides[d], std::int64_t{view.dtype.itemsize}, &view.strides[d]) ||
            wrong;
        wrong = __builtin_mul_overflow(view.shape[d] - 1, view.strides[d], &reach) || wrong;
        if (reach < 0) {
            wrong = __builtin_sub_overflow(low, -static_cast<std::uint64_t>(reach), &low) || wrong;
        } else {
            wrong = __builtin_add_overflow(high, static_cast<std::uint64_t>(reach), &high) || wrong;
        }
    }
    if (wrong) fail_strides(tensor, view);
}

/// Nothing follows an empty array's pointer and strides, so they are not looked at.
void read_empty(const Tensor& tensor, ArrayView& view) noexcept {
    view.pointer = reinterpret_cast<std::uintptr_t>(tensor.data);
    view.strides = c_strides(view.shape, view.dtype.itemsize);
    view.c_contiguous = view.f_contiguous = true;
}

}  // namespace

bool read_plainly(const Tensor& tensor, PlainArray& array, Dimensions* shape) noexcept {
    const std::optional<DType> dtype = dtype_of(tensor.dtype);
    if (!dtype || plain_traits(*dtype, false) == not_plain) return false;
    array.traits = traits_of(tensor.dtype);
    std::uint64_t end = 0;
    return read_plain_elements(tensor, array, shape) &&
           !__builtin_add_overflow(array.pointer, array.bytes, &end);
}

ArrayView view_of(const Tensor& tensor) {
    ArrayView view;
    view.dtype = read_dtype(tensor.dtype);
    read_shape(tensor, view);
    view.size = count_elements(view.shape, view.dtype.itemsize);
    if (view.empty()) {
        read_empty(tensor, view);
        return view;
    }
    read_pointer(tensor, view);
    if (tensor.strides != nullptr) {
        read_strides(tensor, view);
    } else {
        read_packed(view);
    }
    find_contiguity(view);
    return view;
}

std::optional<DType> dtype_of(DataType type) noexcept {
    if (type.lanes != 1 || type.code >= row_numbers.size() || !std::has_single_bit(type.bits)) {
        return std::nullopt;
    }
    const std::uint8_t number = row_numbers[type.code][std::countr_zero(type.bits)];
    return number == 0 ? std::nullopt : std::optional(rows[number - 1].dtype);
}

std::optional<DataType> data_type_of(DType dtype) noexcept {
    for (const Row& row : rows) {
        if (row.dtype == dtype) return DataType{row.code, row.bits, 1};
    }
    return std::nullopt;
}

std::string why_not_a_tensor(const ArrayView& view) {
    if (view.mask != nullptr)
        return "has a mask, and DLPack knows no masks: export its data and its mask apart";
    if (view.layout != nullptr) {
        return "has structures for elements, and DLPack knows no structures: view its bytes as uint8";
    }
    if (!data_type_of(view.dtype)) {
        return fmt::format("has elements of a type that is not exported ({}): view them as integers",
                           bascule::to_string(view.dtype));
    }
    for (int d = 0; d < view.ndim() && !view.empty(); ++d) {
        if (view.shape[d] > 1 && view.strides[d] % view.dtype.itemsize != 0) {
            return fmt::format(
                "has a stride of {} bytes along axis {}, and DLPack counts strides in elements of {} bytes: "
                "copy it",
                view.strides[d], d, view.dtype.itemsize);
        }
    }
    return {};
}

void element_strides(const ArrayView& view, std::span<std::int64_t> out) noexcept {
    for (int d = 0; d < view.ndim(); ++d) {
        out[static_cast<std::size_t>(d)] = view.strides[d] / view.dtype.itemsize;
    }
}

std::string to_string(DeviceId device) {
    switch (device.type) {
        case BASCULE_DL_CPU:
            return "host memory";
        case BASCULE_DL_CUDA:
            return fmt::format("CUDA device {}", device.id);
        case BASCULE_DL_CUDA_HOST:
            return "pinned host memory";
        case BASCULE_DL_CUDA_MANAGED:
            return "managed CUDA memory";
        default:
            return fmt::format("a device of DLPack type {} (number {})", device.type, device.id);
    }
}

}  // namespace bascule::dlpack
