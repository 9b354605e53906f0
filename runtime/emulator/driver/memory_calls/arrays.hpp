// CUDA arrays: memory whose layout is the driver's own.
#pragma once

#include <optional>
#include <vector>

#include <cuda.h>

#include "driver/process.hpp"
#include "memory/images.hpp"

namespace emulated::driver {

/// What a CUarray points to.
struct ArrayObject {
    static constexpr HandleKind kind = HandleKind::array;
    CUDA_ARRAY3D_DESCRIPTOR description{};
    memory::Image image;
    bool is_level = false;  ///< of a mipmapped array, which owns its memory
};

/// What a CUmipmappedArray points to: its levels, from the largest on. They lie in one allocation.
struct MipmappedArray {
    static constexpr HandleKind kind = HandleKind::mipmapped_array;
    std::vector<CUarray> handles;
    std::vector<memory::Image> images;
};

/// Nothing for what textures and arrays cannot hold.
std::optional<memory::TexelFormat> texel_format(CUarray_format format, unsigned channels);

}  // namespace emulated::driver
