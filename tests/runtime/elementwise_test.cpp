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
    const Trace trace;
    copy_elements(stream, transpose(matrix(to, 6, 10)), transpose(matrix(from, 6, 10)));
    CHECK(trace.spelled({}).empty());  // no launch
    CHECK(on_host(stream, to) == counting(60));
}

TEST_CASE("conversions and fills are ordered with the stream that the array names") {
    const Stream p;
    const Stream c;
    const DeviceBuffer buffer = on_device(p, counting(8));
    const DeviceBuffer whole(8 * sizeof(std::int32_t));
    ArrayView integers = view_as(floats(whole), parse_typestr("<i4"), nullptr);
    convert_elements(c, integers, floats(buffer, p.ref().handle()));  // compiles
    {
        const Trace trace;
        convert_elements(c, integers, floats(buffer, p.ref().handle()));
        CHECK(trace.spelled({{p.ref().handle(), "p"}, {c.ref().handle(), "C"}}) ==
              "R(e1,p) W(e1,C) L(C) R(e1,C) W(e1,p)");
    }
    std::vector<std::int32_t> values(8);
    copy_to_host(c, values.data(), whole.address(), whole.bytes());
    CHECK(values == std::vector<std::int32_t>{0, 1, 2, 3, 4, 5, 6, 7});
    const float three = 3;
    fill_elements(c, index_array(floats(buffer, p.ref().handle()), std::vector{every(2)}),
                  std::as_bytes(std::span(&three, 1)));
    CHECK(on_host(p, buffer) == std::vector<float>{3, 1, 3, 3, 3, 5, 3, 7});
}

TEST_CASE("numbers and bools convert, complex ones to their kind, and structures not at all") {
    const auto type = [](const char* typestr) { return parse_typestr(typestr); };
    CHECK(can_convert(type("<f2"), type("|b1")));
    CHECK(can_convert(type("<f4"), type("<c16")));
    CHECK(can_convert(type("<c16"), type("<c8")));
    CHECK(can_convert(type("<c8"), type("|b1")));
    CHECK_FALSE(can_convert(type("<c8"), type("<f4")));
    CHECK_FALSE(can_convert(type("|V4"), type("<f4")));
    CHECK_FALSE(can_convert(type("<f4"), type("<M8[s]")));
}

TEST_CASE("owners are released once the copy is done, and when it is empty") {
    const Stream stream;
    const DeviceBuffer from = on_device(stream, counting(4));
    const DeviceBuffer to(16);
    int released = 0;
    const Owner owner{&released, &count_releases<int>};
    copy_elements(stream, floats(to), floats(from), owner);
    CHECK(released == 0);
    stream.ref().synchronize();
    CHECK(released == 1);
    copy_elements(stream, floats(DeviceBuffer(0)), floats(DeviceBuffer(0)), owner);
    stream.ref().synchronize();
    CHECK(released == 2);
}
