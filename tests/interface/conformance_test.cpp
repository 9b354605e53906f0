// The rows of CONFORMANCE.md that depend on values alone, by number, for every version. Also tests that a mutant, which
// lacks one check, does not refuse the rows of this check (tests/python/conformance/mutation.py).
#include <algorithm>
#include <cstdlib>
#include <functional>
#include <limits>
#include <string_view>
#include <vector>

#include "support.hpp"

namespace bascule::testing {
namespace {

using Kind = ArgumentError::Kind;

/// A producer's descriptor and the expected result. `by`: the check that refuses it, by its name in mutants.py.
struct Case {
    int row = 0;
    const char* gives = "";
    RawInterface raw{};
    std::optional<Kind> refused{};
    std::vector<std::string_view> says{};
    std::string_view by{};
};

using Change = std::function<void(RawInterface&)>;

Case good(
    int row, const char* gives, const Change& change = [](RawInterface&) {}) {
    Case made{.row = row, .gives = gives, .raw = raw_array("<f4", {8})};
    change(made.raw);
    return made;
}

Case bad(int row, const char* gives, std::string_view by, std::vector<std::string_view> says,
         const Change& change, Kind kind = Kind::value) {
    Case made = good(row, gives, change);
    made.refused = kind;
    made.says = std::move(says);
    made.by = by;
    return made;
}

Change with_shape(std::initializer_list<std::int64_t> shape) {
    return [=](RawInterface& raw) { raw.shape = dimensions(shape); };
}

Change with_typestr(std::string_view typestr) {
    return [=](RawInterface& raw) { raw.typestr = typestr; };
}

Change with_pointer(std::uint64_t pointer) {
    return [=](RawInterface& raw) { raw.pointer = pointer; };
}

Change with_layout(std::initializer_list<std::int64_t> shape, std::initializer_list<std::int64_t> strides) {
    return [=](RawInterface& raw) {
        raw.shape = dimensions(shape);
        raw.strides = dimensions(strides);
        raw.has_strides = true;
    };
}

Change with_stream(std::uint64_t stream) {
    return [=](RawInterface& raw) { raw.stream = stream; };
}

Change with_nothing_at(std::initializer_list<std::int64_t> shape) {
    return [=](RawInterface& raw) {
        raw.shape = dimensions(shape);
        raw.pointer = 0;
        raw.pointer_is_none = true;
    };
}

std::vector<Case> typestr_cases() {
    std::vector<Case> cases;
    for (const char* typestr : {"|b1", "|u1", "|i1", "<i2", "<i4", "<i8", "<u2", "<u4", "<u8", "<f2", "<f4",
                                "<f8", "<c8", "<c16"}) {
        cases.push_back(good(23, typestr, with_typestr(typestr)));
    }
    for (const char* typestr : {"", "f4", "<f"}) {
        cases.push_back(bad(33, typestr, "typestr_form", {"'typestr'", typestr}, with_typestr(typestr)));
    }
    cases.push_back(bad(33, "!f4", "typestr_order", {"'typestr'", "!f4"}, with_typestr("!f4")));
    for (const char* typestr : {"<fX", "<f-4", "<f04", "<f4 ", "<f99999999999999999999"}) {
        cases.push_back(bad(33, typestr, "typestr_size", {"'typestr'", typestr}, with_typestr(typestr)));
    }
    for (const char* typestr : {"<f3", "<i16", "<c4", "<b2", "<x4"}) {
        cases.push_back(bad(33, typestr, "typestr_known", {"'typestr'", typestr}, with_typestr(typestr)));
    }
    cases.push_back(bad(24, ">f4", "typestr_big_endian", {"'typestr'", ">f4"}, with_typestr(">f4")));
    cases.push_back(good(24, ">u1", with_typestr(">u1")));
    for (const char* typestr : {"|V2", "<V2", "|V12"})
        cases.push_back(good(25, typestr, with_typestr(typestr)));
    cases.push_back(bad(30, "|O8", "typestr_object", {"'typestr'", "|O8"}, with_typestr("|O8"), Kind::type));
    for (const char* typestr : {"<M8[ns]", "<m8[us]"})
        cases.push_back(good(31, typestr, with_typestr(typestr)));
    for (const char* typestr : {"|S5", "<U4"}) {
        cases.push_back(
            bad(32, typestr, "typestr_string", {"'typestr'", typestr}, with_typestr(typestr), Kind::type));
    }
    return cases;
}

std::vector<Case> cases() {
    std::vector<Case> all = {
        good(12, "the version"),
        good(16, "()", with_shape({})),
        bad(20, "(-1,)", "extent_negative", {"'shape'", "(-1,)"}, with_shape({-1})),
        bad(20, "(-1, -1)", "extent_negative", {"'shape'", "(-1, -1)"}, with_shape({-1, -1})),
        bad(20, "(0, -1)", "extent_negative", {"'shape'", "(0, -1)"}, with_shape({0, -1})),
        bad(21, "(2**32, 2**32)", "shape_bytes", {"'shape'", "(4294967296, 4294967296)"},
            with_shape({std::int64_t{1} << 32, std::int64_t{1} << 32})),
        bad(21, "(2**63 - 1,)", "shape_bytes", {"'shape'", "4 bytes per element"}, with_shape({int64_max})),
        good(21, "(2**63 - 1, 0)", with_shape({int64_max, 0})),
        good(21, "5 * 10**8", with_shape({500000000})),
        bad(35, "None", "pointer_none", {"'data'", "None"}, with_nothing_at({8}), Kind::type),
        good(35, "None, empty", with_nothing_at({0})),
        good(36, "0, empty",
             [](RawInterface& raw) {
                 raw.shape = dimensions({0});
                 raw.pointer = 0;
             }),
        good(37, "any address, empty",
             [](RawInterface& raw) {
                 raw.shape = dimensions({0});
                 raw.pointer = ~std::uint64_t{0};
             }),
        bad(38, "0", "pointer_null", {"'data'", "(0, ...)"}, with_pointer(0)),
        bad(42, "2**64 - 8", "address_space", {"'data'", "0xfffffffffffffff8"}, with_pointer(-8ULL)),
        good(43, "C strides", with_layout({2, 4}, {16, 4})),
        good(44, "Fortran strides", with_layout({2, 4}, {4, 8})),
        good(45, "negative strides", with_layout({8}, {-4})),
        good(46, "stride 0", with_layout({8}, {0})),
        good(47, "() of no axes", with_layout({}, {})),
        bad(47, "two for one axis", "strides_count", {"'strides'", "(4, 4)"}, with_layout({8}, {4, 4})),
        bad(47, "none for one axis", "strides_count", {"'strides'", "()"}, with_layout({8}, {})),
        good(48, "any for an axis of one", with_layout({1, 8}, {int64_min, 4})),
        good(48, "any for an empty array", with_layout({0, 8}, {int64_min, int64_max})),
        bad(50, "(2**62,)", "strides_reach", {"'strides'", "4611686018427387904"},
            with_layout({8}, {std::int64_t{1} << 62})),
        bad(54, "0", "stream_zero", {"'stream'", "0"}, with_stream(0)),
        good(55, "2**64 - 1", with_stream(~std::uint64_t{0})),
    };
    const std::vector<Case> typestrs = typestr_cases();
    all.insert(all.end(), typestrs.begin(), typestrs.end());
    return all;
}

/// True if the error is the one that the row requires.
bool holds(const Case& made, const ArgumentError& error) {
    const std::string message = error.what();
    return error.kind() == *made.refused &&
           std::all_of(made.says.begin(), made.says.end(),
                       [&](std::string_view part) { return message.find(part) != std::string::npos; });
}

TEST_CASE("each row has its outcome in every version") {
    for (const Case& made : cases()) {
        for (const std::int64_t version : {0, 1, 2, 3}) {
            CAPTURE(made.row);
            CAPTURE(made.gives);
            RawInterface raw = made.raw;
            raw.version = version;
            const std::optional<ArgumentError> error = caught([&] { validate(raw); });
            CHECK(error.has_value() == made.refused.has_value());
            if (!error || !made.refused) continue;
            CHECK_MESSAGE(holds(made, *error), error->what());
            CHECK_FALSE(error->details().field.empty());
        }
    }
}

TEST_CASE("what is refused is refused by the check of its row, and by no other" *
          doctest::skip(std::getenv("BASCULE_MUTANT") == nullptr)) {
    for (const Case& made : cases()) {
        if (made.by != std::getenv("BASCULE_MUTANT")) continue;
        CAPTURE(made.row);
        CAPTURE(made.gives);
        const std::optional<ArgumentError> error = caught([&] { validate(made.raw); });
        CHECK_FALSE((error && holds(made, *error)));
    }
}

TEST_CASE("rows 14 and 15: versions count from 0 to 3, and further only for those who ask for it") {
    RawInterface raw = raw_array("<f4", {8});
    for (const std::int64_t version : {std::int64_t{-1}, int64_min}) {
        raw.version = version;
        check_refused([&] { validate(raw); }, Kind::value, {"'version'", std::to_string(version)});
        raw.accept_newer = true;
        check_refused([&] { validate(raw); }, Kind::value, {"'version'"});
        raw.accept_newer = false;
    }
    for (const std::int64_t version : {std::int64_t{4}, int64_max}) {
        raw.version = version;
        check_refused([&] { validate(raw); }, Kind::value,
                      {"'version'", std::to_string(version), "accept_newer_interface"});
        raw.accept_newer = true;
        CHECK(validate(raw).version == version);
        raw.accept_newer = false;
    }
}

}  // namespace
}  // namespace bascule::testing
