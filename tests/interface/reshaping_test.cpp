// Expected strides are written by hand; tests/python/arrays compares with NumPy itself.
#include <array>
#include <vector>

#include <bascule/interface/arrays/array_views.hpp>

#include "support.hpp"

namespace bascule::testing {
namespace {

void check_layout(const ArrayView& view, std::initializer_list<std::int64_t> shape,
                  std::initializer_list<std::int64_t> strides) {
    CHECK(to_string(view.shape) == to_string(dimensions(shape)));
    CHECK(to_string(view.strides) == to_string(dimensions(strides)));
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

}  // namespace
}  // namespace bascule::testing
