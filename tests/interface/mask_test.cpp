// Masks: which ones fit an array, the bytes of a masked_view, and the parameter name of a bounds-checking view.
#include <array>
#include <bit>
#include <vector>

#include <bascule/interface/arguments/argument_value.hpp>
#include <bascule/interface/arguments/view_layout.hpp>
#include <bascule/interface/arrays/mask.hpp>

#include "support.hpp"

namespace bascule::testing {
namespace {

using Kind = ArgumentError::Kind;

ArrayView masked(ArrayView array, const ArrayView& mask) {
    array.mask = mask_for(array, mask);
    return array;
}

Parameter masked_parameter(int rank, std::size_t extra = 0) {
    Parameter parameter = view_parameter("const float", "<f4", rank);
    parameter.spelling = "bascule::masked_view<const float, " + std::to_string(rank) + ">";
    parameter.type.kind = ParameterType::Kind::masked_view;
    parameter.bytes = static_cast<std::uint32_t>(24 + 24 * rank + static_cast<int>(extra));
    return parameter;
}

std::vector<std::int64_t> written(const Parameter& parameter, const ArrayView& array) {
    const Signature declared = signature({parameter});
    ArgumentPack pack(declared);
    pack.set(0, array);
    std::vector<std::int64_t> words(parameter.bytes / 8);
    std::memcpy(words.data(), pack.table()[0], parameter.bytes);
    return words;
}

constexpr auto data = static_cast<std::int64_t>(address);

TEST_CASE("a view without dimensions has room for one") {
    Parameter parameter = view_parameter("float", "<f4", 0);
    parameter.bytes = 24;
    CHECK(written(parameter, array("<f4", {})) == std::vector<std::int64_t>{data, 0, 0});
    parameter = masked_parameter(1);
    parameter.type.rank = 0;
    CHECK(written(parameter, masked(array("<f4", {}), array("|b1", {}))) ==
          std::vector<std::int64_t>{data, 0, 0, data, 0, 1});
}

TEST_CASE("a view that checks bounds is told which parameter of which kernel it came in by") {
    Parameter view = view_parameter("float", "<f4", 1);
    view.name = "v";
    view.bytes += 8;
    const Parameter masked_view = masked_parameter(1, 8);
    Signature declared = signature({view, masked_view});
    declared.kernel = "ns::blur<float>";
    lay_out(declared);
    ArgumentPack pack(declared);
    pack.set(0, array("<f4", {5}));
    pack.set(1, masked(array("<f4", {5}), array("|b1", {5})));
    const auto words = passed<std::array<std::int64_t, 4>>(pack, 0);
    const auto tag = [](std::int64_t word) { return std::bit_cast<ViewTag>(word); };
    CHECK(tag(words[3]) == ViewTag{tag_of("ns::blur<float>"), 0});
    const auto more = passed<std::array<std::int64_t, 7>>(pack, 1);
    CHECK(tag(more[3]) == ViewTag{tag_of("ns::blur<float>"), 1});
    CHECK(more[4] == data);
    CHECK(tag_of("a") != tag_of("b"));
}

TEST_CASE("what is done to an array is done to its mask") {
    const auto transposed = [](const ArrayView& view) {
        ArrayView other = view;
        other.shape = dimensions({view.shape[1], view.shape[0]});
        other.strides = dimensions({view.strides[1], view.strides[0]});
        return other;
    };
    const ArrayView array = masked(testing::array("<f4", {3, 4}), testing::array("<i2", {3, 1}));
    const ArrayView changed = changed_with_mask(array, transposed);
    CHECK(to_string(changed.strides) == "(4, 16)");
    CHECK(to_string(changed.mask->strides) == "(0, 2)");
    CHECK(changed_with_mask(testing::array("<f4", {3, 4}), transposed).mask == nullptr);
    check_refused(
        [&] {
            changed_with_mask(masked(testing::array("<f4", {8}), testing::array("<t1", {8})), transposed);
        },
        Kind::not_supported, {"one bit per element", "mask of bools"});
    ArrayView torn = array;
    torn.shape = dimensions({12});
    torn.strides = dimensions({4});
    const Signature declared = signature({masked_parameter(1)});
    ArgumentPack pack(declared);
    CHECK_THROWS_WITH_AS(pack.set(0, torn), doctest::Contains("changed without its mask"), Error);
}

TEST_CASE("a mask's stream is a producer beside its array's") {
    const Signature declared = signature({masked_parameter(1)});
    const auto with = [](ArrayView array, std::optional<std::uint64_t> stream) {
        array.stream.handle = stream.value_or(0);
        return array;
    };
    const ArrayView values = array("<f4", {8});
    const ArrayView mask = array("|b1", {8});
    const auto producers = [&](std::optional<std::uint64_t> first, std::optional<std::uint64_t> second) {
        ArgumentPack pack(declared);
        pack.set(0, masked(with(values, first), with(mask, second)));
        std::vector<std::uint64_t> streams;
        for (const Producer& producer : pack.producers()) streams.push_back(producer.stream.handle);
        return std::pair(streams, pack.common_stream());
    };
    using Streams = std::vector<std::uint64_t>;
    CHECK(producers(7, 7) == std::pair(Streams{7}, std::optional<std::uint64_t>(7)));
    CHECK(producers(7, 9) == std::pair(Streams{7, 9}, std::optional<std::uint64_t>()));
    CHECK(producers(7, std::nullopt) == std::pair(Streams{7}, std::optional<std::uint64_t>(7)));
    CHECK(producers(std::nullopt, 9) == std::pair(Streams{9}, std::optional<std::uint64_t>()));
}

TEST_CASE("of two overloads a masked array takes the one with masked_view, another array the other one") {
    const ArrayView plain = array("<f4", {8});
    const ArgumentType without = type_of(plain);
    const ArgumentType with = type_of(masked(plain, array("|b1", {8})));
    CHECK_FALSE(without == with);
    const Parameter view = view_parameter("const float", "<f4", 1);
    const Parameter mask = masked_parameter(1);
    CHECK(rank_of(with, mask) > rank_of(with, view));
    CHECK(rank_of(without, view) > rank_of(without, mask));
    CHECK(rank_of(without, mask) > ConversionRank::none);
    CHECK(rank_of(with, view) > ConversionRank::none);  // so that the error can name masked_view
}

}  // namespace
}  // namespace bascule::testing
