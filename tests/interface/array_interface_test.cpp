// Rows 12 to 24, 34 to 50 and 53 to 57 of the conformance list, as far as values decide them.
#include <limits>

#include <bascule/interface/errors/wording.hpp>

#include "support.hpp"

namespace bascule::testing {
namespace {

void check_invalid(const RawInterface& raw, std::initializer_list<std::string_view> parts) {
    check_refused([&] { validate(raw); }, ArgumentError::Kind::value, parts);
}

RawInterface with_strides(RawInterface raw, std::initializer_list<std::int64_t> strides) {
    raw.has_strides = true;
    raw.strides = dimensions(strides);
    return raw;
}

// --- version, shape

TEST_CASE("an extent of 0 makes the array empty, however large the others are") {
    for (const ArrayView& view :
         {array("<f8", {int64_max, int64_max, 0}), array("<f8", {int64_max, 0, int64_max}),
          array("<f8", {0, int64_max, int64_max})}) {
        CHECK(view.empty());
        CHECK(view.c_contiguous);
        CHECK(view.f_contiguous);
    }
}

TEST_CASE("64 dimensions are taken") {
    RawInterface raw = raw_array("<f4", {});
    for (int d = 0; d < max_dimensions; ++d) raw.shape.push_back(1);
    const ArrayView view = validate(raw);
    CHECK(view.ndim() == 64);
    CHECK(view.c_contiguous);
}

// --- data

TEST_CASE("an empty array keeps the pointer that it names") { CHECK(array("<f4", {0}).pointer == address); }

TEST_CASE("the last byte may be the last address, and no byte may lie beyond") {
    RawInterface raw = raw_array("<f4", {2});
    raw.pointer = 0xfffffffffffffff8;
    CHECK_NOTHROW(validate(raw));
    raw.pointer = 0xfffffffffffffff9;
    check_invalid(raw, {"'data'", "0xfffffffffffffff9", "address space"});
    raw = raw_array("<f4", {});
    raw.pointer = 0xfffffffffffffffd;
    check_invalid(raw, {"'data'", "address space"});
}

// --- strides

TEST_CASE("strides that are missing, and C strides that are spelled out, are the same") {
    const ArrayView implied = array("<f4", {2, 3, 5});
    const ArrayView spelled_out = strided("<f4", {2, 3, 5}, {60, 20, 4});
    for (int d = 0; d < 3; ++d) CHECK(implied.strides[d] == spelled_out.strides[d]);
    CHECK(implied.c_contiguous);
    CHECK(spelled_out.c_contiguous);
    CHECK_FALSE(spelled_out.f_contiguous);
}

TEST_CASE("contiguity is found by axes of more than one element") {
    struct Row {
        std::initializer_list<std::int64_t> shape, strides;
        bool c, f;
    };
    const Row rows[] = {
        {{}, {}, true, true},
        {{8}, {4}, true, true},
        {{8}, {8}, false, false},
        {{8}, {32}, false, false},  // contiguous only if strides counted bits
        {{8}, {-4}, false, false},
        {{8}, {0}, false, false},
        {{1}, {12345}, true, true},
        {{1}, {0}, true, true},
        {{2, 3}, {12, 4}, true, false},
        {{2, 3}, {4, 8}, false, true},
        {{2, 3}, {16, 4}, false, false},
        {{1, 8}, {999, 4}, true, true},
        {{8, 1}, {4, -1}, true, true},
        {{2, 1, 3}, {12, 77, 4}, true, false},
        {{2, 1, 3}, {4, 77, 8}, false, true},
        {{0, 3}, {7, 5}, true, true},
    };
    for (const Row& row : rows) {
        const ArrayView view = strided("<f4", row.shape, row.strides);
        CAPTURE(to_string(view.shape));
        CAPTURE(to_string(view.strides));
        CHECK(view.c_contiguous == row.c);
        CHECK(view.f_contiguous == row.f);
    }
}

TEST_CASE("negative strides reach below the first element, and not below address 0") {
    RawInterface raw = with_strides(raw_array("<f4", {3}), {-4});
    raw.pointer = 8;
    CHECK(validate(raw).pointer == 8);
    raw.pointer = 7;
    check_invalid(raw, {"'data'", "address space", "(-4,)"});
}

TEST_CASE("ups and downs of strides do not cancel out") {
    RawInterface raw = with_strides(raw_array("<f4", {3, 3}), {-64, 64});
    raw.pointer = 64;
    check_invalid(raw, {"address space"});
    raw.pointer = 0xffffffffffffff80;
    check_invalid(raw, {"address space"});
}

TEST_CASE("strides beyond 63 bits are refused") {
    check_invalid(with_strides(raw_array("<f4", {3}), {int64_max}), {"'strides'", "2**63"});
    check_invalid(with_strides(raw_array("<f4", {3}), {int64_min}), {"'strides'", "2**63"});
    check_invalid(with_strides(raw_array("<f4", {2}), {int64_min}), {"address space"});
    check_invalid(with_strides(raw_array("<f4", {2, 2, 2}), {int64_max, int64_max, int64_max}),
                  {"address space"});
}

TEST_CASE("strides of axes that are never stepped along are never added") {
    CHECK_NOTHROW(strided("<f4", {1}, {int64_min}));
    CHECK_NOTHROW(strided("<f4", {0}, {int64_max}));
}

// --- stream

TEST_CASE("stream 0 is ambiguous, and the error tells what it could have meant") {
    RawInterface raw = raw_array("<f4", {8});
    raw.stream = 0;
    check_invalid(raw, {"'stream'", "0", "None", "1 (legacy default)", "2 (per-thread default)"});
    raw.shape = dimensions({0});
    check_invalid(raw, {"'stream'"});
}

// --- messages

TEST_CASE("arrays are described as people say it") {
    CHECK(describe(array("<f8", {1000})) == "a float64 array of shape (1000,)");
    CHECK(describe(array("<i4", {2, 3})) == "an int32 array of shape (2, 3)");
    CHECK(describe(array("<u2", {})) == "a uint16 array of shape ()");
    CHECK(describe(array("|V12", {3})) == "an array of shape (3,) with elements of 12 opaque bytes");
    CHECK(describe(strided("<f4", {3}, {8})) == "a float32 array of shape (3,) with strides (8,)");
    ArrayView view = array("<f4", {3});
    view.readonly = true;
    CHECK(describe(view) == "a float32 array of shape (3,) that is read-only");
}

TEST_CASE("values in messages are escaped, cut, and always UTF-8") {
    CHECK(shortened("<f4") == "<f4");
    CHECK(shortened("say \"hi\"\\") == "say \\\"hi\\\"\\\\");
    CHECK(shortened("a\nb\x7f") ==
          "a\\x0a"
          "b\\x7f");
    CHECK(shortened("\xc3\xa9") == "\xc3\xa9");                  // e with an acute accent
    CHECK(shortened("\xe2\x98\x83!") == "\xe2\x98\x83!");        // a snowman
    CHECK(shortened("\xf0\x9f\x9a\x80") == "\xf0\x9f\x9a\x80");  // a rocket
    CHECK(shortened("\xc3") == "\\xc3");
    CHECK(shortened("\xc0\xaf") == "\\xc0\\xaf");           // overlong
    CHECK(shortened("\xed\xa0\x80") == "\\xed\\xa0\\x80");  // a surrogate
    CHECK(shortened("\xf4\x90\x80\x80") == "\\xf4\\x90\\x80\\x80");
    CHECK(shortened("\xe2\x98x") == "\\xe2\\x98x");
    CHECK(shortened(std::string(60, 'x')) == std::string(60, 'x'));
    CHECK(shortened(std::string(61, 'x')) == std::string(60, 'x') + "...");
    CHECK(shortened(std::string(59, 'x') + "\xc3\xa9") == std::string(59, 'x') + "\xc3\xa9");
}

}  // namespace
}  // namespace bascule::testing
