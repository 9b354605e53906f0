// Source: the DLPack specification 1.3, and its Python specification.
#include <algorithm>
#include <bit>

#include <fmt/format.h>

#include <bascule/interface/arrays/dlpack.hpp>
#include <bascule/interface/errors/rejection.hpp>
#include <bascule/interface/errors/wording.hpp>

namespace bascule::dlpack {
namespace {

/// The number, from 1, of the row of element_types for a DLPack type code and the logarithm of the bits; 0 if there is
/// no such row. Launches look here for each argument that is read through DLPack.
constexpr auto row_numbers = [] {
    std::array<std::array<std::uint8_t, 8>, 18> numbers{};
    for (std::size_t i = 0; i < element_types.size(); ++i) {
        const auto& [dtype, letter, name, cuda, header, code] = element_types[i];
        if (code >= 0)
            numbers[static_cast<std::size_t>(code)][std::countr_zero(8 * dtype.itemsize)] =
                static_cast<std::uint8_t>(i + 1);
    }
    return numbers;
}();

/// The name of a DLPack type code in messages.
std::string_view name_of(std::uint8_t code) noexcept {
    static constexpr std::string_view kinds[] = {"int",    "uint",    "float", "opaque handle",
                                                 "bfloat", "complex", "bool"};
    static constexpr std::string_view packed[] = {"float6_e2m3fn", "float6_e3m2fn", "float4_e2m1fn"};
    if (code < std::size(kinds)) return kinds[code];
    if (code >= 15 && code < 15 + std::size(packed)) return packed[code - 15];
    const auto row = std::ranges::find(element_types, int{code}, &ElementType::dlpack);
    return row == element_types.end() ? "a code that this Bascule does not know" : row->name;
}

[[noreturn]] void fail(ErrorKind kind, const char* field, const std::string& got, const std::string& why) {
    reject(kind, {.field = field, .got = got}, "'{}' of the DLPack tensor is {}: {}.", field, got, why);
}

[[noreturn]] void fail_value(const char* field, const std::string& got, const std::string& why) {
    fail(ErrorKind::value, field, got, why);
}

[[noreturn]] void fail_dtype(DataType type) {
    const std::string got = fmt::format("code {} ({}) of {} bits and {} lanes", type.code, name_of(type.code),
                                        type.bits, type.lanes);
    if (type.lanes != 1) {
        fail(ErrorKind::not_supported, "dtype", got,
             "only elements of one lane are taken; give the lanes an axis of their own");
    }
    fail(ErrorKind::type, "dtype", got,
         "no array of Bascule has such elements; convert them, or view their bytes as uint8");
}

DType read_dtype(DataType type) {
    const std::optional<DType> dtype = dtype_of(type);
    if (!dtype) fail_dtype(type);
    return *dtype;
}

void read_shape(const Tensor& tensor, ArrayView& view) {
    if (tensor.ndim < 0 || tensor.ndim > max_dimensions) {
        fail_value("ndim", std::to_string(tensor.ndim),
                   fmt::format("an array has from 0 to {} dimensions", max_dimensions));
    }
    if (tensor.ndim > 0 && tensor.shape == nullptr) {
        fail_value("shape", "NULL",
                   fmt::format("an array of {} dimensions needs that many extents", tensor.ndim));
    }
    for (std::int32_t d = 0; d < tensor.ndim; ++d) view.shape.push_back(tensor.shape[d]);
}

void read_pointer(const Tensor& tensor, ArrayView& view) {
    const auto base = static_cast<std::uint64_t>(reinterpret_cast<std::uintptr_t>(tensor.data));
    if (base == 0) {
        fail_value(
            "data", "NULL",
            fmt::format("a null pointer cannot hold an array of shape {}", bascule::to_string(view.shape)));
    }
    if (__builtin_add_overflow(base, tensor.byte_offset, &view.pointer)) {
        fail_value("byte_offset", std::to_string(tensor.byte_offset),
                   fmt::format("from {:#x} on that leaves the 64-bit address space", base));
    }
}

/// Fills in C-order strides for a tensor that has no strides.
void read_packed(ArrayView& view) {
    view.strides = c_strides(view.shape, view.dtype.itemsize);
    if (reach_of(view) == Reach::fits) return;
    fail_value("data", fmt::format("{:#x}", view.pointer),
               fmt::format("with shape {} the array would leave the 64-bit address space",
                           bascule::to_string(view.shape)));
}

/// Converts the strides to bytes and checks each product for overflow.
void read_strides(const Tensor& tensor, ArrayView& view) {
    bool wrong = false;
    view.strides = view.shape;
    for (int d = 0; d < view.ndim(); ++d) {
        const std::int64_t itemsize = view.dtype.itemsize;
        wrong = __builtin_mul_overflow(tensor.strides[d], itemsize, &view.strides[d]) || wrong;
    }
    if (!wrong && reach_of(view) == Reach::fits) return;
    const Dimensions strides({tensor.strides, static_cast<std::size_t>(tensor.ndim)});
    fail_value("strides", shortened(bascule::to_string(strides)),
               fmt::format("with shape {} and {} bytes per element the array would leave the 64-bit address "
                           "space",
                           bascule::to_string(view.shape), view.dtype.itemsize));
}

/// Reads an empty tensor. Its pointer and strides are not checked, because nothing is accessed through them.
void read_empty(const Tensor& tensor, ArrayView& view) noexcept {
    view.pointer = reinterpret_cast<std::uintptr_t>(tensor.data);
    view.strides = c_strides(view.shape, view.dtype.itemsize);
    view.c_contiguous = view.f_contiguous = true;
}

}  // namespace

ArrayView view_of(const Tensor& tensor) {
    ArrayView view;
    view.dtype = read_dtype(tensor.dtype);
    read_shape(tensor, view);
    view.size = count_elements(view.shape, view.dtype.itemsize, &fail_value);
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
    return number == 0 ? std::nullopt : std::optional(element_types[number - 1].dtype);
}

std::optional<DataType> data_type_of(DType dtype) noexcept {
    const ElementType* row = element_type(dtype);
    if (row == nullptr || row->dtype != dtype || row->dlpack < 0) return std::nullopt;
    return DataType{static_cast<std::uint8_t>(row->dlpack), static_cast<std::uint8_t>(8 * dtype.itemsize), 1};
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
