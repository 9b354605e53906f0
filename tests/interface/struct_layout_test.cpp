// `descr` as a layout: offsets, padding, nesting, and refusals. Source: NumPy's array interface protocol.
#include <vector>

#include <bascule/interface/types/struct_layout.hpp>

#include "support.hpp"

namespace bascule::testing {
namespace {

using Kind = ArgumentError::Kind;

DescrEntry entry(std::string name, std::string typestr, std::vector<std::int64_t> shape = {}) {
    return {std::move(name), std::move(typestr), {}, std::move(shape)};
}

DescrEntry structure(std::string name, std::vector<DescrEntry> nested, std::vector<std::int64_t> shape = {}) {
    return {std::move(name), "", std::move(nested), std::move(shape)};
}

void check_refused_descr(const std::vector<DescrEntry>& descr, std::uint32_t bytes, Kind kind,
                         std::initializer_list<std::string_view> parts) {
    check_refused([&] { parse_descr(descr, bytes); }, kind, parts);
}

TEST_CASE("fields follow one another, and entries without a name are padding") {
    const std::vector<DescrEntry> descr = {entry("a", "<f4"), entry("", "|V4"), entry("b", "<f8"),
                                           entry("c", "|u1"), entry("", "|V7")};
    const StructLayout layout = parse_descr(descr, 24);
    REQUIRE(layout.fields.size() == 3);
    CHECK(layout.bytes == 24);
    CHECK(layout.fields[0].offset == 0);
    CHECK(layout.fields[1].offset == 8);
    CHECK(layout.fields[1].name == "b");
    CHECK(to_typestr(layout.fields[1].dtype) == "<f8");
    CHECK(layout.fields[2].offset == 16);
}

TEST_CASE("a subarray takes the room of all its elements") {
    const StructLayout layout =
        parse_descr(std::vector{entry("m", "<i2", {2, 3}), entry("e", "<i4", {0}), entry("n", "<i4")}, 16);
    CHECK(layout.fields[0].bytes() == 12);
    CHECK(layout.fields[1].bytes() == 0);
    CHECK(layout.fields[2].offset == 12);
}

TEST_CASE("offsets inside a nested structure count from its own beginning") {
    const StructLayout layout = parse_descr(
        std::vector{entry("id", "<i4"),
                    structure("at", {entry("x", "<f4"), entry("", "|V2"), entry("y", "<i2")}, {2})},
        20);
    const StructField& at = layout.fields[1];
    CHECK(at.offset == 4);
    CHECK(at.dtype.itemsize == 8);
    CHECK(at.bytes() == 16);
    REQUIRE(at.nested.size() == 2);
    CHECK(at.nested[1].offset == 6);
}

TEST_CASE("a packed and an aligned structure of the same fields are different") {
    const StructLayout packed = parse_descr(std::vector{entry("a", "|u1"), entry("b", "<i4")}, 5);
    const StructLayout aligned =
        parse_descr(std::vector{entry("a", "|u1"), entry("", "|V3"), entry("b", "<i4")}, 8);
    CHECK_FALSE(packed == aligned);
    CHECK(packed == parse_descr(std::vector{entry("a", "|u1"), entry("b", "<i4")}, 5));
}

TEST_CASE("a total other than the typestr's is refused") {
    check_refused_descr({entry("a", "<f4")}, 8, Kind::value, {"'descr'", "4 bytes", "says 8"});
    check_refused_descr({}, 4, Kind::value, {"0 bytes"});
}

TEST_CASE("Python objects and strings are refused, at any depth") {
    check_refused_descr({entry("o", "|O8")}, 8, Kind::type, {"'o'", "|O8"});
    check_refused_descr({structure("s", {entry("t", "|S8")})}, 8, Kind::type, {"'t'"});
    check_refused_descr({entry("u", "<U2")}, 8, Kind::type, {"'u'"});
}

TEST_CASE("types that no device has, and names that come twice, are refused") {
    check_refused_descr({entry("b", ">f4")}, 4, Kind::value, {"'b'", ">f4"});
    check_refused_descr({entry("g", "<f16")}, 16, Kind::value, {"'g'"});
    check_refused_descr({entry("a", "<f4"), entry("a", "<f4")}, 8, Kind::value, {"two fields 'a'"});
    CHECK_NOTHROW(parse_descr(std::vector{entry("", "|V4"), entry("", "|V4")}, 8));
}

TEST_CASE("sizes that overflow are refused") {
    constexpr std::int64_t huge = std::int64_t{1} << 62;
    check_refused_descr({entry("a", "<f4", {-1})}, 4, Kind::value, {"negative"});
    check_refused_descr({entry("a", "<f4", {huge, huge})}, 4, Kind::value, {"2**64"});
    check_refused_descr({entry("a", "<f4", {huge})}, 4, Kind::value, {"4 GiB"});
    check_refused_descr({entry("a", "|u1", {3'000'000'000}), entry("b", "|u1", {3'000'000'000})}, 4,
                        Kind::value, {"4 GiB"});
    check_refused_descr({entry("a", "|u1", std::vector<std::int64_t>(65, 1))}, 1, Kind::value, {"65"});
}

TEST_CASE("a layout reads as people write it") {
    const StructLayout layout = parse_descr(
        std::vector{entry("mass", "<f4"), structure("at", {entry("x", "<f8")}), entry("v", "<f4", {3})}, 24);
    CHECK(to_string(layout) ==
          "{mass: float32 at 0, at: {x: float64 at 0, 8 bytes} at 4, v: (3,) float32 at 12, 24 bytes}");
}

TEST_CASE("a structure of equal numbers side by side is a sequence of them") {
    const DType f4 = parse_typestr("<f4");
    const StructLayout four = parse_descr(std::vector{entry("x", "<f4"), entry("r", "<f4", {3})}, 16);
    CHECK(is_sequence_of(four, f4, 4));
    CHECK_FALSE(is_sequence_of(four, f4, 3));
    CHECK_FALSE(is_sequence_of(four, parse_typestr("<i4"), 4));
    CHECK(is_sequence_of(
        parse_descr(std::vector{structure("p", {entry("x", "<f4"), entry("y", "<f4")}, {2})}, 16), f4, 4));
    CHECK_FALSE(is_sequence_of(
        parse_descr(std::vector{entry("x", "<f4"), entry("", "|V4"), entry("y", "<f4")}, 12), f4, 3));
    CHECK_FALSE(is_sequence_of(parse_descr(std::vector{entry("x", "<f4"), entry("", "|V4")}, 8), f4, 2));
    // This must not loop over 2**62 elements of size zero.
    constexpr std::int64_t huge = std::int64_t{1} << 62;
    CHECK(is_sequence_of(
        parse_descr(std::vector{structure("none", {entry("z", "<f4", {0})}, {huge}), entry("x", "<f4", {2})},
                    8),
        f4, 2));
}

}  // namespace
}  // namespace bascule::testing
