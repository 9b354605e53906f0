// Expected strides are written by hand; tests/python/arrays compares with NumPy itself.
#include <array>
#include <vector>

#include <bascule/interface/arrays/reshaping.hpp>

#include "support.hpp"

namespace bascule::testing {
namespace {

void check_layout(const ArrayView& view, std::initializer_list<std::int64_t> shape,
                  std::initializer_list<std::int64_t> strides) {
    CHECK(to_string(view.shape) == to_string(dimensions(shape)));
    CHECK(to_string(view.strides) == to_string(dimensions(strides)));
}

TEST_CASE("a contiguous array takes any shape of as many elements") {
    const ArrayView x = array("<f4", {4, 6});
    check_layout(reshape(x, dimensions({24})), {24}, {4});
    check_layout(reshape(x, dimensions({2, -1, 3})), {2, 4, 3}, {48, 12, 4});
    check_layout(reshape(array("<f4", {}), dimensions({1, 1})), {1, 1}, {4, 4});
    CHECK(reshape(array("<f4", {0, 3}), dimensions({5, 0})).empty());
    check_layout(reshape(array("<f4", {0, 3}), dimensions({-1, 3})), {0, 3}, {12, 4});
}

TEST_CASE("runs of axes that are evenly spaced are merged and split without a copy") {
    const ArrayView rows = strided("<f4", {3, 2, 4}, {64, 16, 4});  // every row whole, gaps between pairs
    check_layout(reshape(rows, dimensions({3, 8})), {3, 8}, {64, 4});
    check_layout(reshape(rows, dimensions({3, 4, 2})), {3, 4, 2}, {64, 8, 4});
    check_layout(reshape(rows, dimensions({1, 3, 1, 8})), {1, 3, 1, 8}, {192, 64, 32, 4});
    const ArrayView backwards = strided("<f4", {6}, {-4});
    check_layout(reshape(backwards, dimensions({2, 3})), {2, 3}, {-12, -4});
}

TEST_CASE("what would need a copy says so") {
    const ArrayView transposed = strided("<f4", {6, 4}, {4, 24});
    check_refused([&] { reshape(transposed, dimensions({24})); }, ArgumentError::Kind::value,
                  {"shape (6, 4)", "strides (4, 24)", "x.copy().reshape"});
    check_refused(
        [&] {
            reshape(strided("<f4", {3, 2, 4}, {64, 16, 4}), dimensions({24}));
        },
        ArgumentError::Kind::value, {"no view of shape (24,)"});
}

TEST_CASE("a shape of another size is refused with both") {
    const ArrayView x = array("<f4", {2, 3});
    const auto refused = [&](std::initializer_list<std::int64_t> shape, std::string_view part) {
        check_refused([&] { reshape(x, dimensions(shape)); }, ArgumentError::Kind::value, {part});
    };
    refused({4}, "size 6 into shape (4,)");
    refused({-1, 4}, "size 6 into shape (-1, 4)");
    refused({-1, -1}, "one unknown dimension");
    refused({-2, 3}, "only -1 may be negative");
    refused({-1, 0}, "size 6");
    refused({1LL << 62, 1LL << 62}, "size 6");
}

TEST_CASE("transposing reorders shape and strides") {
    const ArrayView x = array("<f4", {2, 3, 4});
    check_layout(transpose(x), {4, 3, 2}, {4, 16, 48});
    CHECK(transpose(x).f_contiguous);
    const std::array<std::int64_t, 3> axes = {-1, 0, 1};
    check_layout(transpose(x, axes), {4, 2, 3}, {4, 48, 16});
    for (const auto& wrong : {std::array<std::int64_t, 3>{0, 1, 3}, {0, 1, -4}, {0, 1, 1}}) {
        check_refused([&] { transpose(x, wrong); }, ArgumentError::Kind::value, {"ax"});
    }
    check_refused([&] { transpose(x, std::span(axes).first(2)); }, ArgumentError::Kind::value,
                  {"axes don't match array", "2", "3 dimensions"});
}

TEST_CASE("broadcasting repeats axes of one element and missing ones by strides of 0") {
    check_layout(broadcast_to(array("<f4", {4}), dimensions({3, 4})), {3, 4}, {0, 4});
    check_layout(broadcast_to(array("<f4", {3, 1}), dimensions({2, 3, 4})), {2, 3, 4}, {0, 4, 0});
    check_layout(broadcast_to(array("<f4", {1, 1, 4}), dimensions({4})), {4}, {4});
    check_layout(broadcast_to(array("<f4", {}), dimensions({2})), {2}, {0});
    CHECK(broadcast_to(array("<f4", {4}), dimensions({3, 4})).size == 12);
    CHECK(broadcast_to(array("<f4", {1}), dimensions({0})).empty());
    for (const auto& wrong : {array("<f4", {3}), array("<f4", {2, 4}), array("<f4", {2, 1, 4})}) {
        check_refused(
            [&] {
                broadcast_to(wrong, dimensions({1, 4}));
            },
            ArgumentError::Kind::value, {"elements of shape (1, 4)", "last axis"});
    }
}

TEST_CASE(
    "memory order runs from the largest stride to the smallest, and is C order where the array is dense") {
    const ArrayView permuted = strided("<f4", {3, 2, 4}, {4, 48, 12});
    const std::vector<std::int64_t> axes = axes_in_memory_order(permuted);
    CHECK(axes == std::vector<std::int64_t>{1, 2, 0});
    CHECK(transpose(permuted, axes).c_contiguous);
    CHECK(is_dense(permuted));
    CHECK(is_dense(strided("<f4", {1, 6}, {-3, 4})));
    CHECK(is_dense(array("<f4", {})));
    CHECK(is_dense(strided("<f4", {0, 3}, {1, 1})));
    CHECK_FALSE(is_dense(strided("<f4", {4}, {8})));
    CHECK_FALSE(is_dense(strided("<f4", {4}, {-4})));
    CHECK_FALSE(is_dense(strided("<f4", {2, 3}, {0, 4})));
}

TEST_CASE("another dtype of the same size keeps shape and strides, one of another size the last axis") {
    const DType bytes2 = parse_typestr("<u2");
    const DType bytes8 = parse_typestr("<f8");
    const ArrayView x = strided("<f4", {3, 4}, {64, 4});
    check_layout(view_as(x, parse_typestr("<i4"), nullptr), {3, 4}, {64, 4});
    check_layout(view_as(x, bytes2, nullptr), {3, 8}, {64, 2});
    check_layout(view_as(x, bytes8, nullptr), {3, 2}, {64, 8});
    CHECK(view_as(x, bytes8, nullptr).size == 6);
    const auto refused = [](const ArrayView& view, DType dtype, std::string_view part) {
        check_refused([&] { view_as(view, dtype, nullptr); }, ArgumentError::Kind::value, {part});
    };
    refused(array("<f4", {}), bytes2, "no dimensions");
    refused(strided("<f4", {4}, {8}), bytes2, "last axis must be contiguous");
    refused(array("<f4", {3}), bytes8, "do not divide the 12 bytes of the last axis");
    refused(array("<f4", {3}), parse_typestr("|V3"), "do not divide the 4 of an element of float32");
}

}  // namespace
}  // namespace bascule::testing
