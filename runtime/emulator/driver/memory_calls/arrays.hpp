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

/// The image that a new array has, without an address. Refused, with a report, where no array is so.
CUresult plan_image(memory::Image& image, const CUDA_ARRAY3D_DESCRIPTOR& asked, bool mipmapped,
                    const char* name);

/// Gives images, the first of which has the address 0 and the others theirs relative to it, `bytes` of memory.
CUresult allocate_images(std::vector<memory::Image>& images, std::uint64_t bytes, const char* what);

/// Nothing for what textures and arrays cannot hold.
std::optional<memory::TexelFormat> texel_format(CUarray_format format, unsigned channels);

}  // namespace emulated::driver
