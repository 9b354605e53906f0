// Rows 23 to 33 of the conformance list, as far as values decide them. Expected values: NumPy's table of kinds.
#include "support.hpp"

namespace bascule::testing {
namespace {

using Kind = DType::Kind;
using Format = DType::Format;

struct Row {
    const char* typestr;
    Kind kind;
    std::uint32_t itemsize;
    std::uint32_t alignment;
    const char* name;
    const char* cuda;
};

constexpr Row rows[] = {
    {"|b1", Kind::boolean, 1, 1, "bool", "bool"},
    {"|i1", Kind::signed_integer, 1, 1, "int8", "signed char"},
    {"<i2", Kind::signed_integer, 2, 2, "int16", "short"},
    {"<i4", Kind::signed_integer, 4, 4, "int32", "int"},
    {"<i8", Kind::signed_integer, 8, 8, "int64", "long long"},
    {"|u1", Kind::unsigned_integer, 1, 1, "uint8", "unsigned char"},
    {"<u2", Kind::unsigned_integer, 2, 2, "uint16", "unsigned short"},
    {"<u4", Kind::unsigned_integer, 4, 4, "uint32", "unsigned int"},
    {"<u8", Kind::unsigned_integer, 8, 8, "uint64", "unsigned long long"},
    {"<f2", Kind::floating, 2, 2, "float16", "__half"},
    {"<f4", Kind::floating, 4, 4, "float32", "float"},
    {"<f8", Kind::floating, 8, 8, "float64", "double"},
    {"<c8", Kind::complex, 8, 8, "complex64", "cuda::std::complex<float>"},
    {"<c16", Kind::complex, 16, 16, "complex128", "cuda::std::complex<double>"},
    {"|V12", Kind::opaque, 12, 1, "12 opaque bytes", ""},
    {"<M8", Kind::datetime, 8, 8, "datetime64", "long long"},
    {"<m8", Kind::timedelta, 8, 8, "timedelta64", "long long"},
};

TEST_CASE("every element type has a typestr, a name, an alignment and a C++ spelling") {
    for (const Row& row : rows) {
        CAPTURE(row.typestr);
        const DType dtype = parse_typestr(row.typestr);
        CHECK(dtype == DType{row.kind, row.itemsize});
        CHECK(to_typestr(dtype) == row.typestr);
        CHECK(dtype.alignment() == row.alignment);
        CHECK(to_string(dtype) == row.name);
        CHECK(cuda_name(dtype) == row.cuda);
    }
}

TEST_CASE("other spellings of the same element type are read too") {
    struct Spelling {
        const char* typestr;
        const char* usual;
    };
    constexpr Spelling spellings[] = {
        {">u1", "|u1"},           {">i1", "|i1"},          {">b1", "|b1"},
        {"<b1", "|b1"},           {"<u1", "|u1"},          {"<V2", "|V2"},
        {"=f4", "<f4"},           {"=M8[ns]", "<M8[ns]"},  {"<m8[1us]", "<m8[us]"},
        {"<M8[007s]", "<M8[7s]"}, {"<M8[generic]", "<M8"}, {"|m8[D]", "<m8[D]"},
        {"|V1", "|V1"},           {"|V100", "|V100"},      {"<m8[\xce\xbcs]", "<m8[us]"},
    };
    for (const Spelling& spelling : spellings) {
        CAPTURE(spelling.typestr);
        CHECK(to_typestr(parse_typestr(spelling.typestr)) == spelling.usual);
    }
}

TEST_CASE("times keep their unit and how many of them are one step") {
    CHECK(parse_typestr("<M8[25s]") == DType{Kind::datetime, 8, Format::none, DType::TimeUnit::s, 25});
    CHECK(parse_typestr("<m8[as]") == DType{Kind::timedelta, 8, Format::none, DType::TimeUnit::as});
    CHECK(parse_typestr("<m8[M]") != parse_typestr("<m8[m]"));
    CHECK(to_string(parse_typestr("<M8[2147483647ns]")) == "datetime64[2147483647ns]");
    for (const char* typestr : {"<M8[Y]", "<m8[M]", "<M8[W]", "<m8[D]", "<M8[h]", "<m8[m]", "<M8[s]",
                                "<m8[ms]", "<M8[us]", "<m8[ns]", "<M8[ps]", "<m8[12fs]", "<M8[as]"}) {
        CHECK(to_typestr(parse_typestr(typestr)) == typestr);
    }
}

TEST_CASE("formats of ml_dtypes are told by name; a typestr tells float8_e5m2 alone") {
    struct Named {
        const char* name;
        std::uint32_t itemsize;
        const char* typestr;
        const char* cuda;
    };
    constexpr Named named[] = {
        {"bfloat16", 2, "<V2", "__nv_bfloat16"},
        {"float8_e4m3fn", 1, "<V1", "__nv_fp8_e4m3"},
        {"float8_e5m2", 1, "<f1", "__nv_fp8_e5m2"},
        {"float8_e8m0fnu", 1, "<V1", "__nv_fp8_e8m0"},
        {"float6_e2m3fn", 1, "<V1", "__nv_fp6_e2m3"},
        {"float6_e3m2fn", 1, "<V1", "__nv_fp6_e3m2"},
        {"float4_e2m1fn", 1, "<V1", "__nv_fp4_e2m1"},
        {"float8_e4m3", 1, "<V1", ""},
        {"int4", 1, "<V1", ""},
    };
    for (const Named& row : named) {
        CAPTURE(row.name);
        const std::optional<DType> dtype = dtype_named(row.name);
        REQUIRE(dtype);
        CHECK(dtype->itemsize == row.itemsize);
        CHECK(dtype->alignment() == row.itemsize);
        CHECK(to_typestr(*dtype) == row.typestr);
        CHECK(to_string(*dtype) == row.name);
        CHECK(cuda_name(*dtype) == row.cuda);
    }
    CHECK_FALSE(dtype_named("float64"));
    CHECK_FALSE(dtype_named(""));
    CHECK(parse_typestr("<f1") == *dtype_named("float8_e5m2"));
    CHECK(parse_typestr("<V2") == DType{Kind::opaque, 2});
}

TEST_CASE("bytes without a meaning are elements of any format of their size, and no other format's") {
    const DType bytes = parse_typestr("<V1");
    const DType e4m3 = *dtype_named("float8_e4m3fn");
    const DType e5m2 = *dtype_named("float8_e5m2");
    CHECK(same_elements(e4m3, bytes));
    CHECK(same_elements(bytes, e4m3));
    CHECK(same_elements(e4m3, e4m3));
    CHECK_FALSE(same_elements(e4m3, e5m2));
    CHECK_FALSE(same_elements(e4m3, parse_typestr("|u1")));
    CHECK_FALSE(same_elements(*dtype_named("bfloat16"), bytes));
}

TEST_CASE("one bit an element is an element type, for masks") {
    CHECK(parse_typestr("|t1") == DType{Kind::bit, 1});
    CHECK(parse_typestr("<t1") == DType{Kind::bit, 1});
}

// conformance_test.cpp has more, in row 33.
TEST_CASE("a typestr that says nothing a device knows is a value error that quotes it") {
    for (const std::string_view typestr : {"<",
                                           "<i3",
                                           "<u0",
                                           "<f16",
                                           "<t2",
                                           " <f4",
                                           "<F4",
                                           "4f<",
                                           "|V0",
                                           "|V",
                                           "<M4",
                                           "<M8[",
                                           "<M8[]",
                                           "<M8[xs]",
                                           "<M8ns]",
                                           "<f4[ns]",
                                           "<M8[ns]x",
                                           "<M8[4]",
                                           "<M8[2147483648s]",
                                           "<M8[3generic]",
                                           "<M8[n s]",
                                           "<M8[[ns]",
                                           "<f4294967300",
                                           "|V99999999999"}) {
        CAPTURE(typestr);
        check_refused([&] { parse_typestr(typestr); }, ArgumentError::Kind::value,
                      {"'typestr'", typestr.substr(0, 20)});
    }
}

TEST_CASE("bytes that no message can carry are escaped") {
    using namespace std::string_view_literals;
    check_refused([] { parse_typestr("<f\0"sv); }, ArgumentError::Kind::value, {"\"<f\\x00\""});
    check_refused([] { parse_typestr("<f\xff"); }, ArgumentError::Kind::value, {"\"<f\\xff\""});
    check_refused([] { parse_typestr("\"\n"); }, ArgumentError::Kind::value, {"\"\\\"\\x0a\""});
}

TEST_CASE("big-endian elements are refused with what to do") {
    for (const char* typestr : {">f4", ">i2", ">c16", ">M8[ns]"}) {
        CAPTURE(typestr);
        check_refused([&] { parse_typestr(typestr); }, ArgumentError::Kind::value,
                      {typestr, "big-endian", "swap the bytes"});
    }
}

TEST_CASE("the error names the field") {
    const auto error = caught([] { parse_typestr("<f3"); });
    REQUIRE(error);
    CHECK(error->details().field == "typestr");
    CHECK(error->details().got == "<f3");
}

}  // namespace
}  // namespace bascule::testing
