// cuTensorMapEncodeTiled and cuTensorMapEncodeIm2col: each rule of their documentation, at its border and past it.
#include <array>
#include <cstdint>
#include <cstring>
#include <string>

#include <doctest/doctest.h>

#include "client.hpp"

using client::Device;

namespace {

/// The arguments of a valid encoding, which tests change.
struct Encoding {
    CUtensorMap map{};
    CUtensorMap* to = &map;
    CUtensorMapDataType type = CU_TENSOR_MAP_DATA_TYPE_FLOAT16;
    cuuint32_t rank = 3;
    std::uintptr_t address = 0x7000'0000'0000;
    std::array<cuuint64_t, 5> extents{64, 20, 30, 4, 5};
    std::array<cuuint64_t, 4> strides{128, 128 * 20, 128 * 20 * 30, 128 * 20 * 30 * 4};
    std::array<cuuint32_t, 5> box{64, 8, 2, 1, 1}, steps{1, 1, 1, 1, 1};
    std::array<int, 3> lower{-1, -1, -1}, upper{-1, -1, -1};
    cuuint32_t channels = 64, pixels = 32;
    CUtensorMapInterleave interleave = CU_TENSOR_MAP_INTERLEAVE_NONE;
    CUtensorMapSwizzle swizzle = CU_TENSOR_MAP_SWIZZLE_128B;
    CUtensorMapL2promotion promotion = CU_TENSOR_MAP_L2_PROMOTION_NONE;
    CUtensorMapFloatOOBfill fill = CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE;
};

class Encoder {
  public:
    explicit Encoder(const char* architecture = "90")
        : library_(client::Library::Environment{{"BASCULE_EMULATED_ARCH", architecture}}), device_(library_) {
        find("cuTensorMapEncodeTiled", tiled_);
        find("cuTensorMapEncodeIm2col", im2col_);
        find("cuTensorMapReplaceAddress", replace_);
    }

    CUresult tiled(Encoding& e) {
        return tiled_(e.to, e.type, e.rank, reinterpret_cast<void*>(e.address), e.extents.data(),
                      e.strides.data(), e.box.data(), e.steps.data(), e.interleave, e.swizzle, e.promotion,
                      e.fill);
    }
    CUresult im2col(Encoding& e) {
        return im2col_(e.to, e.type, e.rank, reinterpret_cast<void*>(e.address), e.extents.data(),
                       e.strides.data(), e.lower.data(), e.upper.data(), e.channels, e.pixels, e.steps.data(),
                       e.interleave, e.swizzle, e.promotion, e.fill);
    }
    CUresult replace(CUtensorMap* map, std::uintptr_t address) {
        return replace_(map, reinterpret_cast<void*>(address));
    }

    /// Checks that both encodings accept the arguments that `change` makes, or that both refuse them with a message
    /// that contains `reason`.
    template <class Change>
    void check(const char* reason, Change change, bool tiled_only = false, bool im2col_only = false) {
        CAPTURE(reason);
        for (const bool columns : {false, true}) {
            if (columns ? tiled_only : im2col_only) continue;
            CAPTURE(columns);
            Encoding e;
            change(e);
            const CUresult result = columns ? im2col(e) : tiled(e);
            if (*reason == '\0') {
                CHECK(result == CUDA_SUCCESS);
                continue;
            }
            CHECK(result == CUDA_ERROR_INVALID_VALUE);
            CHECK(library_.report().find(reason) != std::string::npos);
        }
    }
    std::string report() const { return library_.report(); }

  private:
    template <class Function>
    void find(const char* name, Function& function) {
        function = reinterpret_cast<Function>(library_.symbol(name));
        REQUIRE(bool(function != nullptr));
    }

    client::Library library_;
    Device device_;
    PFN_cuTensorMapEncodeTiled_v12000 tiled_ = nullptr;
    PFN_cuTensorMapEncodeIm2col_v12000 im2col_ = nullptr;
    PFN_cuTensorMapReplaceAddress_v12000 replace_ = nullptr;
};

template <class Enum>
Enum enumerator(int value) {
    return static_cast<Enum>(value);
}

}  // namespace

TEST_CASE("a tensor map is encoded by the documented rules") {
    Encoder encoder;
    const auto check = [&](const char* reason, auto change) { encoder.check(reason, change); };
    check("", [](Encoding&) {});
    check("multiple of 64 bytes", [](Encoding& e) { e.to = nullptr; });
    check("multiple of 64 bytes",
          [](Encoding& e) { e.to = reinterpret_cast<CUtensorMap*>(reinterpret_cast<char*>(&e.map) + 32); });
    check("4 and 6 bits", [](Encoding& e) { e.type = enumerator<CUtensorMapDataType>(13); });
    check("not a data type", [](Encoding& e) { e.type = enumerator<CUtensorMapDataType>(16); });
    check("the rank is 6", [](Encoding& e) { e.rank = 6; });
    check("the rank is 0", [](Encoding& e) { e.rank = 0; });
    check("multiple of 16 bytes", [](Encoding& e) { e.address += 8; });
    check("", [](Encoding& e) { e.extents[1] = std::uint64_t{1} << 31; });
    check("1 to 2^31", [](Encoding& e) { e.extents[1] = (std::uint64_t{1} << 31) + 1; });
    check("dimension 2 has 0 elements", [](Encoding& e) { e.extents[2] = 0; });
    check("stride of dimension 1", [](Encoding& e) { e.strides[0] = 136; });
    check("", [](Encoding& e) { e.strides[1] = (std::uint64_t{1} << 40) - 16; });
    check("below 2^40", [](Encoding& e) { e.strides[1] = std::uint64_t{1} << 40; });
    check("", [](Encoding& e) { e.steps[0] = 0; });  // ignored
    check("", [](Encoding& e) { e.steps[1] = 8; });
    check("element stride of dimension 1 is 9", [](Encoding& e) { e.steps[1] = 9; });
    check("element stride of dimension 2 is 0", [](Encoding& e) { e.steps[2] = 0; });
    check("not an interleaved", [](Encoding& e) { e.interleave = enumerator<CUtensorMapInterleave>(3); });
    check("more than the swizzle's 64", [](Encoding& e) { e.swizzle = CU_TENSOR_MAP_SWIZZLE_64B; });
    check("more than the swizzle's 32", [](Encoding& e) { e.swizzle = CU_TENSOR_MAP_SWIZZLE_32B; });
    check("", [](Encoding& e) { e.swizzle = CU_TENSOR_MAP_SWIZZLE_NONE; });
    check("needs compute capability 10.0",
          [](Encoding& e) { e.swizzle = enumerator<CUtensorMapSwizzle>(4); });
    check("not a swizzle", [](Encoding& e) { e.swizzle = enumerator<CUtensorMapSwizzle>(7); });
    check("not an L2 promotion", [](Encoding& e) { e.promotion = enumerator<CUtensorMapL2promotion>(4); });
    check("", [](Encoding& e) { e.promotion = CU_TENSOR_MAP_L2_PROMOTION_L2_256B; });
    check("not a way to fill", [](Encoding& e) { e.fill = enumerator<CUtensorMapFloatOOBfill>(2); });
    check("", [](Encoding& e) { e.fill = CU_TENSOR_MAP_FLOAT_OOB_FILL_NAN_REQUEST_ZERO_FMA; });
    check("filled with NaN", [](Encoding& e) {
        e.fill = CU_TENSOR_MAP_FLOAT_OOB_FILL_NAN_REQUEST_ZERO_FMA;
        e.type = CU_TENSOR_MAP_DATA_TYPE_UINT16;
    });
    const auto slices = [](Encoding& e) {
        e.interleave = CU_TENSOR_MAP_INTERLEAVE_32B;
        e.swizzle = CU_TENSOR_MAP_SWIZZLE_32B;
    };
    check("", slices);
    check("swizzle of 32 bytes", [&](Encoding& e) { slices(e), e.swizzle = CU_TENSOR_MAP_SWIZZLE_64B; });
    check("multiple of 32 bytes", [&](Encoding& e) { slices(e), e.address += 16; });
    check("multiple of 32 below", [&](Encoding& e) { slices(e), e.strides[1] += 16; });
    check("element stride of dimension 0", [&](Encoding& e) { slices(e), e.steps[0] = 0; });
    check("the rank is 2", [&](Encoding& e) { slices(e), e.rank = 2; });
}

TEST_CASE("boxes and corners have rules of their own") {
    Encoder encoder;
    const auto box = [&](const char* reason, auto change) { encoder.check(reason, change, true); };
    box("", [](Encoding& e) { e.rank = 1, e.swizzle = CU_TENSOR_MAP_SWIZZLE_NONE, e.box[0] = 256; });
    box("", [](Encoding& e) { e.box[2] = 256; });
    box("257 elements in dimension 2", [](Encoding& e) { e.box[2] = 257; });
    box("0 elements in dimension 1", [](Encoding& e) { e.box[1] = 0; });
    box("a row of the box has 24 bytes", [](Encoding& e) { e.box[0] = 12; });

    const auto corner = [&](const char* reason, auto change) { encoder.check(reason, change, false, true); };
    corner("the rank is 2", [](Encoding& e) { e.rank = 2; });
    corner("257 channels", [](Encoding& e) { e.channels = 257; });
    corner("0 channels", [](Encoding& e) { e.channels = 0; });
    corner("", [](Encoding& e) { e.pixels = 1024; });
    corner("1025 pixels", [](Encoding& e) { e.pixels = 1025; });
    corner("", [](Encoding& e) { e.lower[0] = -32768; });
    corner("a corner is -32769", [](Encoding& e) { e.lower[0] = -32769; });
    corner("a corner is 32768", [](Encoding& e) { e.upper[0] = 32768; });
    corner("", [](Encoding& e) { e.rank = 4, e.lower[1] = -128, e.upper[1] = 127; });
    corner("a corner is 128 in dimension 2", [](Encoding& e) { e.rank = 4, e.upper[1] = 128; });
    corner("", [](Encoding& e) { e.rank = 5, e.lower[2] = -16, e.upper[2] = 15; });
    corner("a corner is -17 in dimension 3", [](Encoding& e) { e.rank = 5, e.lower[2] = -17; });
    corner("", [](Encoding& e) { e.lower[0] = 0, e.upper[0] = -19; });
    corner("leave nothing of the 20 pixels", [](Encoding& e) { e.lower[0] = 0, e.upper[0] = -20; });
}

TEST_CASE("the address of a tensor map can be replaced") {
    Encoder encoder;
    Encoding first, second;
    second.address += 4096;
    REQUIRE(encoder.tiled(first) == CUDA_SUCCESS);
    REQUIRE(encoder.tiled(second) == CUDA_SUCCESS);
    CHECK(encoder.replace(&first.map, second.address) == CUDA_SUCCESS);
    CHECK(std::memcmp(&first.map, &second.map, sizeof first.map) == 0);
    CHECK(encoder.replace(&first.map, second.address + 8) == CUDA_ERROR_INVALID_VALUE);
    first.map.opaque[3] ^= 1;
    CHECK(encoder.replace(&first.map, second.address) == CUDA_ERROR_INVALID_VALUE);
    CHECK(encoder.report().find("the bytes are not a tensor map") != std::string::npos);
}

TEST_CASE("an older architecture has no tensor maps") {
    Encoder encoder("89");
    Encoding e;
    CHECK(encoder.tiled(e) == CUDA_ERROR_NOT_SUPPORTED);
    CHECK(encoder.report().find("BASCULE_EMULATED_ARCH=90") != std::string::npos);
}
