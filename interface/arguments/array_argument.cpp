#include <algorithm>
#include <cstring>

#include <fmt/format.h>

#include <bascule/interface/arguments/array_argument.hpp>
#include <bascule/interface/arguments/refusals.hpp>
#include <bascule/interface/arguments/view_layout.hpp>
#include <bascule/interface/arrays/array_views.hpp>
#include <bascule/interface/arrays/mask.hpp>
#include <bascule/interface/errors/wording.hpp>

namespace bascule {
namespace {

using Declared = ParameterType::Kind;
using Element = ParameterType::Element;
using Order = ParameterType::Order;

template <class... Values>
[[noreturn]] void refuse_array(const Refusal& refusal, const Parameter& parameter, const ArrayView& array,
                               const Values&... values) {
    refuse(refusal, parameter, describe(array), values...);
}

// --- Elements

/// Whether complex elements fit float2 or double2, which are the same types as cuFloatComplex and cuDoubleComplex.
bool is_complex_of(const ParameterType& declared, DType dtype) noexcept {
    return declared.lanes == 2 && dtype.kind == DType::Kind::complex &&
           declared.dtype.kind == DType::Kind::floating && dtype.itemsize == 2 * declared.dtype.itemsize;
}

/// The number of last axes that form one element: 1 for a vector type, more for an array of several dimensions.
int lane_axes(const ParameterType& declared) noexcept {
    return declared.row.empty() ? 1 : static_cast<int>(declared.row.size());
}

bool has_lanes(const ParameterType& declared, const ArrayView& array) noexcept {
    const int axes = lane_axes(declared);
    if (declared.lanes == 0 || array.ndim() < axes || !accepts(declared, array.dtype)) return false;
    const std::int64_t* last = array.shape.end() - axes;
    return declared.row.empty() ? *last == declared.lanes
                                : std::equal(last, array.shape.end(), declared.row.begin());
}

bool is_vector_struct(const ParameterType& declared, const ArrayView& array) noexcept {
    return declared.lanes > 0 && array.layout != nullptr &&
           is_sequence_of(*array.layout, declared.dtype, declared.lanes);
}

std::shared_ptr<const MaskView> without_last_axis(const MaskView& mask) {
    const auto view = std::make_shared<MaskView>(mask);
    view->strides.pop_back();
    return view;
}

/// The array as the kernel sees it, without the axes that form one element.
ArrayView without_lanes(const ArrayView& array, const ParameterType& declared) {
    ArrayView view = array;
    for (int axes = lane_axes(declared); axes > 0; --axes) {
        view.shape.pop_back();
        view.strides.pop_back();
        if (view.mask != nullptr) view.mask = without_last_axis(*view.mask);
    }
    view.dtype = {DType::Kind::opaque, array.dtype.itemsize * static_cast<std::uint32_t>(declared.lanes)};
    return view;
}

/// The declaration to advise for arrays of this dtype; empty if there is no such type.
std::string declaration_for(const ParameterType& declared, DType dtype) {
    std::string element(dtype == DType{DType::Kind::opaque, 2} ? "__nv_bfloat16" : cuda_name(dtype));
    if (dtype == declared.dtype && !declared.element.empty()) element = declared.element;
    if (element.empty()) return {};
    const char* constant = declared.constant ? "const " : "";
    if (declared.kind == Declared::pointer) return fmt::format("{}{}*", constant, element);
    const char* view = declared.kind == Declared::masked_view ? "masked_view" : "array_view";
    if (declared.rank == 1) return fmt::format("bascule::{}<{}{}>", view, constant, element);
    return fmt::format("bascule::{}<{}{}, {}>", view, constant, element, declared.rank);
}

/// Whether some of the last axes of an array of numbers have as many bytes together as one structure.
bool ends_in_structures(const ArrayView& array, std::uint64_t bytes) {
    std::uint64_t row = array.dtype.itemsize;
    for (int d = array.ndim() - 1; d >= 0 && row < bytes; --d)
        row *= static_cast<std::uint64_t>(array.shape[d]);
    return row == bytes && !array.empty();
}

/// Advice on how to convert the elements to the declared type without silent loss.
std::string how_to_convert(const ParameterType& declared, const ArrayView& array) {
    const DType given = array.dtype;
    const std::string type = to_typestr(declared.dtype).substr(1);
    if (declared.dtype.format != DType::Format::none || declared.dtype.kind == DType::Kind::opaque)
        return fmt::format("Convert it to {}", to_string(declared.dtype));
    if (given.kind == DType::Kind::complex && declared.dtype.kind != DType::Kind::complex) {
        const bool parts =
            declared.dtype.kind == DType::Kind::floating && 2 * declared.dtype.itemsize == given.itemsize;
        return parts
                   ? advice(fmt::format("x.view(\"{}\") has the real and the imaginary parts in turn", type),
                            "Pass the real and the imaginary parts in turn, as an array of twice the size")
                   : "A kernel that takes the complex type can write the real parts";
    }
    if (given.kind == DType::Kind::opaque && given.format == DType::Format::none) {
        if (array.layout == nullptr) {
            return advice(fmt::format("View the bytes as numbers, x.view(\"{}\")", type),
                          "Pass an array_view of such elements over the bytes");
        }
        return advice("Pass one field, x[\"name\"], to a bascule::array_view",
                      "Pass the elements of one member, by an array_view with their strides");
    }
    if (given.kind == DType::Kind::datetime || given.kind == DType::Kind::timedelta) {
        return advice(
            fmt::format("Its counts of units are x.view(\"i8\"), which .astype(\"{}\") converts", type),
            "Pass its counts of units as 64-bit integers, converted");
    }
    return advice(fmt::format("Convert it with .astype(\"{}\")", type),
                  fmt::format("Convert it to {}", to_string(declared.dtype)));
}

[[noreturn]] void refuse_elements(const Parameter& parameter, const ArrayView& array) {
    const ParameterType& declared = parameter.type;
    const std::uint32_t bytes = declared.dtype.itemsize;
    if (array.dtype.kind == DType::Kind::bit) refuse_array(refusals::bits, parameter, array);
    switch (declared.element_kind) {
        case Element::function:
            refuse_array(refusals::array_for_functions, parameter, array);
        case Element::pointer:
            refuse_array(refusals::array_for_pointers, parameter, array);
        case Element::structure:
        case Element::opaque:
            if (bytes == 0) refuse_array(refusals::undefined_elements, parameter, array);
            if (names_tensor_map(parameter)) refuse_array(refusals::other_kind, parameter, array);
            refuse_array(ends_in_structures(array, bytes) ? refusals::members_for_structures
                                                          : refusals::other_structures,
                         parameter, array, bytes);
        case Element::named:
        case Element::any:
            break;
    }
    if (!declared.row.empty())
        refuse_array(refusals::other_rows, parameter, array, to_string(Dimensions(declared.row)));
    if (declared.lanes > 0) {
        refuse_array(accepts(declared, array.dtype) ? refusals::other_lanes : refusals::no_lanes, parameter,
                     array);
    }
    const std::string declaration = declaration_for(declared, array.dtype);
    refuse_array(declaration.empty() ? refusals::other_elements : refusals::other_elements_declarable,
                 parameter, array, how_to_convert(declared, array), declaration);
}

// --- Access

/// Whether the parameter is a view that the prelude defines, which takes any strides.
bool is_own_view(const ParameterType& declared) noexcept {
    return declared.kind == Declared::array_view || declared.kind == Declared::masked_view;
}

void check_access(const Parameter& parameter, const ArrayView& array) {
    if (!array.writable_by_kernels() && !parameter.type.constant) {
        refuse_array(array.in_constant_memory                   ? refusals::constant_memory
                     : parameter.type.kind == Declared::untyped ? refusals::read_only_untyped
                                                                : refusals::read_only,
                     parameter, array);
    }
    const std::uint32_t alignment = parameter.type.alignment;
    if (!array.empty() && alignment > 1 && array.pointer % alignment != 0)
        refuse_array(refusals::unaligned, parameter, array, array.pointer, alignment);
}

std::string view_declaration(const ParameterType& declared, const ArrayView& array) {
    ParameterType view = declared;
    if (!is_own_view(declared)) view.kind = Declared::array_view;
    view.rank = array.ndim();
    const std::string text = declaration_for(view, declared.lanes > 0 ? declared.dtype : array.dtype);
    return text.empty() ? "bascule::array_view<T, N>" : text;
}

void check_lanes(const Parameter& parameter, const ArrayView& array) {
    std::int64_t stride = array.dtype.itemsize;
    for (int d = array.ndim() - 1; d >= array.ndim() - lane_axes(parameter.type) && !array.empty(); --d) {
        if (array.shape[d] != 1 && array.strides[d] != stride) {
            refuse_array(refusals::strided_lanes, parameter, array,
                         d == array.ndim() - 1 ? "the last axis" : fmt::format("axis {}", d),
                         array.strides[d]);
        }
        stride *= array.shape[d];
    }
}

void check_contiguous(const Parameter& parameter, const ArrayView& seen, const ArrayView& array) {
    if (seen.ndim() == array.ndim() ? array.c_contiguous : is_packed(seen, true)) return;
    // The elements of a vector type are on the last axis, which a flat view no longer has.
    const bool can_be_flat = parameter.type.lanes == 0 && is_dense(array);
    refuse_array(can_be_flat ? refusals::not_contiguous_dense : refusals::not_contiguous, parameter, array,
                 view_declaration(parameter.type, seen));
}

// --- Views

void check_rank(const Parameter& parameter, const ArrayView& seen, const ArrayView& array) {
    const ParameterType& declared = parameter.type;
    if (seen.ndim() == declared.rank) return;
    const bool own = is_own_view(declared);
    refuse_array(refusals::other_rank, parameter, array, own ? "view" : "span", declared.rank,
                 declared.rank == 1 ? "" : "s", seen.ndim(),
                 declared.lanes > 0 ? " besides the one inside the elements" : "",
                 own ? fmt::format(", or declare `{}`", view_declaration(declared, seen)) : "");
}

void check_broadcast(const Parameter& parameter, const ArrayView& seen, const ArrayView& array) {
    for (int d = 0; d < seen.ndim() && !seen.empty(); ++d) {
        if (seen.shape[d] == 1 || seen.strides[d] != 0 || parameter.type.constant) continue;
        refuse_array(refusals::broadcast, parameter, array, d);
    }
}

void check_stride_alignment(const Parameter& parameter, const ArrayView& seen, const ArrayView& array) {
    const auto alignment = static_cast<std::int64_t>(parameter.type.alignment);
    for (int d = 0; d < seen.ndim() && !seen.empty(); ++d) {
        if (alignment <= 1 || seen.shape[d] == 1 || seen.strides[d] % alignment == 0) continue;
        refuse_array(refusals::unaligned_stride, parameter, array, d, alignment);
    }
}

void check_view_bytes(const Parameter& parameter, const ArrayView& array) {
    const ViewBytes bytes = view_bytes(parameter.type.kind == Declared::masked_view, parameter.type.rank);
    if (parameter.bytes != bytes.plain && parameter.bytes != bytes.checked)
        refuse_array(refusals::other_view, parameter, array, bytes.plain);
}

/// The lanes of a vector type are one element, so a mask cannot make a single lane invalid.
void check_mask(const Parameter& parameter, const ArrayView& array) {
    if (array.mask == nullptr) return;
    if (parameter.type.kind != Declared::masked_view) refuse_array(refusals::ignored_mask, parameter, array);
    if (array.mask->strides.size() != array.ndim()) {
        throw Error(
            fmt::format("{} has a mask of {} dimensions: it was changed without its mask. Please report how "
                        "the array was made.",
                        describe(array), array.mask->strides.size()));
    }
    if (!has_lanes(parameter.type, array)) return;
    const int last = array.ndim() - 1;
    if (array.mask->strides[last] != 0)
        refuse_array(refusals::mask_of_lanes, parameter, array, cuda_name(array.dtype));
}

// --- Spans of CCCL

void check_order(const Parameter& parameter, const ArrayView& seen, const ArrayView& array) {
    const ParameterType& declared = parameter.type;
    if (declared.order == Order::strided) {
        for (int d = 0; d < seen.ndim() && !seen.empty(); ++d) {
            if (seen.shape[d] == 1) continue;
            if (seen.strides[d] <= 0 || seen.strides[d] % seen.dtype.itemsize != 0) {
                refuse_array(refusals::negative_strides, parameter, array, d, seen.strides[d],
                             view_declaration(declared, seen));
            }
        }
        return;
    }
    const bool right = declared.order == Order::right;
    if (!is_packed(seen, right)) {
        refuse_array(refusals::other_order, parameter, array, right ? "C" : "Fortran",
                     view_declaration(declared, seen));
    }
}

void check_extents(const Parameter& parameter, const ArrayView& seen, const ArrayView& array) {
    const ParameterType& declared = parameter.type;
    for (int d = 0; d < seen.ndim(); ++d) {
        const std::int64_t fixed = declared.static_extents[static_cast<std::size_t>(d)];
        if (fixed >= 0 && seen.shape[d] != fixed)
            refuse_array(refusals::other_extent, parameter, array, d, seen.shape[d], fixed);
        const auto stride = static_cast<std::uint64_t>(seen.strides[d]) / seen.dtype.itemsize;
        const bool strided = declared.order == Order::strided && seen.shape[d] > 1 && !seen.empty();
        const std::uint64_t largest = largest_integer(declared.index);
        if (static_cast<std::uint64_t>(seen.shape[d]) > largest || (strided && stride > largest))
            refuse_array(refusals::narrow_index, parameter, array, d, largest);
    }
}

void write_span(const Parameter& parameter, const ArrayView& seen, const ArrayView& array, std::byte* out) {
    const ParameterType& declared = parameter.type;
    if (!declared.layout)
        refuse_array(refusals::unread_layout, parameter, array, view_declaration(declared, seen));
    const ViewLayout& layout = *declared.layout;
    std::memset(out, 0, parameter.bytes);
    std::memcpy(out + layout.pointer, &seen.pointer, sizeof seen.pointer);
    for (const ViewLayout::Slot slot : layout.extents) {
        const std::int64_t extent = seen.shape[slot.axis];
        std::memcpy(out + slot.offset, &extent, layout.index_bytes);
    }
    for (const ViewLayout::Slot slot : layout.strides) {
        // An axis of extent 1 may have any stride; it must be positive.
        const bool steps = seen.shape[slot.axis] > 1 && !seen.empty();
        const std::int64_t stride = steps ? seen.strides[slot.axis] / seen.dtype.itemsize : 1;
        std::memcpy(out + slot.offset, &stride, layout.index_bytes);
    }
}

void write(const ArrayView& seen, const ArrayView& array, const Parameter& parameter, std::byte* out) {
    const ParameterType& declared = parameter.type;
    if (takes_addresses(declared)) {
        check_contiguous(parameter, seen, array);
        check_access(parameter, array);
        std::memcpy(out, &seen.pointer, sizeof seen.pointer);
        return;
    }
    check_rank(parameter, seen, array);
    check_broadcast(parameter, seen, array);
    if (is_own_view(declared)) {
        check_stride_alignment(parameter, seen, array);
        check_access(parameter, array);
        check_view_bytes(parameter, array);
        write_view(seen, parameter, out);
        return;
    }
    check_order(parameter, seen, array);
    check_extents(parameter, seen, array);
    check_access(parameter, array);
    write_span(parameter, seen, array, out);
}

}  // namespace

bool accepts(const ParameterType& declared, DType dtype) noexcept {
    if (dtype.kind == DType::Kind::bit) return false;
    switch (declared.element_kind) {
        case Element::any:
            return true;
        case Element::function:
            return false;
        case Element::structure:
        case Element::opaque:  // compares only the size, if the compiler reported it
            return declared.dtype.itemsize > 0 && dtype.kind == declared.dtype.kind &&
                   dtype.itemsize == declared.dtype.itemsize;
        case Element::named:
        case Element::pointer:
            break;
    }
    if (dtype.kind == DType::Kind::opaque) return same_elements(declared.dtype, dtype);
    if (dtype == declared.dtype) return true;
    if (dtype.itemsize != declared.dtype.itemsize) return false;
    switch (dtype.kind) {
        case DType::Kind::boolean:  // a byte of 0 or 1
            return declared.dtype.kind == DType::Kind::unsigned_integer && !declared.character;
        case DType::Kind::signed_integer:
        case DType::Kind::unsigned_integer:
            return declared.character;
        case DType::Kind::datetime:
        case DType::Kind::timedelta:
            return declared.dtype.kind == DType::Kind::signed_integer;
        default:
            return false;
    }
}

bool accepts(const ParameterType& declared, const ArrayView& array) noexcept {
    if (declared.lanes == 0) {
        const bool named_fields = array.layout != nullptr && !array.layout->fields.empty();
        const bool number = declared.dtype.format != DType::Format::none;
        return accepts(declared, array.dtype) && !(number && named_fields);
    }
    return is_complex_of(declared, array.dtype) || has_lanes(declared, array) ||
           is_vector_struct(declared, array);
}

void write_array(const ArrayView& array, const Parameter& parameter, std::byte* out) {
    const ParameterType& declared = parameter.type;
    check_mask(parameter, array);
    if (!accepts(declared, array)) refuse_elements(parameter, array);
    if (!has_lanes(declared, array)) {
        write(array, array, parameter, out);
        return;
    }
    check_lanes(parameter, array);
    write(without_lanes(array, declared), array, parameter, out);
}

}  // namespace bascule
