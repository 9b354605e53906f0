#include <algorithm>

#include <fmt/format.h>

#include <bascule/interface/arrays/tensor_map.hpp>
#include <bascule/interface/errors/rejection.hpp>

namespace bascule {
namespace {

constexpr int first_float = 6;
constexpr const char* axes_of_array = "axis of the array";

/// The CUtensorMapDataType for elements of one kind and size. Loads copy bits, so integers without a type of their own and small
/// formats take the unsigned one of their size.
int type_in_map(const ArrayView& array) {
    using enum DType::Kind;
    // clang-format off
    static constexpr std::pair<DType, int> rows[] = {
        {{boolean, 1}, 0}, {{unsigned_integer, 1}, 0}, {{signed_integer, 1}, 0}, {{opaque, 1}, 0}, {{unsigned_integer, 2}, 1},
        {{signed_integer, 2}, 1}, {{unsigned_integer, 4}, 2}, {{signed_integer, 4}, 3}, {{unsigned_integer, 8}, 4}, {{signed_integer, 8}, 5},
        {{floating, 2}, first_float}, {{floating, 4}, 7}, {{floating, 8}, 8}, {{opaque, 2}, 9}};  // the last is bfloat16 as producers export it
    // clang-format on
    const DType without_format{array.dtype.kind, array.dtype.itemsize};
    for (const auto& [dtype, type] : rows) {
        if (dtype == without_format && array.layout == nullptr) return type;
    }
    reject_field(ErrorKind::type, "array",
                 "tensor maps have integers and floats of 1 to 8 bytes, got {}: pass a view as such numbers.",
                 describe(array));
}

void check_array(const ArrayView& array) {
    const auto refuse = [&](std::string_view why) {
        reject_field(ErrorKind::value, "array", "{}, got {}: pass another array, or a copy.", why,
                     describe(array));
    };
    if (array.mask != nullptr) refuse("a tensor map ignores which elements are valid");
    if (array.in_constant_memory) refuse("a tensor map is of global memory");
    if (array.empty()) refuse("a tensor map has at least one element");
    const int last = array.ndim() - 1;
    for (int axis = 0; axis <= last; ++axis) {
        const std::int64_t stride = array.strides[axis];
        if (array.shape[axis] == 1) continue;
        if (stride <= 0)
            refuse(fmt::format("axis {} has a stride of {} bytes, and those of a tensor map are positive",
                               axis, stride));
        if (axis == last && stride != static_cast<std::int64_t>(array.dtype.itemsize))
            refuse(fmt::format(
                "the elements of the last axis are {} bytes apart, and those of a tensor map follow each other",
                stride));
    }
}

void check_count(const char* field, const Dimensions& values, int count, std::string_view of_what) {
    if (values.size() == count) return;
    reject_field(ErrorKind::value, field, "'{}' has a number for each {}, {} of them, got {}.", field,
                 of_what, count, to_string(values));
}

/// The number as the unsigned 32-bit integer that the driver takes. Negative numbers become 0 and larger ones the
/// largest; the rules refuse these, too.
std::uint32_t narrowed(std::int64_t value) noexcept {
    return static_cast<std::uint32_t>(std::clamp<std::int64_t>(value, 0, 0xFFFF'FFFF));
}

void set_im2col(TensorMapDescription& made, const TensorMapOptions& options) {
    const int axes = made.rank - 2;
    check_count("box", options.box, 2, "part, the pixels and the channels of one load");
    made.pixels = narrowed(options.box[0]);
    made.channels = narrowed(options.box[1]);
    const auto set = [&](const Dimensions& corner, auto& to) {
        check_count("im2col", corner, axes, "axis between the first and the last");
        for (int axis = 0; axis < axes; ++axis)
            to[axis] =
                static_cast<int>(std::clamp<std::int64_t>(corner[axes - 1 - axis], -(1 << 30), 1 << 30));
    };
    set(options.im2col->lower, made.lower);
    set(options.im2col->upper, made.upper);
}

}  // namespace

TensorMapDescription describe_tensor_map(const ArrayView& array, const TensorMapOptions& options) {
    TensorMapDescription made;
    made.type = type_in_map(array);
    made.itemsize = array.dtype.itemsize;
    made.floating = made.type >= first_float;
    check_array(array);
    made.rank = array.ndim();
    made.address = array.pointer;
    made.swizzle = options.swizzle;
    made.interleave = options.interleave;
    made.l2_promotion = options.l2_promotion;
    made.fill = options.fill;
    made.is_im2col = options.im2col.has_value();
    if (made.rank < (made.is_im2col ? 3 : 1) || made.rank > TensorMapDescription::max_rank) return made;
    if (made.is_im2col)
        set_im2col(made, options);
    else
        check_count("box", options.box, made.rank, axes_of_array);
    const bool steps = options.element_strides.size() != 0;
    if (steps) check_count("element_strides", options.element_strides, made.rank, axes_of_array);
    for (int axis = 0; axis < made.rank; ++axis) {
        const int from = made.rank - 1 - axis;
        made.extents[axis] = static_cast<std::uint64_t>(array.shape[from]);
        if (!made.is_im2col) made.box[axis] = narrowed(options.box[from]);
        made.element_strides[axis] = steps ? narrowed(options.element_strides[from]) : 1;
        // An axis of one element may have any stride: it gets one that all maps take.
        if (axis > 0)
            made.strides[axis - 1] =
                array.shape[from] == 1 ? 32 : static_cast<std::uint64_t>(array.strides[from]);
    }
    if (made.interleave == 0 && made.element_strides[0] != 1)
        reject_field(ErrorKind::value, "element_strides",
                     "the last axis is read without steps unless 'interleave' is given: pass 1 there.");
    return made;
}

}  // namespace bascule
