// Tests the error message about fields at other offsets than the struct's, and that following its advice helps.
#include <algorithm>
#include <cstddef>
#include <random>
#include <vector>

#include <bascule/interface/types/struct_layout.hpp>

#include "support.hpp"

namespace bascule::testing {
namespace {

struct Body {
    float mass;
    int count;
    double position[3];
    unsigned char kind;
};

StructField field(const char* name, std::size_t offset, const char* typestr,
                  std::vector<std::int64_t> shape = {}) {
    return {name, static_cast<std::uint32_t>(offset), parse_typestr(typestr), std::move(shape), {}};
}

/// The layout of Body, with its fields listed in this order: two layouts are compared field by field.
StructLayout body(std::vector<std::size_t> order) {
    const std::vector<StructField> fields = {
        field("mass", offsetof(Body, mass), "<f4"), field("count", offsetof(Body, count), "<i4"),
        field("position", offsetof(Body, position), "<f8", {3}), field("kind", offsetof(Body, kind), "|u1")};
    StructLayout layout{sizeof(Body), {}};
    for (const std::size_t i : order) layout.fields.push_back(fields[i]);
    return layout;
}

bool contains(const std::string& text, const std::string& part) { return text.find(part) != text.npos; }

std::string told(const StructLayout& given, const StructLayout& declared,
                 LayoutSource source = LayoutSource::dtype) {
    return describe_difference(given, declared, "Body", source);
}

TEST_CASE("aligned fields are where the C++ compiler puts them") {
    const StructLayout declared = body({0, 1, 2, 3});
    CHECK(place_in_order(declared, true) == declared);
    CHECK(place_in_order(declared, false).bytes == 33);
    struct Inner {
        char c;
        std::int16_t s;
        double d[2];
    };
    struct Outer {
        char c;
        Inner in[2];
        float f;
    };
    StructField in = field("in", 0, "|V1", {2});
    in.nested = {field("c", 0, "|i1"), field("s", 0, "<i2"), field("d", 0, "<f8", {2})};
    const StructLayout placed = place_in_order({0, {field("c", 0, "|i1"), in, field("f", 0, "<f4")}}, true);
    CHECK(placed.bytes == sizeof(Outer));
    CHECK(placed.fields[1].offset == offsetof(Outer, in));
    CHECK(placed.fields[1].dtype.itemsize == sizeof(Inner));
    CHECK(placed.fields[1].nested[2].offset == offsetof(Inner, d));
    CHECK(placed.fields[2].offset == offsetof(Outer, f));
}

TEST_CASE("equal layouts differ in nothing") { CHECK(told(body({0, 1, 2, 3}), body({0, 1, 2, 3})).empty()); }

TEST_CASE("another order tells each field's two places and the order of the struct") {
    const StructLayout declared = body({1, 0, 2, 3});
    const std::string text = told(place_in_order(declared, true), declared);
    CHECK(contains(text, "field 'count' lies at byte 0 in the dtype and at byte 4 in the kernel's `Body`"));
    CHECK(contains(text, "'mass' at byte 4 and at byte 0"));
    CHECK(contains(text, "in the order of the struct, mass, count, position, kind, and align them"));
    CHECK_FALSE(contains(text, "'position'"));
}

TEST_CASE("alignment is no part of the advice where the order suffices") {
    StructLayout declared{8, {field("b", 4, "<f4"), field("a", 0, "<i4")}};
    const std::string text = told(place_in_order(declared, false), declared);
    CHECK(contains(text, "List the fields in the order of the struct: a, b."));
    CHECK_FALSE(contains(text, "align"));
}

TEST_CASE("a packed dtype is told to be aligned, and one that alignment would not help is not") {
    const StructLayout declared = body({0, 1, 2, 3});
    CHECK(contains(told(place_in_order(declared, false), declared),
                   "Make the dtype aligned: np.dtype(..., align=True)."));
    CHECK(contains(told(place_in_order(declared, false), declared),
                   "the dtype has 33 bytes and the kernel's `Body` 40"));
    StructLayout wide = declared;  // struct alignas(64) Body
    wide.bytes = 64;
    const std::string text = told(declared, wide);
    CHECK_FALSE(contains(text, "align=True"));
    CHECK(contains(text, "'names': ['mass', 'count', 'position', 'kind']"));
    CHECK(contains(text, "'offsets': [0, 4, 8, 32], 'itemsize': 64"));
}

TEST_CASE("a structure inside that differs is named") {
    StructField in = field("in", 0, "|V16");
    in.nested = {field("d", 8, "<f8"), field("s", 0, "<i2")};
    const StructLayout declared{64, {in}};  // no alignment results in this layout
    StructLayout given = declared;
    given.fields[0].nested[0].offset = 0;
    given.fields[0].nested[1].offset = 8;
    const std::string text = told(given, declared);
    CHECK(contains(text, "'in.d' lies at byte 0 in the dtype and at byte 8"));
    CHECK(contains(text, "For 'in': List the fields in the order of the struct, s, d, and align them"));
}

TEST_CASE("a ctypes structure is given advice of its own") {
    const StructLayout declared = body({1, 0, 2, 3});
    const std::string text = told(place_in_order(declared, true), declared, LayoutSource::ctypes);
    CHECK(contains(text, "in the ctypes structure and at byte 4"));
    CHECK(contains(text, "in the order of the struct: mass, count, position, kind."));
    CHECK_FALSE(contains(text, "align"));
    const StructLayout same = body({0, 1, 2, 3});
    CHECK(contains(told(place_in_order(same, false), same, LayoutSource::ctypes),
                   "the same types and alignment"));
}

TEST_CASE("align=True is advised just where it gives the struct") {
    std::mt19937_64 random(20261122);
    const char* typestrs[] = {"|u1", "<i2", "<f4", "<f8", "<c8"};
    int advised = 0;
    int not_advised = 0;
    for (int round = 0; round < 3000; ++round) {
        StructLayout fields{0, {}};
        const char* names[] = {"a", "b", "c", "d"};
        for (const char* name : names) fields.fields.push_back(field(name, 0, typestrs[random() % 5]));
        const StructLayout given = place_in_order(fields, random() % 2 == 0);
        StructLayout declared = place_in_order(fields, true);
        if (random() % 2 == 0) declared.bytes += 8;
        if (random() % 4 == 0) declared.fields[3].offset += 1;
        const std::string text = told(given, declared);
        const bool helps = given != declared && place_in_order(given, true) == declared;
        REQUIRE(contains(text, "align=True") == helps);
        ++(helps ? advised : not_advised);
    }
    CHECK(advised > 300);
    CHECK(not_advised > 300);
}

}  // namespace
}  // namespace bascule::testing
