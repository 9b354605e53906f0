// Texture and surface objects as kernels use them: the location of their texels, and how they are sampled.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <unordered_map>
#include <utility>
#include <vector>

#include "memory/memory.hpp"

namespace emulated::memory {

struct TexelFormat {
    enum class Kind : std::uint8_t { unsigned_integer, signed_integer, floating };
    Kind kind = Kind::unsigned_integer;
    std::uint8_t channel_bytes = 1;  ///< 1, 2 or 4; for floating point 2 or 4
    std::uint8_t channels = 1;       ///< 1, 2 or 4
    unsigned bytes() const noexcept { return unsigned{channel_bytes} * channels; }
    bool operator==(const TexelFormat&) const = default;
};

/// Texels in rows and slices; consecutive rows are `pitch` apart, slices `slice_pitch`. The slices of a one- or
/// two-dimensional image are its layers; six consecutive slices are the faces of a cube.
struct Image {
    enum class Kind : std::uint8_t { linear, pitched, array };
    Kind kind = Kind::array;
    std::uint8_t dimensions = 1;  ///< layers not counted
    bool layered = false;
    bool cube = false;
    bool gathers = false;  ///< created for tld4
    TexelFormat format;
    DeviceAddress address = 0;
    std::uint64_t serial = 0;  ///< of its allocation
    std::uint32_t width = 1, height = 1, slices = 1;
    std::uint64_t pitch = 0, slice_pitch = 0;  ///< bytes

    /// Number of bytes from the start of the first texel to the end of the last, including the gaps between rows.
    std::uint64_t span() const noexcept {
        return slice_pitch * (slices - 1) + pitch * (height - 1) + std::uint64_t{width} * format.bytes();
    }
};

struct Sampler {
    /// `seam` is for cubes that are filtered across edges.
    enum class Address : std::uint8_t { wrap, clamp, mirror, border, seam };
    std::array<Address, 3> address{Address::clamp, Address::clamp, Address::clamp};
    bool linear = false;
    bool normalized_coordinates = false;
    bool promotes = false;  ///< integers of 8 and 16 bits are read as numbers in [0, 1] or [-1, 1]
    bool srgb = false;
    std::array<float, 4> border{};
    // For mipmapped textures.
    bool mixes_levels = false;  ///< samples of two levels are mixed; otherwise the nearest level is read
    float level_bias = 0;       ///< added to the level of an instruction or of its derivatives
    float least_level = 0, most_level = 0;
};

/// The object of a texture or surface handle.
struct ImageObject {
    ImageObject() = default;
    ImageObject(ImageObject&&) = delete;
    virtual ~ImageObject() = default;

    /// The mipmap level by number; 0 is the largest.
    const Image& level(std::size_t number) const { return number == 0 ? image : smaller_levels[number - 1]; }
    std::size_t levels() const noexcept { return 1 + smaller_levels.size(); }
    /// Number of bytes from the first byte of the first level to the last byte of the last level.
    std::uint64_t span() const {
        const Image& last = level(smaller_levels.size());
        return last.address - image.address + last.span();
    }

    bool is_surface = false;
    Image image;
    std::vector<Image> smaller_levels;  ///< for a mipmapped texture: after `image`, in the same allocation
    Sampler sampler;                    ///< for a texture
};

/// The table of live objects. A handle is never reused. Thread-safe.
class ImageObjects {
  public:
    std::uint64_t add(std::shared_ptr<const ImageObject> object) {
        const std::unique_lock lock(mutex_);
        const std::uint64_t handle = ++last_;
        objects_.emplace(handle, std::move(object));
        return handle;
    }
    /// Returns null if the handle is invalid.
    std::shared_ptr<const ImageObject> find(std::uint64_t handle) const {
        const std::shared_lock lock(mutex_);
        const auto found = objects_.find(handle);
        return found == objects_.end() ? nullptr : found->second;
    }
    /// Returns false if the handle is invalid or of the other kind.
    bool remove(std::uint64_t handle, bool is_surface) {
        const std::unique_lock lock(mutex_);
        const auto found = objects_.find(handle);
        if (found == objects_.end() || found->second->is_surface != is_surface) return false;
        objects_.erase(found);
        return true;
    }

  private:
    mutable std::shared_mutex mutex_;
    // Far from small integers and from addresses, so that neither is a valid handle by accident.
    std::uint64_t last_ = 0x7e00'0000'0000'0000;
    std::unordered_map<std::uint64_t, std::shared_ptr<const ImageObject>> objects_;
};

}  // namespace emulated::memory
