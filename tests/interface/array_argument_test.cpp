// Vectors, structures and spans: which arrays and values fit, and the bytes that a kernel gets.
#include <array>
#include <random>
#include <vector>

#include <bascule/interface/arguments/array_argument.hpp>
#include <bascule/interface/arrays/array_views.hpp>

#include "support.hpp"

namespace bascule::testing {
namespace {

using Kind = ArgumentError::Kind;
using Order = ParameterType::Order;

Parameter float4_pointer() {
    Parameter parameter = pointer_parameter("const float4*", "<f4");
    parameter.type.lanes = 4;
    parameter.type.alignment = 16;
    parameter.type.element = "float4";
    return parameter;
}

/// A parameter mdspan<float, extents<int, dynamic_extent, 4>> whose members are in reverse order, as its layout says.
Parameter mdspan(Order order) {
    Parameter parameter = pointer_parameter("cuda::std::mdspan<...>", "<f4");
    parameter.type.kind = ParameterType::Kind::span;
    parameter.type.rank = 2;
    parameter.type.order = order;
    parameter.type.index = parse_typestr("<i4");
    parameter.type.static_extents = {-1, 4};
    ViewLayout layout;
    layout.pointer = 16;
    layout.index_bytes = 4;
    layout.extents = {{0, 8}};
    if (order == Order::strided) layout.strides = {{0, 4}, {1, 0}};
    parameter.type.layout = layout;
    parameter.bytes = 24;
    return parameter;
}

template <class Value>
void check_array_not_accepted(const Parameter& parameter, const Value& value, Kind kind,
                              std::initializer_list<std::string_view> parts) {
    const Signature declared = signature({parameter});
    ArgumentPack pack(declared);
    check_refused([&] { pack.set(0, value); }, kind, parts);
}

std::shared_ptr<const StructLayout> layout_of(std::vector<StructField> fields, std::uint32_t bytes) {
    return std::make_shared<const StructLayout>(StructLayout{bytes, std::move(fields)});
}

TEST_CASE("an array that the fast path accepts is accepted by the general path, by its address") {
    std::mt19937_64 random(20261122);
    const char* typestrs[] = {"<f4", "<f8", "<i4", "<u4", "|u1", "|b1", "<f2", "<c8", "|V4", "<M8[s]"};
    const auto typestr = [&] { return typestrs[random() % std::size(typestrs)]; };
    int fitting = 0;
    for (int round = 0; round < 20000; ++round) {
        Parameter parameter = pointer_parameter("T*", typestr());
        parameter.type.constant = random() % 2 == 0;
        if (random() % 8 == 0) parameter.type.lanes = 4;
        if (random() % 8 == 0) parameter.type.element_kind = ParameterType::Element::any;
        const Signature declared = signature({parameter});
        const Parameter& laid_out = declared.parameters[0];
        const auto rows = static_cast<std::int64_t>(random() % 3);
        ArrayView view = array(typestr(), {rows, 4});
        if (random() % 4 == 0) view = transpose(view);
        view.readonly = random() % 2 == 0;
        view.pointer += random() % 2;
        if (!accepts(laid_out.plain, plain_traits(view))) continue;
        ++fitting;
        std::array<std::byte, 16> written{};
        const auto refused = caught([&] { write_array(view, laid_out, written.data()); });
        REQUIRE_FALSE(refused);
        std::uint64_t pointer = 0;
        std::memcpy(&pointer, written.data(), sizeof pointer);
        REQUIRE(pointer == view.pointer);
    }
    CHECK(fitting > 200);
}

TEST_CASE("a pointer to float4 takes arrays with a last axis of four, aligned and side by side") {
    const Signature declared = signature({float4_pointer()});
    ArgumentPack pack(declared);
    pack.set(0, array("<f4", {5, 4}));
    CHECK(passed<std::uint64_t>(pack, 0) == address);
    pack.set(0, array("<f4", {0, 4}));
    check_array_not_accepted(float4_pointer(), array("<f4", {4, 5}), Kind::type, {"last axis", "`float4`"});
    check_array_not_accepted(float4_pointer(), array("<f4", {}), Kind::type, {"last axis"});
    check_array_not_accepted(float4_pointer(), array("<f8", {5, 4}), Kind::type,
                             {"float32", "last axis of 4"});
    check_array_not_accepted(float4_pointer(), strided("<f4", {4, 4}, {4, 16}), Kind::value,
                             {"side by side"});
    check_array_not_accepted(float4_pointer(), strided("<f4", {4, 4}, {32, 4}), Kind::value,
                             {"`bascule::array_view<const float4>`"});
    check_array_not_accepted(
        float4_pointer(), strided("<f4", {2, 3, 4}, {16, 32, 4}), Kind::value,
        {"strides (16, 32, 4)", "`bascule::array_view<const float4, 2>`, or pass a C-cont"});
    ArrayView shifted = array("<f4", {5, 4});
    shifted.pointer += 8;
    check_array_not_accepted(float4_pointer(), shifted, Kind::value, {"aligned to the 16 bytes"});
}

TEST_CASE("an mdspan's parts are written where the compiler keeps them") {
    const Signature declared = signature({mdspan(Order::strided)});
    ArgumentPack pack(declared);
    pack.set(0, strided("<f4", {3, 4}, {8, 24}));
    const auto written = passed<std::array<std::int32_t, 6>>(pack, 0);
    CHECK(written[0] == 6);  // strides in elements
    CHECK(written[1] == 2);
    CHECK(written[2] == 3);  // the dynamic extent
    CHECK(written[3] == 0);  // padding
    std::uint64_t pointer = 0;
    std::memcpy(&pointer, &written[4], sizeof pointer);
    CHECK(pointer == address);
}

TEST_CASE("a span refuses what its type cannot say") {
    check_array_not_accepted(mdspan(Order::right), array("<f4", {3, 5}), Kind::value,
                             {"Axis 1", "5 elements"});
    check_array_not_accepted(mdspan(Order::right), strided("<f4", {3, 4}, {4, 12}), Kind::value, {"C order"});
    check_array_not_accepted(mdspan(Order::left), array("<f4", {3, 4}), Kind::value, {"Fortran order"});
    check_array_not_accepted(mdspan(Order::strided), strided("<f4", {3, 4}, {-16, 4}), Kind::value,
                             {"positive"});
    check_array_not_accepted(mdspan(Order::strided), strided("<f4", {3, 4}, {18, 4}), Kind::value,
                             {"axis 0", "18 bytes"});
    check_array_not_accepted(mdspan(Order::right), array("<f4", {std::int64_t{1} << 31, 4}), Kind::overflow,
                             {"Axis 0", "2147483647"});
    check_array_not_accepted(mdspan(Order::right), array("<f4", {4}), Kind::value, {"2 dimensions"});
    Parameter unread = mdspan(Order::right);
    unread.type.layout.reset();
    check_array_not_accepted(unread, array("<f4", {3, 4}), Kind::value, {"bascule::array_view<float, 2>"});
}

TEST_CASE("a structure with named fields is claimed, for the compiler to compare") {
    Parameter parameter = opaque_parameter("S", 8);
    parameter.type.kind = ParameterType::Kind::structure;
    const Signature declared = signature({parameter});
    ArgumentPack pack(declared);
    const std::array<std::byte, 8> bytes = {std::byte{1}, std::byte{2}};
    const auto layout = layout_of({{"a", 0, parse_typestr("<f8"), {}, {}}}, 8);
    pack.set(0, StructuredScalar{bytes, layout});
    CHECK(passed<std::array<std::byte, 8>>(pack, 0) == bytes);
    REQUIRE(pack.layout_claims().size() == 1);
    CHECK(pack.layout_claims()[0].argument == 0);
    CHECK(pack.layout_claims()[0].layout == layout);
}

TEST_CASE("an array of opaque bytes makes no claim, and one with names does") {
    Parameter parameter = pointer_parameter("S*", "|V8");
    parameter.type.element_kind = ParameterType::Element::structure;
    const Signature declared = signature({parameter});
    ArgumentPack pack(declared);
    pack.set(0, array("|V8", {3}));
    CHECK(pack.layout_claims().empty());
    ArrayView named = array("|V8", {3});
    named.layout = layout_of({{"a", 0, parse_typestr("<f8"), {}, {}}}, 8);
    pack.set(0, named);
    CHECK(pack.layout_claims().size() == 1);
}

}  // namespace
}  // namespace bascule::testing
