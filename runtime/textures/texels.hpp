// The element formats of textures and their driver constants.
#pragma once

#include <bascule/interface/arrays/array_interface.hpp>

namespace bascule {

/// One texture element: `channels` adjacent numbers of type `dtype`.
struct TexelFormat {
    DType dtype;
    int channels = 1;  ///< 1, 2 or 4

    std::size_t bytes() const noexcept {
        return std::size_t{dtype.itemsize} * static_cast<std::size_t>(channels);
    }
};

/// Returns a CUarray_format as an int, because the driver's headers are not installed. Throws: ArgumentError for
/// formats that textures do not support: 64 bits, complex numbers, 3 channels.
int driver_format(const TexelFormat& format);

/// Returns the extents in texels of an array. With several channels, the last axis must be the channels. Throws:
/// ArgumentError if it is not.
Dimensions texel_shape(const Dimensions& shape, int channels);

}  // namespace bascule
