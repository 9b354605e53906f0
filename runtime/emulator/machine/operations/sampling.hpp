// How a texture is sampled, by the rules of the CUDA programming guide ("Texture Fetching").
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "memory/images.hpp"
#include "races/access_log.hpp"

namespace emulated::machine {

/// A texel, or what is sampled: integers as their bits, extended to 32; the rest as numbers. Channels that the format
/// lacks are 0.
struct Texel {
    std::array<double, 4> number{};
    std::array<std::uint32_t, 4> bits{};
};

/// A texture's texels in this process. Borrows everything.
struct Texels {
    const memory::ImageObject* texture = nullptr;
    const std::byte* bytes = nullptr;  ///< where its image's address lies
    races::AccessLog* log = nullptr;   ///< what is read is added; null: not asked for

    Texel read(std::uint32_t x, std::uint32_t y, std::uint32_t slice) const;
};

/// Where a sample is taken. A cube's face and coordinates are found first: it is sampled as two dimensions.
struct SamplePlace {
    unsigned dimensions = 1;
    std::array<double, 3> at{};  ///< as the kernel gives them
    bool texels = false;      ///< `at` counts texels: nothing is filtered, and coordinates are not normalised
    std::uint32_t slice = 0;  ///< of one and two dimensions
};

/// Whether a sample is a number, and not an integer.
bool gives_numbers(const memory::ImageObject& texture) noexcept;

Texel sample(const Texels& texels, const SamplePlace& place);

/// One component of the four texels that linear filtering would use, counter-clockwise from the lower left one:
/// (0, 1), (1, 1), (1, 0), (0, 0).
Texel gather(const Texels& texels, const SamplePlace& place, unsigned component);

/// The face that a direction meets, and where on it, in [0, 1].
struct CubePlace {
    std::uint32_t face = 0;
    double s = 0, t = 0;
};
CubePlace on_cube(double x, double y, double z) noexcept;

}  // namespace emulated::machine
