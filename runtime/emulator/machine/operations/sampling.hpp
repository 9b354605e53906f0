// Texture sampling, by the rules of the CUDA programming guide ("Texture Fetching").
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "memory/images.hpp"
#include "races/access_log.hpp"

namespace emulated::machine {

/// A texel or a sample: integers as bits, extended to 32; other formats as numbers. Missing channels are 0.
struct Texel {
    std::array<double, 4> number{};
    std::array<std::uint32_t, 4> bits{};
};

/// A texture and the host address of its texels. Borrows everything.
struct Texels {
    const memory::ImageObject* texture = nullptr;
    const std::byte* bytes = nullptr;  ///< the host address of its image
    races::AccessLog* log = nullptr;   ///< receives the accesses; null if they are not logged

    Texel read(const memory::Image& level, std::uint32_t x, std::uint32_t y, std::uint32_t slice) const;
};

using Vector3 = std::array<double, 3>;

/// The position of a sample. For a cube, the face and the coordinates on it are computed first, and a two-dimensional image
/// is sampled.
struct SamplePlace {
    unsigned dimensions = 1;
    Vector3 at{};             ///< coordinates as the kernel passes them
    bool texels = false;      ///< `at` is a texel index: no filtering, and not normalised
    std::uint32_t slice = 0;  ///< for one and two dimensions
    double level = 0;         ///< for mipmapped textures; clamped to the sampler's range
};

/// True if a sample is a floating-point number.
bool gives_numbers(const memory::ImageObject& texture) noexcept;

Texel sample(const Texels& texels, const SamplePlace& place);

/// One component of the four texels that linear filtering would use, counter-clockwise from the lower left: (0, 1), (1, 1),
/// (1, 0), (0, 0).
Texel gather(const Texels& texels, const SamplePlace& place, unsigned component);

/// The mipmap level at which neighbouring samples are one texel apart: log2 of the longer of two steps, in texels of the
/// first level. The steps have the units of coordinates.
double level_of_steps(const memory::Image& image, unsigned dimensions, const Vector3& one,
                      const Vector3& other);

/// The face that a direction hits, and the position on it in [0, 1].
struct CubePlace {
    std::uint32_t face = 0;
    double s = 0, t = 0;
};
CubePlace on_cube(const Vector3& direction) noexcept;
/// The change of s and t on that face, by their derivatives, for a small step of the direction.
Vector3 step_on_cube(std::uint32_t face, const Vector3& direction, const Vector3& step) noexcept;

}  // namespace emulated::machine
