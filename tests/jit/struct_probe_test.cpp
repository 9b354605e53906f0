// Structs as NVRTC lays them out, compared with dtypes; this test's C++ compiler gives the expected offsets.
#include <algorithm>
#include <cstddef>

#include <doctest/doctest.h>

#include <bascule/jit/questions/probed_members.hpp>
#include <bascule/jit/questions/struct_probe.hpp>
#include <bascule/jit/variables/ptx_text.hpp>

#include "support.hpp"

namespace bascule::testing {
namespace {

struct Inner {
    short key;
    double weight;
};
struct Particle {
    char kind;
    float position[3];
    Inner inner[2];
    unsigned char flags[2][4];
};

constexpr const char* text = R"(
#define x broken +
#define N 7
namespace ns {
struct Inner { short key; double weight; };
struct Particle { char kind; float position[3]; Inner inner[2]; unsigned char flags[2][4]; };
}
struct Static { static constexpr int count = 3; int a; };
__global__ void k(ns::Particle* p) {}
)";

StructField field(const char* name, std::size_t offset, const char* typestr,
                  std::vector<std::int64_t> shape = {}) {
    return {name, static_cast<std::uint32_t>(offset), parse_typestr(typestr), std::move(shape), {}};
}

StructLayout particle() {
    StructField inner = field("inner", offsetof(Particle, inner), "|V16", {2});
    inner.nested = {field("key", offsetof(Inner, key), "<i2"),
                    field("weight", offsetof(Inner, weight), "<f8")};
    return {sizeof(Particle),
            {field("kind", offsetof(Particle, kind), "|i1"),
             field("position", offsetof(Particle, position), "<f4", {3}), inner,
             field("flags", offsetof(Particle, flags), "|u1", {2, 4})}};
}

ProbedProgram probed(const char* text_of_it) { return {program(text_of_it), {}, cache()}; }

void check(const StructLayout& layout, const std::string& type = "ns::Particle") {
    check_layout(probed(text), type, layout.bytes, layout);
}

std::string difference(const StructLayout& layout, const std::string& type = "ns::Particle") {
    return message_of<ArgumentError>([&] { check(layout, type); });
}

TEST_CASE("a dtype with the compiler's offsets is the struct") {
    CHECK(difference(particle()).empty());
    CHECK(difference({sizeof(Particle), {}}).empty());
    CHECK(difference({sizeof(Particle), {field("position", offsetof(Particle, position), "<f4", {3})}})
              .empty());
}

TEST_CASE("the same struct is asked for once") {
    check(particle());
    const std::uint64_t before = Nvrtc::compile_calls();
    check(particle());
    CHECK(Nvrtc::compile_calls() == before);
}

TEST_CASE("a field elsewhere names both places") {
    StructLayout layout = particle();
    layout.fields[1].offset = 1;
    const std::string said = difference(layout);
    CHECK(contains(said, "'position' lies at byte 1 in the dtype and at byte 4 in the kernel's"));
    CHECK(contains(said, "align=True"));
}

TEST_CASE("a field elsewhere in a nested struct names the path") {
    StructLayout layout = particle();
    layout.fields[2].nested[1].offset = 2;
    CHECK(contains(difference(layout), "'inner.weight' lies at byte 18 in the dtype and at byte 24"));
}

TEST_CASE("a field of another type names both types") {
    StructLayout layout = particle();
    layout.fields[2].nested[1].dtype = parse_typestr("<i8");
    const std::string said = difference(layout);
    CHECK(contains(said, "'inner.weight' is `double`"));
    CHECK(contains(said, "int64 in the dtype"));
}

TEST_CASE("rows and columns are not exchanged") {
    StructLayout layout = particle();
    layout.fields[3].shape = {4, 2};
    CHECK(contains(difference(layout), "'flags' has the shape (2, 4)"));
    layout.fields[3].shape = {8};
    CHECK(contains(difference(layout), "'flags' has the shape (2, 4)"));
    layout.fields[3].shape = {2, 4, 1};
    CHECK(contains(difference(layout), "'flags' has the shape (2, 4)"));
}

TEST_CASE("a number where the struct has a structure is told, and the other way round") {
    StructLayout layout = particle();
    layout.fields[2] = field("inner", offsetof(Particle, inner), "<c16", {2});
    CHECK(contains(difference(layout), "'inner' is `ns::Inner`"));
    layout = particle();
    layout.fields[1].nested = {field("f", 0, "<f4")};
    layout.fields[1].dtype = parse_typestr("|V4");
    CHECK_FALSE(difference(layout).empty());
}

TEST_CASE("names that no struct has are told") {
    CHECK(contains(difference({4, {field("missing", 0, "<i4")}}), "no field 'missing'"));
    CHECK(contains(difference({4, {field("a b", 0, "<i4")}}), "no C++ struct can have"));
    CHECK(contains(difference({4, {field("a;}", 0, "<i4")}}), "no C++ struct can have"));
    CHECK(contains(difference({4, {field("count", 0, "<i4")}}, "Static"), "static member"));
}

TEST_CASE("four numbers are a float4, in a subarray or in a structure") {
    const ProbedProgram vectors = probed("struct V { float4 v; int n; }; __global__ void k(V v) {}");
    const auto said = [&](const StructField& v) {
        return message_of<ArgumentError>([&] {
            check_layout(vectors, "V", 32, {32, {v, field("n", 16, "<i4")}});
        });
    };
    CHECK(said(field("v", 0, "<f4", {4})).empty());
    StructField v = field("v", 0, "|V16");
    v.nested = {field("x", 0, "<f4"), field("y", 4, "<f4"), field("z", 8, "<f4"), field("w", 12, "<f4")};
    CHECK(said(v).empty());
    v.nested[3].dtype = parse_typestr("<i4");
    CHECK(contains(said(v), "'v' is `float4`"));
    CHECK(contains(said(field("v", 0, "<i4", {4})), "'v' has the shape () in the kernel's `V` and (4,)"));
}

TupleArgument numbers(std::size_t count) {
    TupleArgument tuple;
    tuple.elements.resize(count, Scalar{});
    return tuple;
}

TEST_CASE("the members of a struct are read in their order, structs inside too") {
    TupleArgument like = numbers(4);
    like.elements[2] = TupleArgument{{numbers(2), numbers(2)}};
    const auto read = [&](const std::string& type, const TupleArgument& tuple) {
        return read_members(probed(text), type, tuple);
    };
    const std::vector<StructMember> members = read("ns::Particle", like);
    REQUIRE(members.size() == 4);
    CHECK(members[0].type.element == "char");
    CHECK(members[1].offset == offsetof(Particle, position));
    CHECK(members[1].extents == std::vector<std::int64_t>{3});
    CHECK(members[2].offset == offsetof(Particle, inner));
    REQUIRE(members[2].members.size() == 2);
    CHECK(members[2].members[1].offset == offsetof(Inner, weight));
    CHECK(members[3].extents == std::vector<std::int64_t>{2, 4});
    const auto said = [&](const TupleArgument& tuple) {
        return message_of<ArgumentError>([&] { read("ns::Particle", tuple); });
    };
    CHECK(contains(said(numbers(3)), "more members than the tuple, which has 3 numbers"));
    CHECK(contains(said(numbers(5)), "fewer members"));
    CHECK(contains(said(numbers(0)), "more members"));
}

TEST_CASE("a variable's initial bytes are read in every form that NVRTC writes") {
    const std::string ptx =
        ".global .align 4 .f32 target;\n"
        ".visible .global .align 8 .u64 s1[3] = {generic(target), 21474836483, generic(s2)+8};\n"
        ".global .align 8 .u64 s12[1] = {5};\n"
        ".global .align 4 .u32 one = 7;\n"
        ".global .align 1 .b8 few[4] = {1, 255, 0};\n"
        ".global .align 8 .u64 minus = -2;\n"
        ".global .align 1 .u8 masked[8] = {0xFF(target), 0};\n";
    const auto s1 = initial_value(ptx, "s1");
    REQUIRE(s1);
    CHECK(s1->bytes.size() == 24);
    CHECK(s1->integer(8, 4) == 3);
    CHECK(s1->integer(12, 4) == 5);
    REQUIRE(s1->addresses.size() == 2);
    CHECK(s1->addresses[0].symbol == "target");
    CHECK(s1->addresses[1].offset == 16);
    CHECK(s1->addresses[1].symbol == "s2");
    CHECK(s1->addresses[1].addend == 8);
    CHECK(initial_value(ptx, "one")->integer(0, 4) == 7);
    CHECK(initial_value(ptx, "minus")->integer(0, 8) == 0xFFFFFFFFFFFFFFFE);
    CHECK(initial_value(ptx, "few")->bytes == std::vector<std::uint8_t>{1, 255, 0, 0});
    CHECK(initial_value(ptx, "target")->bytes == std::vector<std::uint8_t>(4));
    CHECK_FALSE(initial_value(ptx, "masked"));
    CHECK_FALSE(initial_value(ptx, "s"));
    CHECK_FALSE(initial_value(ptx, "s2"));
}

TEST_CASE("spans and mdspans tell where they keep their extents and strides") {
    const Image image = compile(
        "#include <cuda/std/array>\n#include <cuda/std/mdspan>\n#include <cuda/std/span>\n"
        "using cuda::std::dynamic_extent;\n"
        "__global__ void k(cuda::std::span<float> a, cuda::std::span<const int, 4> b, "
        "cuda::std::mdspan<float, cuda::std::extents<int, dynamic_extent, 6, dynamic_extent>> c, "
        "cuda::std::mdspan<float, cuda::std::extents<short, 2, dynamic_extent>, cuda::std::layout_stride> d, "
        "cuda::std::mdspan<float, cuda::std::extents<long, 2, 3>, cuda::std::layout_left> e) {}");
    const std::vector<Parameter>& parameters = image.kernels.at(0).signature.parameters;
    const auto layout = [&](std::size_t i) { return parameters[i].type.layout.value_or(ViewLayout()); };
    for (const Parameter& parameter : parameters) {
        CHECK(parameter.type.kind == ParameterType::Kind::span);
        REQUIRE(parameter.type.layout);
        // No two parts of the layout share a byte.
        const ViewLayout& its = *parameter.type.layout;
        std::vector<int> used(parameter.bytes);
        for (std::uint32_t i = 0; i < 8; ++i) ++used.at(its.pointer + i);
        for (const auto* slots : {&its.extents, &its.strides}) {
            for (const ViewLayout::Slot slot : *slots) {
                for (std::uint32_t i = 0; i < its.index_bytes; ++i) ++used.at(slot.offset + i);
            }
        }
        CHECK(*std::max_element(used.begin(), used.end()) == 1);
    }
    CHECK(layout(0).extents.size() == 1);
    CHECK(layout(1).extents.empty());
    REQUIRE(layout(2).extents.size() == 2);
    CHECK(layout(2).extents[1].axis == 2);
    CHECK(layout(2).index_bytes == 4);
    CHECK(layout(3).extents.size() == 1);
    CHECK(layout(3).strides.size() == 2);
    CHECK(layout(3).index_bytes == 2);
    CHECK(layout(4).extents.empty());
    CHECK(parameters[3].type.static_extents == std::vector<std::int64_t>{2, -1});
}

}  // namespace
}  // namespace bascule::testing
