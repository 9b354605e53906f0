// Texture and surface objects: how kernels read and write arrays by coordinates.
#pragma once

#include <array>
#include <cstdint>

#include <bascule/interface/arguments/argument_value.hpp>
#include <bascule/runtime/driver/device.hpp>
#include <bascule/runtime/textures/cuda_array.hpp>

namespace bascule {

/// What is read outside of a texture.
enum class AddressMode : std::uint8_t {
    wrap,    ///< it is repeated; with normalised coordinates alone
    clamp,   ///< the nearest element
    mirror,  ///< every second repetition is mirrored; with normalised coordinates alone
    border,  ///< `TextureOptions::border`
};

enum class FilterMode : std::uint8_t {
    point,   ///< the element at the coordinates
    linear,  ///< between the nearest 2, 4 or 8 elements, by weights of 8 fractional bits
};

enum class ReadMode : std::uint8_t {
    element,     ///< elements as they are; halves as float
    normalized,  ///< integers of 8 and 16 bits as float: [0, 1], signed ones [-1, 1]
};

struct TextureOptions {
    std::array<AddressMode, 3> address{AddressMode::clamp, AddressMode::clamp,
                                       AddressMode::clamp};  ///< x, y, z
    FilterMode filter = FilterMode::point;
    ReadMode read = ReadMode::element;
    bool normalized = false;  ///< coordinates go from 0 to 1, not to the extents
    bool srgb = false;        ///< unsigned 8-bit integers that are read as float are sRGB
    std::array<float, 4> border{};
    int channels = 1;  ///< of memory: 2 or 4 are its last axis. CUDA arrays know theirs
};

/// An object of the driver over an array, which this object owns. It borrows the array, which must outlive it, as it must
/// outlive the launches that use it. Thread-safe: it does not change.
class ImageObject {
  public:
    std::uint64_t handle() const noexcept { return argument_.handle; }
    Device device() const noexcept { return device_; }
    /// For ArgumentPack::set and typed launches, which are ordered by the array's stream.
    const ImageArgument& argument() const noexcept { return argument_; }

  protected:
    ImageObject(Device device, bool is_surface, const ArrayView& array) noexcept
        : device_(device), argument_{0, is_surface, array} {}
    ~ImageObject();  // never throws
    ImageObject(ImageObject&& other) noexcept;
    ImageObject& operator=(ImageObject&& other) noexcept;

    Device device_;
    ImageArgument argument_;
};

/// A texture.
///
/// Of memory: an array of one dimension is read by tex1Dfetch, in one piece; one of two by tex2D, its rows
/// CU_DEVICE_ATTRIBUTE_TEXTURE_PITCH_ALIGNMENT apart, its first element at a multiple of
/// CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT. Of a CUDA array: everything else too.
class Texture : public ImageObject {
  public:
    /// `device` is where the array lies. Throws: ArgumentError; CudaError.
    Texture(const ArrayView& array, const TextureOptions& options = {}, Device device = Device::current());
    explicit Texture(const CudaArray& array, const TextureOptions& options = {});
};

/// A surface over a CUDA array that was made with `surface`.
class Surface : public ImageObject {
  public:
    /// Throws: ArgumentError; CudaError.
    explicit Surface(const CudaArray& array);
};

}  // namespace bascule
