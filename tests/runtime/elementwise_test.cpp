// tests/python/arrays compares every pair of types with NumPy; here are the loops, and what is left alone.
#include <cstring>
#include <vector>

#include <doctest/doctest.h>

#include <bascule/interface/arrays/indexing.hpp>
#include <bascule/interface/arrays/reshaping.hpp>
#include <bascule/runtime/elementwise/elementwise.hpp>

#include "support.hpp"

using namespace bascule;
using namespace bascule::testing;

namespace {

IndexEntry every(std::int64_t step) {
    IndexEntry entry;
    entry.kind = IndexEntry::Kind::slice;
    entry.step = step;
    return entry;
}

ArrayView matrix(const DeviceBuffer& buffer, std::int64_t rows, std::int64_t columns) {
    Dimensions shape;
    shape.push_back(rows);
    shape.push_back(columns);
    return reshape(floats(buffer), shape);
}

}  // namespace

TEST_CASE("a copy between strided arrays writes what they have and nothing between") {
    const Stream stream;
    const DeviceBuffer from = on_device(stream, counting(60));
    const DeviceBuffer to = on_device(stream, std::vector<float>(60, -1));
    const std::vector<IndexEntry> index = {every(-1), every(2)};
    copy_elements(stream, index_array(matrix(to, 6, 10), index),
                  index_array(transpose(matrix(from, 10, 6)), index));
    const std::vector<float> result = on_host(stream, to);
    for (std::size_t i = 0; i < 6; ++i) {
        for (std::size_t j = 0; j < 10; ++j) {
            CHECK(result[i * 10 + j] == (j % 2 == 0 ? static_cast<float>(j * 6 + i) : -1.0F));
        }
    }
}

TEST_CASE("what lies in one run is copied by the driver, whatever its axes are called") {
    const Stream stream;
    const DeviceBuffer from = on_device(stream, counting(60));
    const DeviceBuffer to(240);
    const OperationTrace trace;
    copy_elements(stream, transpose(matrix(to, 6, 10)), transpose(matrix(from, 6, 10)));
    CHECK(trace.spelled({}).empty());  // no launch
    CHECK(on_host(stream, to) == counting(60));
}
