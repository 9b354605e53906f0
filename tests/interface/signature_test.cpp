#include <cstddef>
#include <iterator>
#include <utility>

#include "support.hpp"

namespace bascule::testing {
namespace {

/// The same parameters as members, laid out by the C++ compiler.
struct Buffer {
    char c;
    double d;
    short s;
    const float* p;
    std::int64_t view[3];
    bool b;
};

Signature example() {
    Parameter d = scalar_parameter("double", "<f8");
    d.name = "d";
    return signature({scalar_parameter("char", "|i1"), d, scalar_parameter("short", "<i2"),
                      pointer_parameter("const float*", "<f4"), view_parameter("float", "<f4", 1),
                      scalar_parameter("bool", "|b1")});
}

TEST_CASE("parameters are laid out as the members of a struct") {
    const Signature laid_out = example();
    const std::uint32_t offsets[] = {offsetof(Buffer, c), offsetof(Buffer, d),    offsetof(Buffer, s),
                                     offsetof(Buffer, p), offsetof(Buffer, view), offsetof(Buffer, b)};
    for (std::size_t i = 0; i < std::size(offsets); ++i) CHECK(laid_out.parameters[i].offset == offsets[i]);
    CHECK(laid_out.bytes == offsetof(Buffer, b) + 1);
}

TEST_CASE("a kernel without parameters needs no bytes") {
    const Signature none = signature({});
    CHECK(none.bytes == 0);
    CHECK(to_string(none) == "void k()");
    CHECK(none.find("x") == -1);
}

TEST_CASE("a parameter is found by its name") {
    const Signature laid_out = example();
    CHECK(laid_out.find("d") == 1);
    CHECK(laid_out.find("p") == 3);
    CHECK(laid_out.find("D") == -1);
    CHECK(laid_out.find("") == -1);
}

TEST_CASE("a signature reads as a person writes it") {
    Parameter n = scalar_parameter("int", "<i4");
    n.name = "n";
    Signature scale =
        signature({pointer_parameter("float*", "<f4"), scalar_parameter("float", "<f4"), std::move(n)});
    scale.kernel = "ns::scale<float>";
    CHECK(to_string(scale) == "void ns::scale<float>(float* p, float f, int n)");
}

}  // namespace
}  // namespace bascule::testing
