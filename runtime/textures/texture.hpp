// Texture and surface objects, through which kernels read and write arrays by coordinates.
#pragma once

#include <array>
#include <cstdint>

#include <bascule/interface/arguments/argument_value.hpp>
#include <bascule/runtime/driver/device.hpp>
#include <bascule/runtime/textures/cuda_array.hpp>

namespace bascule {

/// The value of reads outside of a texture.
enum class AddressMode : std::uint8_t {
    wrap,    ///< the texture repeats; needs normalized coordinates
    clamp,   ///< the nearest element
    mirror,  ///< the texture repeats, mirrored every second time; needs normalized coordinates
    border,  ///< `TextureOptions::border`
};

enum class FilterMode : std::uint8_t {
    point,   ///< the element at the coordinates
    linear,  ///< interpolates the nearest 2, 4 or 8 elements, with weights of 8 fractional bits
};

enum class ReadMode : std::uint8_t {
    element,     ///< elements unchanged; halves as float
    normalized,  ///< integers of 8 and 16 bits as float: in [0, 1], or [-1, 1] if signed
};

struct TextureOptions {
    /// For x, y and z.
    std::array<AddressMode, 3> address{AddressMode::clamp, AddressMode::clamp, AddressMode::clamp};
    FilterMode filter = FilterMode::point;
    ReadMode read = ReadMode::element;
    bool normalized = false;  ///< coordinates range from 0 to 1 instead of to the extents
    bool srgb = false;        ///< converts unsigned 8-bit integers that are read as float from sRGB
    std::array<float, 4> border{};
    int channels = 1;  ///< 2 or 4: the last axis of an ArrayView. A CudaArray has its own option
};

/// Owns a texture or surface object. It borrows the array, which must outlive it. It must outlive the launches that use
/// it. Immutable and thread-safe.
class ImageObject {
  public:
    std::uint64_t handle() const noexcept { return argument_.handle; }
    Device device() const noexcept { return device_; }
    /// The argument for ArgumentPack::set and typed launches. A launch with it is ordered with the array's stream.
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
/// In linear memory: tex1Dfetch reads contiguous 1-D arrays. tex2D reads 2-D arrays whose rows are a multiple of
/// CU_DEVICE_ATTRIBUTE_TEXTURE_PITCH_ALIGNMENT apart and whose first element is aligned to
/// CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT. All other texture functions need a CUDA array.
class Texture : public ImageObject {
  public:
    /// `device` is the array's device. Throws: ArgumentError; CudaError.
    Texture(const ArrayView& array, const TextureOptions& options = {}, Device device = Device::current());
    explicit Texture(const CudaArray& array, const TextureOptions& options = {});
};

/// A surface over a CUDA array with CudaArrayOptions::surface.
class Surface : public ImageObject {
  public:
    /// Throws: ArgumentError; CudaError.
    explicit Surface(const CudaArray& array);
};

}  // namespace bascule
