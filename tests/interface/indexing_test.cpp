// Values at which arithmetic could overflow; tests/python/arrays compares everything with NumPy itself.
#include <limits>
#include <vector>

#include <bascule/interface/arrays/array_views.hpp>

#include "support.hpp"

namespace bascule::testing {
namespace {

IndexEntry slice(std::optional<std::int64_t> start, std::optional<std::int64_t> stop, std::int64_t step = 1) {
    IndexEntry entry;
    entry.kind = IndexEntry::Kind::slice;
    entry.start = start;
    entry.stop = stop;
    entry.step = step;
    return entry;
}

ArrayView index(const ArrayView& array, const IndexEntry& entry) {
    return index_array(array, std::vector{entry});
}

TEST_CASE("slices beyond every number are cut to the axis") {
    constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max();
    constexpr std::int64_t least = std::numeric_limits<std::int64_t>::min();
    const ArrayView x = array("<i8", {10});
    CHECK(index(x, slice(least, most)).size == 10);
    CHECK(index(x, slice(most, least, -1)).size == 10);
    CHECK(index(x, slice({}, {}, most)).size == 1);
    CHECK(index(x, slice({}, {}, least)).pointer == address + 72);
}

}  // namespace
}  // namespace bascule::testing
