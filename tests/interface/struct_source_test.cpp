// Tests the text of a struct for a layout. Python tests, with NVRTC and NumPy, check that it compiles to that layout.
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

TEST_CASE("structures inside keep away from the names of fields, and gaps have none") {
    StructField inner = field("in", "<f4", 4);
    inner.dtype = {DType::Kind::opaque, 4};
    inner.nested = {field("S_in", "<f4", 0)};
    check_has(struct_source({12, {field("y", "|u1", 10), field("x", "<f4", 0), inner}}, "S"),
              {"struct S_in_ {", "S_in_ in;", "unsigned char : 8, : 8;", "unsigned char y;\n};"});
}

TEST_CASE("a wide gap is an array, which no field is named as") {
    const std::string text =
        struct_source({4'000'000'000, {field("padding_1", "|u1", 0), field("x", "<f4", 3'000'000'000)}}, "S");
    check_has(text, {"unsigned char padding_1;", "unsigned char padding_1_[2999999999];", "float x;",
                     "unsigned char padding_3000000004[999999996];\n};"});
    CHECK(text.size() < 1000);
}

TEST_CASE("a field beyond the end of its struct is refused by its name") {
    check_refused(
        [] {
            struct_source({4, {field("a", "<f8", 0)}}, "S");
        },
        ArgumentError::Kind::value, {"'a'", "byte 8", "the 4"});
}

}  // namespace
}  // namespace bascule::testing
