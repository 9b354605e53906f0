#include <algorithm>

#include <cuda.h>

#include <bascule/interface/errors/rejection.hpp>
#include <bascule/interface/errors/wording.hpp>
#include <bascule/runtime/textures/texels.hpp>

namespace bascule {
namespace {

constexpr struct {
    DType dtype;
    CUarray_format format;
} formats[] = {
    {{DType::Kind::unsigned_integer, 1}, CU_AD_FORMAT_UNSIGNED_INT8},
    {{DType::Kind::unsigned_integer, 2}, CU_AD_FORMAT_UNSIGNED_INT16},
    {{DType::Kind::unsigned_integer, 4}, CU_AD_FORMAT_UNSIGNED_INT32},
    {{DType::Kind::signed_integer, 1}, CU_AD_FORMAT_SIGNED_INT8},
    {{DType::Kind::signed_integer, 2}, CU_AD_FORMAT_SIGNED_INT16},
    {{DType::Kind::signed_integer, 4}, CU_AD_FORMAT_SIGNED_INT32},
    {{DType::Kind::floating, 2}, CU_AD_FORMAT_HALF},
    {{DType::Kind::floating, 4}, CU_AD_FORMAT_FLOAT},
};

}  // namespace

int driver_format(const TexelFormat& format) {
    if (format.channels != 1 && format.channels != 2 && format.channels != 4) {
        reject_field(ErrorKind::value, "channels", "a texture has 1, 2 or 4 channels, got {}{}.",
                     format.channels, format.channels == 3 ? ": add a fourth, as float4 has it" : "");
    }
    const auto* known = std::ranges::find(formats, format.dtype, [](const auto& each) { return each.dtype; });
    if (known == std::end(formats)) {
        const bool wide = format.dtype.itemsize == 8 && format.dtype.kind != DType::Kind::complex;
        reject(ErrorKind::type, {.got = to_string(format.dtype)},
               "textures have integers of 8, 16 and 32 bits, float16 and float32, got {}{}.",
               to_string(format.dtype),
               wide ? advice(": view it as pairs, x.view(\"i4\") with channels=2, and put them together by "
                             "__hiloint2double",
                             ": read pairs of int, and put them together by __hiloint2double")
                    : "");
    }
    return known->format;
}

Dimensions texel_shape(const Dimensions& shape, int channels) {
    if (channels == 1) return shape;
    const int last = shape.size() - 1;
    if (last < 1 || shape[last] != channels) {
        reject_field(ErrorKind::value, "channels",
                     "with {} channels the last axis of the array has {} elements, got an array of shape {}.",
                     channels, channels, to_string(shape));
    }
    Dimensions made;
    for (int i = 0; i < last; ++i) made.push_back(shape[i]);
    return made;
}

}  // namespace bascule
