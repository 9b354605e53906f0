// Texture and surface objects as kernels see them: where their texels lie, and how they are read.
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
    std::uint8_t channel_bytes = 1;  ///< 1, 2 or 4; of floating point 2 or 4
    std::uint8_t channels = 1;       ///< 1, 2 or 4
    unsigned bytes() const noexcept { return unsigned{channel_bytes} * channels; }
    bool operator==(const TexelFormat&) const = default;
};

/// Texels in rows, rows in slices: a row begins `pitch` after the one before, a slice `slice_pitch`. The slices of an
/// image of one or two dimensions are its layers, six in a row the faces of a cube.
struct Image {
    enum class Kind : std::uint8_t { linear, pitched, array };
    Kind kind = Kind::array;
    std::uint8_t dimensions = 1;  ///< without layers
    bool layered = false;
    bool cube = false;
    bool gathers = false;  ///< made for tld4
    TexelFormat format;
    DeviceAddress address = 0;
    std::uint64_t serial = 0;  ///< of the allocation that holds it
    std::uint32_t width = 1, height = 1, slices = 1;
    std::uint64_t pitch = 0, slice_pitch = 0;  ///< bytes

    /// From the first byte to the last.
    std::uint64_t span() const noexcept {
        return slice_pitch * (slices - 1) + pitch * (height - 1) + std::uint64_t{width} * format.bytes();
    }
};

struct Sampler {
    /// seam: of cubes that are filtered across their edges
    enum class Address : std::uint8_t { wrap, clamp, mirror, border, seam };
    std::array<Address, 3> address{Address::clamp, Address::clamp, Address::clamp};
    bool linear = false;
    bool normalized_coordinates = false;
    bool promotes = false;  ///< integers of 8 and 16 bits are read as numbers in [0, 1] or [-1, 1]
    bool srgb = false;
    std::array<float, 4> border{};
    // Of a texture of several levels.
    bool mixes_levels = false;  ///< between two levels their samples are mixed; otherwise the nearest is read
    float level_bias = 0;       ///< is added to a level that an instruction gives, or its derivatives
    float least_level = 0, most_level = 0;
};

/// What a handle stands for.
struct ImageObject {
    ImageObject() = default;
    ImageObject(const ImageObject&) = delete;
    ImageObject& operator=(const ImageObject&) = delete;
    virtual ~ImageObject() = default;

    /// By number; the first is the largest.
    const Image& level(std::size_t number) const { return number == 0 ? image : smaller_levels[number - 1]; }
    std::size_t levels() const noexcept { return 1 + smaller_levels.size(); }
    /// From the first byte of the first level to the last of the last.
    std::uint64_t span() const {
        const Image& last = level(smaller_levels.size());
        return last.address - image.address + last.span();
    }

    bool is_surface = false;
    Image image;
    std::vector<Image> smaller_levels;  ///< of a mipmapped texture: behind `image`, in the same allocation
    Sampler sampler;                    ///< of a texture
};

/// The objects that are alive. A handle is never used again. Thread-safe.
class ImageObjects {
  public:
    std::uint64_t add(std::shared_ptr<const ImageObject> object) {
        const std::unique_lock lock(mutex_);
        const std::uint64_t handle = ++last_;
        objects_.emplace(handle, std::move(object));
        return handle;
    }
    /// Null when there is none.
    std::shared_ptr<const ImageObject> find(std::uint64_t handle) const {
        const std::shared_lock lock(mutex_);
        const auto found = objects_.find(handle);
        return found == objects_.end() ? nullptr : found->second;
    }
    /// False when there is none of this kind.
    bool remove(std::uint64_t handle, bool is_surface) {
        const std::unique_lock lock(mutex_);
        const auto found = objects_.find(handle);
        if (found == objects_.end() || found->second->is_surface != is_surface) return false;
        objects_.erase(found);
        return true;
    }

  private:
    mutable std::shared_mutex mutex_;
    // Far from small integers and from addresses, so that neither is an object by accident.
    std::uint64_t last_ = 0x7e00'0000'0000'0000;
    std::unordered_map<std::uint64_t, std::shared_ptr<const ImageObject>> objects_;
};

}  // namespace emulated::memory
