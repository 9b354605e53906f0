// Indexing of arrays by NumPy's rules ("Basic indexing"); slices follow Python's rules.
#include <algorithm>
#include <memory>
#include <vector>

#include <fmt/format.h>

#include <bascule/interface/arrays/indexing.hpp>
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

}  // namespace bascule
