// CUDA arrays: memory with a layout that the driver chooses.
#pragma once

#include <optional>
#include <vector>

#include <cuda.h>

#include "driver/process.hpp"
#include "memory/images.hpp"

namespace emulated::driver {

/// The object of a CUarray.
struct ArrayObject {
    CUDA_ARRAY3D_DESCRIPTOR description{};
    memory::Image image;
    bool is_level = false;  ///< true for a level of a mipmapped array, which owns its memory
};

/// The object of a CUmipmappedArray: its levels, the largest first, in one allocation.
struct MipmappedArray {
    std::vector<CUarray> handles;
    std::vector<memory::Image> images;
};

/// Returns nothing if textures and arrays do not support the format.
std::optional<memory::TexelFormat> texel_format(CUarray_format format, unsigned channels);

}  // namespace emulated::driver
