// Slices follow Python's rules. A view of another shape exists if each group of axes that is merged or split is evenly
// spaced.
#include <algorithm>
#include <numeric>

#include <fmt/format.h>

#include <bascule/interface/arrays/array_views.hpp>
#include <bascule/interface/errors/rejection.hpp>
#include <bascule/interface/errors/wording.hpp>

namespace bascule {
namespace {

using EntryKind = IndexEntry::Kind;

[[noreturn]] void fail(const std::string& message) {
    throw ArgumentError(ErrorKind::index, message, {.field = "index"});
}

/// The number of axes that the index selects by an integer or a slice.
int count_named(std::span<const IndexEntry> index) {
    int named = 0;
    int ellipses = 0;
    for (const IndexEntry& entry : index) {
        named += entry.kind == EntryKind::integer || entry.kind == EntryKind::slice ? 1 : 0;
        ellipses += entry.kind == EntryKind::ellipsis ? 1 : 0;
    }
    if (ellipses > 1) fail("an index can only have a single ellipsis ('...').");
    return named;
}

/// Builds the resulting view one axis at a time.
class Builder {
  public:
    explicit Builder(const ArrayView& array) : array_(array), view_(array) {
        view_.shape = Dimensions{};
        view_.strides = Dimensions{};
    }

    void keep(int axes) {
        for (int i = 0; i < axes; ++i, ++axis_) push(array_.shape[axis_], array_.strides[axis_]);
    }

    void add_new_axis() { push(1, 0); }

    void take(std::int64_t index) {
        const std::int64_t extent = array_.shape[axis_];
        const std::int64_t position = index < 0 ? index + extent : index;
        if (position < 0 || position >= extent) {
            fail(fmt::format("index {} is out of bounds for axis {} with size {}.", index, axis_, extent));
        }
        offset_ += static_cast<std::uint64_t>(position) * static_cast<std::uint64_t>(array_.strides[axis_]);
        ++axis_;
    }

    void slice(const IndexEntry& entry) {
        const std::int64_t extent = array_.shape[axis_];
        const std::int64_t stride = array_.strides[axis_];
        ++axis_;
        const bool down = entry.step < 0;
        // The bounds that start and stop are clamped to; a slice with a negative step may end before the first element.
        const std::int64_t low = down ? -1 : 0;
        const std::int64_t high = down ? extent - 1 : extent;
        const auto placed = [&](std::int64_t position) {
            if (position < 0) position += extent;  // cannot overflow: the signs differ
            return std::clamp(position, low, high);
        };
        const std::int64_t start = entry.start ? placed(*entry.start) : (down ? high : low);
        const std::int64_t stop = entry.stop ? placed(*entry.stop) : (down ? low : high);
        const std::int64_t distance = down ? start - stop : stop - start;
        if (distance <= 0) {
            push(0, stride);
            return;
        }
        // Unsigned, because the step may be INT64_MIN, whose negation overflows.
        const std::uint64_t step =
            down ? -static_cast<std::uint64_t>(entry.step) : static_cast<std::uint64_t>(entry.step);
        const std::uint64_t count = (static_cast<std::uint64_t>(distance) - 1) / step + 1;
        offset_ += static_cast<std::uint64_t>(start) * static_cast<std::uint64_t>(stride);
        // The product overflows only if the step goes beyond the array; then one element is left, and its stride is not
        // used.
        push(static_cast<std::int64_t>(count),
             static_cast<std::int64_t>(static_cast<std::uint64_t>(stride) *
                                       static_cast<std::uint64_t>(entry.step)));
    }

    ArrayView finish() {
        view_.size = 1;
        for (const std::int64_t extent : view_.shape) view_.size *= static_cast<std::uint64_t>(extent);
        // An empty view keeps the array's address: the offset could lead outside the allocation.
        if (!view_.empty()) view_.pointer = array_.pointer + offset_;
        find_contiguity(view_);
        return view_;
    }

  private:
    void push(std::int64_t extent, std::int64_t stride) {
        view_.shape.push_back(extent);
        view_.strides.push_back(stride);
    }

    const ArrayView& array_;
    ArrayView view_;
    int axis_ = 0;  // the next axis of the array that the index selects from
    std::uint64_t offset_ = 0;
};

[[noreturn]] void fail_shape(const char* field, const std::string& message) {
    throw ArgumentError(ArgumentError::Kind::value, message, {.field = field});
}

[[noreturn]] void fail_size(const ArrayView& array, const Dimensions& shape) {
    fail_shape("shape", fmt::format("cannot reshape an array of size {} into shape {}.", array.size,
                                    to_string(shape)));
}

/// The shape with its -1 replaced by the extent that follows from the number of elements.
Dimensions complete(const ArrayView& array, const Dimensions& shape) {
    std::uint64_t known = 1;
    int unknown = -1;
    for (int d = 0; d < shape.size(); ++d) {
        if (shape[d] < -1) {
            fail_shape("shape", fmt::format("the shape {} has the extent {}: only -1 may be negative, for "
                                            "the one that follows from the others.",
                                            to_string(shape), shape[d]));
        }
        if (shape[d] == -1) {
            if (unknown >= 0) fail_shape("shape", "can only specify one unknown dimension (-1).");
            unknown = d;
        } else if (__builtin_mul_overflow(known, static_cast<std::uint64_t>(shape[d]), &known)) {
            fail_size(array, shape);
        }
    }
    Dimensions completed = shape;
    if (unknown >= 0) {
        if (known == 0 || array.size % known != 0) fail_size(array, shape);
        completed[unknown] = static_cast<std::int64_t>(array.size / known);
    } else if (known != array.size) {
        fail_size(array, shape);
    }
    return completed;
}

/// Finds strides that give the elements of a non-empty array another shape; false if that needs a copy.
bool find_strides(const ArrayView& array, const Dimensions& shape, Dimensions& strides) {
    Dimensions extents;  // the array's axes except those of extent 1, whose strides have no effect
    Dimensions steps;
    for (int d = 0; d < array.ndim(); ++d) {
        if (array.shape[d] == 1) continue;
        extents.push_back(array.shape[d]);
        steps.push_back(array.strides[d]);
    }
    strides = shape;
    int from = 0;  // the first axis of the group in the array
    int to = 0;    // the first axis of the group in the new shape
    while (from < extents.size() && to < shape.size()) {
        std::int64_t have = extents[from];
        std::int64_t want = shape[to];
        int from_end = from + 1;
        int to_end = to + 1;
        while (have != want) {  // ends, because both shapes have the same number of elements
            if (want < have) {
                want *= shape[to_end++];
            } else {
                have *= extents[from_end++];
            }
        }
        for (int d = from; d + 1 < from_end; ++d) {
            if (steps[d] != extents[d + 1] * steps[d + 1]) return false;
        }
        std::int64_t step = steps[from_end - 1];
        for (int d = to_end - 1; d >= to; --d) {
            strides[d] = step;
            step *= shape[d];
        }
        from = from_end;
        to = to_end;
    }
    // The axes that remain have extent 1.
    const std::int64_t last = to > 0 ? strides[to - 1] : array.dtype.itemsize;
    for (; to < shape.size(); ++to) strides[to] = last;
    return true;
}

}  // namespace

ArrayView index_array(const ArrayView& array, std::span<const IndexEntry> index) {
    const int named = count_named(index);
    if (named > array.ndim()) {
        fail(fmt::format("too many indices for array: array is {}-dimensional, but {} were indexed.",
                         array.ndim(), named));
    }
    const auto is_new = [](const IndexEntry& entry) { return entry.kind == EntryKind::new_axis; };
    const auto is_taken = [](const IndexEntry& entry) { return entry.kind == EntryKind::integer; };
    const auto dimensions =
        array.ndim() + std::ranges::count_if(index, is_new) - std::ranges::count_if(index, is_taken);
    if (dimensions > max_dimensions) {
        fail(fmt::format("number of dimensions must be within [0, {}], indexing result would have {}.",
                         max_dimensions, dimensions));
    }
    Builder builder(array);
    int rest = array.ndim() - named;  // the axes of the ellipsis, or those after the last entry
    for (const IndexEntry& entry : index) {
        switch (entry.kind) {
            case EntryKind::integer:
                builder.take(entry.integer);
                break;
            case EntryKind::slice:
                builder.slice(entry);
                break;
            case EntryKind::ellipsis:
                builder.keep(rest);
                rest = 0;
                break;
            case EntryKind::new_axis:
                builder.add_new_axis();
                break;
        }
    }
    builder.keep(rest);
    return builder.finish();
}

ArrayView field_of(const ArrayView& array, const std::string& name) {
    if (array.layout == nullptr || array.layout->fields.empty()) {
        fail(fmt::format("x[\"{}\"] selects a field of structures, and {} has no fields.", shortened(name),
                         describe(array)));
    }
    const std::vector<StructField>& fields = array.layout->fields;
    const auto field = std::ranges::find(fields, name, &StructField::name);
    if (field == fields.end()) {
        reject(ErrorKind::value, {.field = "index", .got = name},
               "no field of name '{}': the elements are {}.", shortened(name), to_string(*array.layout));
    }
    ArrayView view = array;
    if (!view.empty()) view.pointer += field->offset;
    view.dtype = field->dtype;
    view.layout =
        field->nested.empty()
            ? nullptr
            : std::make_shared<const StructLayout>(StructLayout{field->dtype.itemsize, field->nested});
    if (field->shape.size() > static_cast<std::size_t>(max_dimensions - view.ndim())) {
        fail("an array has at most 64 dimensions.");
    }
    const Dimensions inner(field->shape);
    const Dimensions steps = c_strides(inner, field->dtype.itemsize);
    for (int d = 0; d < inner.size(); ++d) {
        view.shape.push_back(inner[d]);
        view.strides.push_back(steps[d]);
        view.size *= static_cast<std::uint64_t>(inner[d]);
    }
    find_contiguity(view);
    return view;
}

ArrayView reshape(const ArrayView& array, const Dimensions& shape) {
    ArrayView view = array;
    view.shape = complete(array, shape);
    if (array.c_contiguous) {
        view.strides = c_strides(view.shape, array.dtype.itemsize);
    } else if (!find_strides(array, view.shape, view.strides)) {
        fail_shape("shape",
                   fmt::format("an array of shape {} and strides {} has no view of shape {}. Copy it first: "
                               "x.copy().reshape(...).",
                               to_string(array.shape), to_string(array.strides), to_string(view.shape)));
    }
    find_contiguity(view);
    return view;
}

ArrayView transpose(const ArrayView& array, std::span<const std::int64_t> axes) {
    const auto ndim = static_cast<std::int64_t>(array.ndim());
    if (static_cast<std::int64_t>(axes.size()) != ndim) {
        fail_shape("axes", fmt::format("axes don't match array: there are {} for an array of {} dimensions.",
                                       axes.size(), ndim));
    }
    ArrayView view = array;
    std::vector<bool> seen(axes.size());
    for (std::size_t d = 0; d < axes.size(); ++d) {
        const std::int64_t axis = axes[d] < 0 ? axes[d] + ndim : axes[d];
        if (axis < 0 || axis >= ndim) {
            fail_shape("axes",
                       fmt::format("axis {} is out of bounds for array of dimension {}.", axes[d], ndim));
        }
        if (seen[static_cast<std::size_t>(axis)]) {
            fail_shape("axes", fmt::format("repeated axis in transpose: {}.", axes[d]));
        }
        seen[static_cast<std::size_t>(axis)] = true;
        view.shape[static_cast<int>(d)] = array.shape[static_cast<int>(axis)];
        view.strides[static_cast<int>(d)] = array.strides[static_cast<int>(axis)];
    }
    find_contiguity(view);
    return view;
}

ArrayView transpose(const ArrayView& array) {
    std::vector<std::int64_t> axes;
    for (int d = array.ndim() - 1; d >= 0; --d) axes.push_back(d);
    return transpose(array, axes);
}

ArrayView broadcast_to(const ArrayView& array, const Dimensions& shape) {
    ArrayView view = array;
    view.shape = shape;
    view.strides = shape;
    view.size = 1;
    bool broadcasts = true;
    for (int d = shape.size() - 1, from = array.ndim() - 1; d >= 0; --d, --from) {
        const bool repeated = from < 0 || array.shape[from] == 1;
        broadcasts = broadcasts && (repeated || array.shape[from] == shape[d]);
        view.strides[d] = repeated ? 0 : array.strides[from];
        view.size *= static_cast<std::uint64_t>(shape[d]);
    }
    for (int from = array.ndim() - shape.size() - 1; from >= 0; --from)
        broadcasts = broadcasts && array.shape[from] == 1;
    if (!broadcasts) {
        fail_shape("value", fmt::format("cannot assign an array of shape {} to elements of shape {}: counted "
                                        "from the last axis, extents must be equal, or 1 in the assigned "
                                        "array.",
                                        to_string(array.shape), to_string(shape)));
    }
    find_contiguity(view);
    return view;
}

std::vector<std::int64_t> axes_in_memory_order(const ArrayView& array) {
    std::vector<std::int64_t> axes(static_cast<std::size_t>(array.ndim()));
    std::iota(axes.begin(), axes.end(), 0);
    const auto stride_of = [&](std::int64_t axis) { return array.strides[static_cast<int>(axis)]; };
    std::ranges::stable_sort(axes, std::ranges::greater(), stride_of);
    return axes;
}

bool is_dense(const ArrayView& array) { return transpose(array, axes_in_memory_order(array)).c_contiguous; }

ArrayView view_as(const ArrayView& array, DType dtype, std::shared_ptr<const StructLayout> layout) {
    ArrayView view = array;
    view.dtype = dtype;
    view.layout = std::move(layout);
    const std::int64_t old_size = array.dtype.itemsize;
    const std::int64_t new_size = dtype.itemsize;
    if (old_size == new_size) return view;
    const int last = array.ndim() - 1;
    if (last < 0) {
        fail_shape("dtype",
                   fmt::format("an array of no dimensions keeps its item size of {} bytes: {} has {}.",
                               old_size, to_string(dtype), new_size));
    }
    if (array.shape[last] != 1 && !array.empty() && array.strides[last] != old_size) {
        fail_shape("dtype", fmt::format("to change to a dtype of a different size, the last axis must be "
                                        "contiguous; its stride is {} bytes for elements of {}. Copy the "
                                        "array first: x.copy().view(...).",
                                        array.strides[last], old_size));
    }
    const std::int64_t bytes = array.shape[last] * old_size;
    if (new_size < old_size ? old_size % new_size != 0 : bytes % new_size != 0) {
        fail_shape("dtype",
                   fmt::format("{} bytes per element do not divide {}.", new_size,
                               new_size < old_size ? fmt::format("the {} of an element of {}", old_size,
                                                                 to_string(array.dtype))
                                                   : fmt::format("the {} bytes of the last axis", bytes)));
    }
    view.shape[last] = bytes / new_size;
    view.strides[last] = new_size;
    view.size = 1;
    for (const std::int64_t extent : view.shape) view.size *= static_cast<std::uint64_t>(extent);
    find_contiguity(view);
    return view;
}

}  // namespace bascule
