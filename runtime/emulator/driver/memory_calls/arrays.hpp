// CUDA arrays: memory whose layout is the driver's own.
#pragma once

#include <optional>

#include <cuda.h>

#include "driver/process.hpp"
#include "memory/images.hpp"

namespace emulated::driver {

/// What a CUarray points to.
struct ArrayObject {
    static constexpr HandleKind kind = HandleKind::array;
    CUDA_ARRAY3D_DESCRIPTOR description{};
    memory::Image image;
};

/// Nothing for what textures and arrays cannot hold.
std::optional<memory::TexelFormat> texel_format(CUarray_format format, unsigned channels);

}  // namespace emulated::driver
