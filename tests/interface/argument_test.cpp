// What fits which parameter, and what a launch passes for it.
#include <array>
#include <vector>

#include "support.hpp"

namespace bascule::testing {
namespace {

using Kind = ArgumentError::Kind;

void check_accepted(const Parameter& parameter, const ArrayView& view) {
    const Signature declared = signature({parameter});
    ArgumentPack pack(declared);
    CAPTURE(parameter.spelling);
    CAPTURE(describe(view));
    CHECK_NOTHROW(pack.set(0, view));
    CHECK(passed<std::uint64_t>(pack, 0) == view.pointer);
}

template <class Value>
void check_not_accepted(const Parameter& parameter, const Value& value, Kind kind,
                        std::initializer_list<std::string_view> parts) {
    const Signature declared = signature({parameter});
    ArgumentPack pack(declared);
    CAPTURE(parameter.spelling);
    check_refused([&] { pack.set(0, value); }, kind, parts);
}

Parameter void_pointer() {
    Parameter parameter = pointer_parameter("void*", "|V1");
    parameter.type.element_kind = ParameterType::Element::any;
    return parameter;
}

Parameter char_pointer() {
    Parameter parameter = pointer_parameter("char*", "|i1");
    parameter.type.character = true;
    return parameter;
}

// --- Elements

TEST_CASE("an array fits a pointer to exactly its element type") {
    constexpr const char* typestrs[] = {"|b1", "|i1", "<i2", "<i4", "<i8", "|u1", "<u2",
                                        "<u4", "<u8", "<f2", "<f4", "<f8", "<c8", "<c16"};
    for (const char* declared : typestrs) {
        const Parameter parameter = pointer_parameter("T*", declared);
        for (const char* given : typestrs) {
            const std::string_view pair[] = {declared, given};
            const bool bool_as_byte = pair[0] == "|u1" && pair[1] == "|b1";
            if (pair[0] == pair[1] || bool_as_byte) {
                check_accepted(parameter, array(given, {8}));
            } else {
                check_not_accepted(parameter, array(given, {8}), Kind::type,
                                   {"argument 1 'p'", "`T*`", to_string(parse_typestr(given))});
            }
        }
    }
}

TEST_CASE("the message for the wrong element type names both, and two ways out") {
    const InPython python;
    const auto error = caught([] {
        const Signature declared = signature({pointer_parameter("float*", "<f4")});
        ArgumentPack(declared).set(0, array("<f8", {1000}));
    });
    REQUIRE(error);
    CHECK(std::string(error->what()) ==
          "argument 1 'p': the kernel declares `float*`, got a float64 array of shape (1000,). Convert it "
          "with .astype(\"f4\"), or declare `double*`.");
    CHECK(error->details().index == 0);
    CHECK(error->details().name == "p");
    CHECK(error->details().expected == "float*");
    CHECK(error->details().got == "a float64 array of shape (1000,)");
}

TEST_CASE("the type to declare keeps const and the view") {
    check_not_accepted(pointer_parameter("const float*", "<f4"), array("<i8", {3}), Kind::type,
                       {"`const long long*`"});
    check_not_accepted(view_parameter("const float", "<f4", 1), array("<f8", {3}), Kind::type,
                       {"`bascule::array_view<const double>`"});
    check_not_accepted(view_parameter("float", "<f4", 2), array("<u1", {3, 3}), Kind::type,
                       {"`bascule::array_view<unsigned char, 2>`"});
}

TEST_CASE("plain char is the same where a compiler makes it unsigned") {
    Parameter parameter = char_pointer();
    parameter.type.dtype = parse_typestr("|u1");
    check_accepted(parameter, array("|i1", {8}));
    check_accepted(parameter, array("|u1", {8}));
    check_not_accepted(parameter, array("|b1", {8}), Kind::type, {"`char*`", "bool array"});
}

TEST_CASE("a pointer to void takes every element type but single bits") {
    for (const char* typestr : {"|b1", "<f4", "<c16", "|V12", "<M8[s]"})
        check_accepted(void_pointer(), array(typestr, {8}));
    check_not_accepted(void_pointer(), array("|t1", {8}), Kind::value, {"masks"});
    check_not_accepted(pointer_parameter("unsigned char*", "|u1"), array("|t1", {8}), Kind::value, {"masks"});
}

// --- Pointers

TEST_CASE("ravel is suggested only where the array has a flat view") {
    for (const ArrayView& view : {strided("<f4", {8}, {8}), strided("<f4", {2, 3}, {-12, 4})}) {
        const Signature declared = signature({pointer_parameter("const float*", "<f4")});
        ArgumentPack pack(declared);
        const auto refused = caught([&] { pack.set(0, view); });
        REQUIRE(refused);
        CHECK(std::string(refused->what()).find("ravel") == std::string::npos);
    }
}

TEST_CASE("a raw pointer is passed as it is, to pointers only") {
    const Signature declared = signature({pointer_parameter("float*", "<f4")});
    ArgumentPack pack(declared);
    pack.set(0, RawPointer{12345});
    CHECK(passed<std::uint64_t>(pack, 0) == 12345);
    check_not_accepted(scalar_parameter("int", "<i4"), RawPointer{16}, Kind::type,
                       {"`int`", "0x10", "Only pointer"});
    check_not_accepted(view_parameter("float", "<f4", 1), RawPointer{16}, Kind::type,
                       {"shape", "device array"});
    check_not_accepted(opaque_parameter("S", 8), RawPointer{16}, Kind::type, {"`S`"});
}

TEST_CASE("None is a null pointer, to pointers only") {
    const Signature declared =
        signature({pointer_parameter("float*", "<f4"), scalar_parameter("float", "<f4"),
                   view_parameter("float", "<f4", 1), opaque_parameter("S", 8)});
    ArgumentPack pack(declared);
    pack.set(0, RawPointer{~std::uint64_t{0}});
    pack.set(0, std::monostate());
    CHECK(passed<std::uint64_t>(pack, 0) == 0);
    check_refused([&] { pack.set(1, std::monostate()); }, Kind::type,
                  {"argument 2 'f'", "`float`", "None", "pass a number"});
    check_refused([&] { pack.set(2, std::monostate()); }, Kind::type,
                  {"argument 3 'p'", "None", "pass a device array"});
    check_refused([&] { pack.set(3, std::monostate()); }, Kind::type, {"argument 4 's'", "None", "bytes"});
}

// --- Views

TEST_CASE("a view is its pointer, its extents and its strides in bytes") {
    const Signature declared = signature({view_parameter("const float", "<f4", 2)});
    ArgumentPack pack(declared);
    pack.set(0, strided("<f4", {3, 5}, {-40, 8}));
    const auto words = passed<std::array<std::int64_t, 5>>(pack, 0);
    CHECK(words == std::array<std::int64_t, 5>{static_cast<std::int64_t>(address), 3, 5, -40, 8});
}

TEST_CASE("the rank of a view is the array's") {
    check_not_accepted(view_parameter("float", "<f4", 1), array("<f4", {2, 3}), Kind::value,
                       {"1 dimension,", "the array 2", "reshape", "`bascule::array_view<float, 2>`"});
    check_not_accepted(view_parameter("float", "<f4", 2), array("<f4", {6}), Kind::value,
                       {"2 dimensions", "`bascule::array_view<float>`"});
    check_not_accepted(view_parameter("float", "<f4", 1), array("<f4", {}), Kind::value,
                       {"the array 0: reshape it", "`bascule::array_view<float, 0>`"});
}

TEST_CASE("a view of another layout than ours is never filled in") {
    Parameter parameter = view_parameter("float", "<f4", 1);
    parameter.bytes = 48;
    check_not_accepted(parameter, array("<f4", {8}), Kind::value, {"48 bytes", "24", "array_view"});
}

// --- Values

TEST_CASE("a number for an array is refused, and an address must be wrapped") {
    const InPython python;
    check_not_accepted(
        pointer_parameter("float*", "<f4"), integer(4096), Kind::type,
        {"argument 1 'p'", "got 4096", "an integer address must be wrapped: bascule.raw_pointer(address)"});
    check_not_accepted(view_parameter("float", "<f4", 1), real(1), Kind::type,
                       {"the float 1.0", "device array"});
    check_not_accepted(opaque_parameter("S", 24), integer(1), Kind::type, {"`S`", "24 bytes"});
}

TEST_CASE("an array for a value is refused") {
    check_not_accepted(scalar_parameter("float", "<f4"), array("<f4", {1}), Kind::type,
                       {"argument 1 'f'", "`float`", "float32 array", "by value", "scalar"});
    check_not_accepted(opaque_parameter("S", 4), array("<f4", {1}), Kind::type, {"`S`", "bytes"});
}

TEST_CASE("raw bytes go into structs of exactly that size") {
    const std::array<std::byte, 3> bytes = {std::byte{1}, std::byte{2}, std::byte{3}};
    const Signature declared = signature({opaque_parameter("S", 3)});
    ArgumentPack pack(declared);
    pack.set(0, RawBytes{bytes});
    CHECK(passed<std::array<std::byte, 3>>(pack, 0) == bytes);
    check_not_accepted(opaque_parameter("S", 4), RawBytes{bytes}, Kind::value,
                       {"`S`", "3 bytes", "exactly 4"});
    check_not_accepted(scalar_parameter("float", "<f4"), RawBytes{bytes}, Kind::type,
                       {"`float`", "pass a number"});
    check_not_accepted(pointer_parameter("float*", "<f4"), RawBytes{bytes}, Kind::type,
                       {"pass a device array"});
}

// --- The whole list

TEST_CASE("a hundred parameters, and more bytes than the stack holds for them, are passed as well") {
    Signature declared;
    for (int i = 0; i < 100; ++i) declared.parameters.push_back(scalar_parameter("int", "<i4"));
    declared.parameters.push_back(opaque_parameter("S", 3000));
    lay_out(declared);
    ArgumentPack pack(declared);
    for (int i = 0; i < 100; ++i) pack.set(i, integer(i * i));
    const std::vector<std::byte> bytes(3000, std::byte{0x5A});
    pack.set(100, RawBytes{bytes});
    for (int i = 0; i < 100; ++i) CHECK(passed<int>(pack, i) == i * i);
    CHECK(std::memcmp(pack.table()[100], bytes.data(), bytes.size()) == 0);
}

TEST_CASE("arguments lie where the compiler laid the parameters") {
    const Signature declared =
        signature({scalar_parameter("bool", "|b1"), scalar_parameter("double", "<f8")});
    ArgumentPack pack(declared);
    const auto* first = static_cast<const std::byte*>(pack.table()[0]);
    CHECK(static_cast<const std::byte*>(pack.table()[1]) - first == 8);
}

}  // namespace
}  // namespace bascule::testing
