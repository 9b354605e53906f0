// Which elements textures have: what a driver calls the format of an array.
#pragma once

#include <bascule/interface/arrays/array_interface.hpp>

namespace bascule {

/// One element of a texture: `channels` numbers of `dtype` side by side.
struct TexelFormat {
    DType dtype;
    int channels = 1;  ///< 1, 2 or 4

    std::size_t bytes() const noexcept {
        return std::size_t{dtype.itemsize} * static_cast<std::size_t>(channels);
    }
};

/// A CUarray_format; the driver's own headers are not installed. Throws: ArgumentError for what no texture has: 64 bits,
/// complex numbers, 3 channels.
int driver_format(const TexelFormat& format);

/// The extents of the texels in an array whose last axis has the channels, where there are several. Throws:
/// ArgumentError where it has not.
Dimensions texel_shape(const Dimensions& shape, int channels);

}  // namespace bascule
