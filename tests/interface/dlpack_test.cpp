// DLPack's tensors as array views, and back. Expected values: the DLPack specification; NumPy's rules of contiguity.
#include <cstddef>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include <bascule/interface/arrays/dlpack.hpp>
#include <bascule/interface/arrays/mask.hpp>

#include "support.hpp"

namespace bascule::testing {
namespace {

using dlpack::Tensor;
using Kind = DType::Kind;
using Refused = ArgumentError::Kind;

constexpr std::int64_t largest = std::numeric_limits<std::int64_t>::max();

// The layout of DLPack's declarations on a 64-bit system; a test in Python compares with a dlpack.h.
static_assert(sizeof(dlpack::DataType) == 4 && sizeof(dlpack::DeviceId) == 8 && sizeof(Tensor) == 48);
static_assert(offsetof(Tensor, device) == 8 && offsetof(Tensor, ndim) == 16 && offsetof(Tensor, dtype) == 20);
static_assert(offsetof(Tensor, shape) == 24 && offsetof(Tensor, strides) == 32);
static_assert(offsetof(Tensor, byte_offset) == 40 && sizeof(dlpack::Managed) == 64);
static_assert(sizeof(dlpack::ManagedVersioned) == 80 && offsetof(dlpack::ManagedVersioned, flags) == 24);
static_assert(offsetof(dlpack::ManagedVersioned, tensor) == 32);
static_assert(sizeof(dlpack::ExchangeTable) == 56 &&
              offsetof(dlpack::ExchangeTable, current_work_stream) == 48);

/// A tensor of float32 that owns its extents.
struct Owning {
    std::vector<std::int64_t> shape, strides;
    Tensor tensor{};

    explicit Owning(std::vector<std::int64_t> the_shape, std::vector<std::int64_t> the_strides = {})
        : shape(std::move(the_shape)), strides(std::move(the_strides)) {
        tensor.data = reinterpret_cast<void*>(address);
        tensor.device = {BASCULE_DL_CUDA, 0};
        tensor.ndim = static_cast<std::int32_t>(shape.size());
        tensor.dtype = {2, 32, 1};
        tensor.shape = shape.data();
        tensor.strides = strides.empty() ? nullptr : strides.data();
    }
};

TEST_CASE("the fast path makes the same of a tensor as the general path") {
    std::mt19937_64 random(20261122);
    const std::int64_t extents[] = {0, 1, 2, 3, 7, -1, std::int64_t{1} << 31, largest};
    const std::uint8_t bits[] = {8, 16, 32, 64, 128, 4, 12, 0};
    const std::uint64_t offsets[] = {0, 4, 1, std::numeric_limits<std::uint64_t>::max()};
    const auto one_of = [&](const auto& values) { return values[random() % std::size(values)]; };
    int accepted = 0;
    for (int round = 0; round < 20000; ++round) {
        std::vector<std::int64_t> shape(random() % 4);
        for (std::int64_t& extent : shape) extent = one_of(extents);
        std::vector<std::int64_t> strides(shape.size());
        std::uint64_t step = 1;
        for (std::size_t d = shape.size(); d-- > 0; step *= static_cast<std::uint64_t>(shape[d]))
            strides[d] = random() % 8 == 0 ? one_of(extents) : static_cast<std::int64_t>(step);
        Owning owning(shape, random() % 2 == 0 ? strides : std::vector<std::int64_t>());
        owning.tensor.dtype = {static_cast<std::uint8_t>(random() % 8), one_of(bits),
                               static_cast<std::uint16_t>(random() % 8 == 0 ? 2 : 1)};
        owning.tensor.byte_offset = one_of(offsets);
        if (random() % 16 == 0) owning.tensor.data = nullptr;
        const std::optional<DType> dtype = dlpack::dtype_of(owning.tensor.dtype);
        if (!dtype || plain_traits(*dtype, false) == not_plain) continue;
        PlainArray plain;
        plain.traits = dlpack::traits_of(owning.tensor.dtype);
        Dimensions read;
        std::uint64_t end = 0;
        if (!dlpack::read_plain_elements(owning.tensor, plain, &read)) continue;
        if (__builtin_add_overflow(plain.pointer, plain.bytes, &end)) continue;  // ArgumentPack refuses it
        const ArrayView view = view_of(plain, read);
        ++accepted;
        const ArrayView expected = dlpack::view_of(owning.tensor);
        REQUIRE(view.pointer == expected.pointer);
        REQUIRE(view.dtype == expected.dtype);
        REQUIRE(to_string(view.shape) == to_string(expected.shape));
        REQUIRE(to_string(view.strides) == to_string(expected.strides));
        REQUIRE(view.size == expected.size);
        REQUIRE(view.c_contiguous == expected.c_contiguous);
        REQUIRE(view.f_contiguous == expected.f_contiguous);
    }
    CHECK(accepted > 200);
}

TEST_CASE("a tensor's view is the one that the array interface gives for the same fields") {
    const auto agree = [](std::vector<std::int64_t> shape, std::vector<std::int64_t> strides) {
        RawInterface raw = raw_array("<f4", {});
        raw.shape = Dimensions(shape);
        raw.has_strides = true;
        for (const std::int64_t stride : strides) raw.strides.push_back(stride * 4);
        const ArrayView expected = validate(raw);
        const ArrayView view = dlpack::view_of(Owning(std::move(shape), std::move(strides)).tensor);
        CHECK(to_string(view.strides) == to_string(expected.strides));
        CHECK(view.c_contiguous == expected.c_contiguous);
        CHECK(view.f_contiguous == expected.f_contiguous);
        CHECK(view.size == expected.size);
    };
    agree({3, 4}, {4, 1});
    agree({3, 4}, {1, 3});
    agree({3, 1, 4}, {4, 9, 1});
    agree({1, 1}, {7, -7});
    agree({3, 0, 4}, {5, 5, 5});
    agree({6}, {-1});
    agree({2, 2, 2}, {4, 2, 1});
    agree({2, 2, 2}, {2, 4, 1});
}

TEST_CASE("an empty tensor may have no data, any strides and extents whose product is huge") {
    Owning empty({largest, 0, largest}, {3, 3, 3});
    empty.tensor.data = nullptr;
    empty.tensor.byte_offset = std::numeric_limits<std::uint64_t>::max();
    const ArrayView view = dlpack::view_of(empty.tensor);
    CHECK(view.empty());
    CHECK(view.pointer == 0);
    CHECK(view.contiguous());
}

struct Coded {
    dlpack::DataType type;
    const char* typestr;
};

constexpr Coded coded[] = {
    {{0, 8, 1}, "|i1"},  {{0, 16, 1}, "<i2"}, {{0, 32, 1}, "<i4"},   {{0, 64, 1}, "<i8"}, {{1, 8, 1}, "|u1"},
    {{1, 16, 1}, "<u2"}, {{1, 32, 1}, "<u4"}, {{1, 64, 1}, "<u8"},   {{2, 16, 1}, "<f2"}, {{2, 32, 1}, "<f4"},
    {{2, 64, 1}, "<f8"}, {{5, 64, 1}, "<c8"}, {{5, 128, 1}, "<c16"}, {{6, 8, 1}, "|b1"},
};

TEST_CASE("every dtype that DLPack has a code for goes there and back") {
    for (const Coded& row : coded) {
        CAPTURE(row.typestr);
        const DType dtype = parse_typestr(row.typestr);
        const auto code = dlpack::data_type_of(dtype);
        REQUIRE(code.has_value());
        CHECK(code->code == row.type.code);
        CHECK(code->bits == row.type.bits);
        CHECK(code->lanes == 1);
        CHECK(dlpack::dtype_of(row.type) == dtype);
    }
}

struct Named {
    std::uint8_t code;
    std::uint8_t bits;
    const char* name;
};

constexpr Named formats[] = {
    {4, 16, "bfloat16"},          {7, 8, "float8_e3m4"},      {8, 8, "float8_e4m3"},
    {9, 8, "float8_e4m3b11fnuz"}, {10, 8, "float8_e4m3fn"},   {11, 8, "float8_e4m3fnuz"},
    {12, 8, "float8_e5m2"},       {13, 8, "float8_e5m2fnuz"}, {14, 8, "float8_e8m0fnu"},
};

TEST_CASE("the small formats go there and back by their names") {
    for (const Named& row : formats) {
        CAPTURE(row.name);
        const auto dtype = dtype_named(row.name);
        REQUIRE(dtype.has_value());
        const auto code = dlpack::data_type_of(*dtype);
        REQUIRE(code.has_value());
        CHECK(code->code == row.code);
        CHECK(code->bits == row.bits);
        CHECK(dlpack::dtype_of({row.code, row.bits, 1}) == dtype);
    }
    CHECK_FALSE(dlpack::data_type_of(parse_typestr("<V2")).has_value());
    CHECK_FALSE(dlpack::data_type_of(*dtype_named("float4_e2m1fn")).has_value());
}

TEST_CASE("devices are named as people know them") {
    CHECK(dlpack::to_string({BASCULE_DL_CPU, 0}) == "host memory");
    CHECK(dlpack::to_string({BASCULE_DL_CUDA, 3}) == "CUDA device 3");
    CHECK(dlpack::to_string({10, 1}) == "a device of DLPack type 10 (number 1)");
    CHECK_FALSE(dlpack::is_cuda({BASCULE_DL_CPU, 0}));
    CHECK(dlpack::is_cuda({BASCULE_DL_CUDA_MANAGED, 0}));
}

}  // namespace
}  // namespace bascule::testing
