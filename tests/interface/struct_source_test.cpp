// The text for a layout. That it compiles and means the layout is shown in Python, with NVRTC and NumPy.
#include <bascule/interface/types/struct_source.hpp>

#include "support.hpp"

namespace bascule::testing {
namespace {

StructField field(const char* name, const char* typestr, std::uint32_t offset,
                  std::vector<std::int64_t> shape = {}) {
    return {name, offset, parse_typestr(typestr), std::move(shape), {}};
}

void check_has(const std::string& text, std::initializer_list<const char*> parts) {
    std::size_t at = 0;
    for (const char* part : parts) {
        CAPTURE(text);
        CAPTURE(std::string(part));
        const std::size_t found = text.find(part, at);
        REQUIRE(found != text.npos);
        at = found;
    }
}

TEST_CASE("members stand in the order of their offsets, gaps between them are members too") {
    const StructLayout layout{24, {field("b", "<f8", 8), field("a", "|u1", 0, {2, 3})}};
    check_has(struct_source(layout, "Gap"),
              {"struct Gap {", "unsigned char a[2][3];", "unsigned char padding_6[2];", "double b;",
               "unsigned char padding_16[8];", "};", "sizeof(Gap) == 24", "(Gap, a) == 0", "(Gap, b) == 8"});
}

TEST_CASE("what is not aligned is packed, no tighter than it must be") {
    CHECK(struct_source({16, {field("a", "<f4", 0), field("b", "<f8", 8)}}, "S").find("pragma") ==
          std::string::npos);
    check_has(struct_source({12, {field("a", "<f4", 0), field("b", "<f8", 4)}}, "S"),
              {"#pragma pack(push, 4)", "struct S {", "#pragma pack(pop)"});
    check_has(struct_source({9, {field("a", "|u1", 0), field("b", "<f8", 1)}}, "S"),
              {"#pragma pack(push, 1)"});
    check_has(struct_source({10, {field("a", "<f8", 0), field("b", "<i2", 8)}}, "S"),
              {"#pragma pack(push, 2)"});
}

TEST_CASE("a structure inside is packed as tightly as the one around it") {
    StructField inner = field("in", "|V16", 4);
    inner.nested = {field("x", "<f8", 0), field("y", "<f8", 8)};
    check_has(struct_source({20, {field("k", "<i4", 0), inner}}, "S"),
              {"#pragma pack(push, 4)\nstruct S_in {", "#pragma pack(push, 4)\nstruct S {", "S_in in;"});
}

TEST_CASE("a class that its functions expect aligned lies in a wrapper where it may not be") {
    check_has(struct_source({3, {field("k", "|u1", 0), field("h", "<f2", 1)}}, "S"),
              {"#include <cuda_fp16.h>", "bascule::unaligned<__half> h;"});
    check_has(struct_source({4, {field("k", "|u1", 0), field("h", "<f2", 2)}}, "S"), {"    __half h;"});
}

TEST_CASE("padding and structures inside keep away from the names of fields") {
    StructField inner = field("in", "<f4", 4);
    inner.dtype = {DType::Kind::opaque, 4};
    inner.nested = {field("S_in", "<f4", 0)};
    check_has(struct_source({12, {field("padding_9", "|u1", 8), field("x", "<f4", 0), inner}}, "S"),
              {"struct S_in_ {", "S_in_ in;", "unsigned char padding_9;", "unsigned char padding_9_[3];"});
}

TEST_CASE("what no struct can have is refused by the field's name") {
    const auto refused = [](const StructLayout& layout, std::initializer_list<std::string_view> parts) {
        check_refused([&] { struct_source(layout, "S"); }, ArgumentError::Kind::value, parts);
    };
    refused({8, {field("a", "<f4", 0), field("b", "<f4", 2)}}, {"'b'", "overlaps", "'a'"});
    refused({4, {field("a", "<f8", 0)}}, {"'a'", "byte 8", "the 4"});
    refused({4, {field("operator", "<f4", 0)}}, {"'operator'", "keyword"});
    refused({4, {field("a-b", "<f4", 0)}}, {"'a-b'", "identifier"});
    refused({4, {field("", "<f4", 0)}}, {"identifier"});
    refused({4, {field("__a", "<f4", 0)}}, {"'__a'", "underscores"});
    refused({4, {field("S", "<f4", 0)}}, {"'S'", "name"});
    refused({4, {field("a", "<f4", 0, {0})}}, {"'a'", "empty array"});
    refused({4, {}}, {"no fields"});
    StructLayout bits{1, {field("a", "|u1", 0)}};
    bits.fields[0].dtype = *dtype_named("int4");
    refused(bits, {"'a'", "int4", "no type in CUDA C++"});
    check_refused(
        [] {
            struct_source({4, {field("a", "<f4", 0)}}, "no name");
        },
        ArgumentError::Kind::value, {"'no name'", "identifier"});
}

}  // namespace
}  // namespace bascule::testing
