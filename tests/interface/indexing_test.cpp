// Expected values follow from NumPy's documentation of basic indexing; tests/python/arrays compares with
// NumPy itself.
#include <limits>
#include <vector>

#include <bascule/interface/arrays/indexing.hpp>

#include "support.hpp"

namespace bascule::testing {
namespace {

IndexEntry at(std::int64_t integer) {
    IndexEntry entry;
    entry.integer = integer;
    return entry;
}

IndexEntry of(IndexEntry::Kind kind) {
    IndexEntry entry;
    entry.kind = kind;
    return entry;
}

IndexEntry slice(std::optional<std::int64_t> start, std::optional<std::int64_t> stop, std::int64_t step = 1) {
    IndexEntry entry = of(IndexEntry::Kind::slice);
    entry.start = start;
    entry.stop = stop;
    entry.step = step;
    return entry;
}

const IndexEntry ellipsis = of(IndexEntry::Kind::ellipsis);
const IndexEntry new_axis = of(IndexEntry::Kind::new_axis);

void check_view(const ArrayView& view, std::int64_t offset, std::initializer_list<std::int64_t> shape,
                std::initializer_list<std::int64_t> strides) {
    CHECK(view.pointer == address + static_cast<std::uint64_t>(offset));
    CHECK(to_string(view.shape) == to_string(dimensions(shape)));
    CHECK(to_string(view.strides) == to_string(dimensions(strides)));
}

ArrayView index(const ArrayView& array, std::vector<IndexEntry> entries) {
    return index_array(array, entries);
}

TEST_CASE("integers take an element of an axis, negative ones from the end") {
    const ArrayView x = array("<f4", {3, 4, 5});
    check_view(index(x, {at(1)}), 80, {4, 5}, {20, 4});
    check_view(index(x, {at(-1), at(0), at(-5)}), 160, {}, {});
    CHECK(index(x, {at(2), at(3), at(4)}).size == 1);
}

TEST_CASE("slices step through an axis in either direction") {
    const ArrayView x = array("<i8", {10});
    check_view(index(x, {slice({}, {}, -1)}), 72, {10}, {-8});
    check_view(index(x, {slice(1, -1, 3)}), 8, {3}, {24});
    check_view(index(x, {slice(-3, {}, -4)}), 56, {2}, {-32});
    check_view(index(x, {slice(100, 4, -1)}), 72, {5}, {-8});
    CHECK(index(x, {slice(5, 5)}).empty());
    CHECK(index(x, {slice(3, 7, -1)}).empty());
}

TEST_CASE("slices beyond every number are cut to the axis") {
    constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max();
    constexpr std::int64_t least = std::numeric_limits<std::int64_t>::min();
    const ArrayView x = array("<i8", {10});
    CHECK(index(x, {slice(least, most)}).size == 10);
    CHECK(index(x, {slice(most, least, -1)}).size == 10);
    CHECK(index(x, {slice({}, {}, most)}).size == 1);
    check_view(index(x, {slice({}, {}, least)}), 72, {1}, {0});
}

TEST_CASE("an ellipsis stands for the axes between, and new axes have one element") {
    const ArrayView x = array("<f4", {3, 4, 5});
    check_view(index(x, {ellipsis, at(1)}), 4, {3, 4}, {80, 20});
    check_view(index(x, {at(1), ellipsis, at(1)}), 84, {4}, {20});
    check_view(index(x, {new_axis, ellipsis, new_axis}), 0, {1, 3, 4, 5, 1}, {0, 80, 20, 4, 0});
    check_view(index(x, {ellipsis}), 0, {3, 4, 5}, {80, 20, 4});
    check_view(index(x, {}), 0, {3, 4, 5}, {80, 20, 4});
}

TEST_CASE("a view knows whether it is contiguous") {
    const ArrayView x = array("<f4", {3, 4});
    CHECK(index(x, {slice(1, 3)}).c_contiguous);
    CHECK_FALSE(index(x, {slice({}, {}), slice(1, 3)}).contiguous());
    CHECK(index(x, {slice({}, {}), at(0)}).c_contiguous == false);
    CHECK(index(x, {slice(2, 2), slice(1, 3)}).f_contiguous);
}

TEST_CASE("a wrong index is an index error that says which axis and size") {
    const ArrayView x = array("<f4", {3, 4});
    const auto refused = [&](std::vector<IndexEntry> entries, std::initializer_list<std::string_view> parts) {
        check_refused([&] { index(x, entries); }, ArgumentError::Kind::index, parts);
    };
    refused({at(3)}, {"index 3", "axis 0", "size 3"});
    refused({at(0), at(-5)}, {"index -5", "axis 1", "size 4"});
    refused({at(std::numeric_limits<std::int64_t>::min())}, {"out of bounds"});
    refused({at(0), at(0), at(0)}, {"too many indices", "2-dimensional", "3 were indexed"});
    refused({ellipsis, ellipsis}, {"single ellipsis"});
    refused(std::vector<IndexEntry>(63, new_axis), {"within [0, 64]", "65"});
}

}  // namespace
}  // namespace bascule::testing
