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

    Texel read(const memory::Image& level, std::uint32_t x, std::uint32_t y, std::uint32_t slice) const;
};

using Vector3 = std::array<double, 3>;

/// Where a sample is taken. A cube's face and coordinates are found first: it is sampled as two dimensions.
struct SamplePlace {
    unsigned dimensions = 1;
    Vector3 at{};             ///< as the kernel gives them
    bool texels = false;      ///< `at` counts texels: nothing is filtered, and coordinates are not normalised
    std::uint32_t slice = 0;  ///< of one and two dimensions
    double level = 0;         ///< of a texture that has several; it is clamped to what the sampler allows
};

/// Whether a sample is a number, and not an integer.
bool gives_numbers(const memory::ImageObject& texture) noexcept;

Texel sample(const Texels& texels, const SamplePlace& place);

/// One component of the four texels that linear filtering would use, counter-clockwise from the lower left one:
/// (0, 1), (1, 1), (1, 0), (0, 0).
Texel gather(const Texels& texels, const SamplePlace& place, unsigned component);

/// The level at which neighbouring samples lie a texel apart: log2 of the longer of two steps between them, which are
/// given as coordinates are and measured in texels of the first level.
double level_of_steps(const memory::Image& image, unsigned dimensions, const Vector3& one,
                      const Vector3& other);

/// The face that a direction meets, and where on it, in [0, 1].
struct CubePlace {
    std::uint32_t face = 0;
    double s = 0, t = 0;
};
CubePlace on_cube(const Vector3& direction) noexcept;
/// How far s and t move on that face, by their derivatives, when the direction makes a small step.
Vector3 step_on_cube(std::uint32_t face, const Vector3& direction, const Vector3& step) noexcept;

}  // namespace emulated::machine
