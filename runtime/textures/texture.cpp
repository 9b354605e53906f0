#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include <bascule/interface/errors/rejection.hpp>
#include <bascule/interface/errors/wording.hpp>
#include <bascule/runtime/driver/driver.hpp>
#include <bascule/runtime/driver/program_lock.hpp>
#include <bascule/runtime/textures/texture.hpp>

namespace bascule {
namespace {

/// Advice for an array whose memory layout is not suitable.
std::string copy_advice() {
    return advice("bascule.cuda_array(x) copies it, and takes any shape",
                  "A bascule::CudaArray takes a copy");
}

std::uint64_t attribute(Device device, CUdevice_attribute which) {
    return static_cast<std::uint64_t>(Driver::get().attribute_of(device.ordinal(), which));
}

void check_address(const ArrayView& array, Device device) {
    const std::uint64_t alignment = attribute(device, CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT);
    if (array.pointer % alignment == 0) return;
    reject(
        ErrorKind::value,
        "the array begins at {:#x}, and a texture over memory begins at a multiple of {} bytes (is it a part of "
        "another array?). {}.",
        array.pointer, alignment, copy_advice());
}

CUDA_RESOURCE_DESC linear_resource(const ArrayView& array, const TexelFormat& format, std::uint64_t texels,
                                   Device device) {
    if (!array.c_contiguous)
        reject(ErrorKind::value, "a texture over one dimension needs its elements in one piece, got {}. {}.",
               describe(array), copy_advice());
    const std::uint64_t most = attribute(device, CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE1D_LINEAR_WIDTH);
    if (texels > most)
        reject(ErrorKind::value, "a texture over memory of one dimension has at most {} elements, got {}.",
               most, texels);
    CUDA_RESOURCE_DESC made{};
    made.resType = CU_RESOURCE_TYPE_LINEAR;
    made.res.linear.devPtr = array.pointer;
    made.res.linear.format = static_cast<CUarray_format>(driver_format(format));
    made.res.linear.numChannels = static_cast<unsigned>(format.channels);
    made.res.linear.sizeInBytes = texels * format.bytes();
    return made;
}

CUDA_RESOURCE_DESC pitched_resource(const ArrayView& array, const TexelFormat& format,
                                    const Dimensions& texels, Device device) {
    const int last = array.ndim() - 1;
    const bool several = format.channels > 1;
    const bool packed =
        array.strides[last] == static_cast<std::int64_t>(format.dtype.itemsize) || array.shape[last] == 1;
    const bool together =
        !several || array.strides[last - 1] == static_cast<std::int64_t>(format.bytes()) || texels[1] == 1;
    const std::int64_t row = texels[1] * static_cast<std::int64_t>(format.bytes());
    std::int64_t pitch = array.strides[0];
    const std::uint64_t alignment = attribute(device, CU_DEVICE_ATTRIBUTE_TEXTURE_PITCH_ALIGNMENT);
    const auto step = static_cast<std::int64_t>(alignment);
    if (texels[0] == 1) pitch = (row + step - 1) / step * step;  // with one row the pitch does not matter
    if (!packed || !together || pitch < row)
        reject(ErrorKind::value,
               "a texture over two dimensions needs rows whose elements follow each other, got {}. {}.",
               describe(array), copy_advice());
    if (pitch % step != 0) {
        reject(
            ErrorKind::value,
            "the rows of the array are {} bytes apart, and those of a texture over memory a multiple of {}. {}{}.",
            pitch, alignment, copy_advice(),
            advice("; a slice of a wider array, x = wide[:, :width], can be read where it lies",
                   "; rows with room at their ends can be read where they lie"));
    }
    const std::uint64_t width = attribute(device, CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LINEAR_WIDTH);
    const std::uint64_t height = attribute(device, CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LINEAR_HEIGHT);
    const std::uint64_t bytes = attribute(device, CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LINEAR_PITCH);
    if (static_cast<std::uint64_t>(texels[0]) > height || static_cast<std::uint64_t>(texels[1]) > width ||
        static_cast<std::uint64_t>(pitch) > bytes) {
        reject(
            ErrorKind::value,
            "a texture over memory has at most {} rows of {} elements, {} bytes apart, got an array of shape {}.",
            height, width, bytes, to_string(array.shape));
    }
    CUDA_RESOURCE_DESC made{};
    made.resType = CU_RESOURCE_TYPE_PITCH2D;
    made.res.pitch2D.devPtr = array.pointer;
    made.res.pitch2D.format = static_cast<CUarray_format>(driver_format(format));
    made.res.pitch2D.numChannels = static_cast<unsigned>(format.channels);
    made.res.pitch2D.width = static_cast<std::size_t>(texels[1]);
    made.res.pitch2D.height = static_cast<std::size_t>(texels[0]);
    made.res.pitch2D.pitchInBytes = static_cast<std::size_t>(pitch);
    return made;
}

CUDA_RESOURCE_DESC memory_resource(const ArrayView& array, const TextureOptions& options, Device device) {
    const TexelFormat format{array.dtype, options.channels};
    driver_format(format);
    if (array.mask != nullptr)
        reject(ErrorKind::type, "a texture cannot have a mask, and the array has one.");
    if (array.empty())
        reject(ErrorKind::value, "a texture has at least one element, got {}.", describe(array));
    const Dimensions texels = texel_shape(array.shape, options.channels);
    if (texels.size() != 1 && texels.size() != 2) {
        reject(
            ErrorKind::value, "a texture over memory has one or two dimensions, got {}. {}{}.",
            describe(array), copy_advice(),
            texels.size() == 3 && (texels[2] == 2 || texels[2] == 4)
                ? advice(fmt::format("; an image with {} channels is channels={}", texels[2], texels[2]),
                         fmt::format("; an image with {} channels is .channels = {}", texels[2], texels[2]))
                : "");
    }
    check_address(array, device);
    if (texels.size() == 1)
        return linear_resource(array, format, static_cast<std::uint64_t>(texels[0]), device);
    return pitched_resource(array, format, texels, device);
}

/// Fills in the descriptor. Refuses options that the driver would silently change.
CUDA_TEXTURE_DESC texture_description(const TextureOptions& options, DType dtype, int axes,
                                      bool linear_memory) {
    const bool floating = dtype.kind == DType::Kind::floating;
    const bool promotes = options.read == ReadMode::normalized;
    if (promotes && (floating || dtype.itemsize > 2)) {
        reject_field(ErrorKind::value, "read",
                     "only integers of 8 and 16 bits are read as normalised numbers, and the array's are {}.",
                     to_string(dtype));
    }
    if (options.filter == FilterMode::linear && !floating && !promotes) {
        reject_field(
            ErrorKind::value, "filter",
            "linear filtering gives floating-point numbers, and {} elements are read as integers: {}.",
            to_string(dtype),
            dtype.itemsize > 2 ? std::string("convert them to float32")
                               : advice("pass read=\"normalized\"", "read them as ReadMode::normalized"));
    }
    if (options.srgb && !(promotes && dtype == DType{DType::Kind::unsigned_integer, 1}))
        reject_field(ErrorKind::value, "srgb",
                     "sRGB is for uint8 elements that are read as normalised numbers.");
    if (linear_memory && (options.filter == FilterMode::linear || options.normalized)) {
        reject_field(
            ErrorKind::value, options.normalized ? "normalized" : "filter",
            "a texture over memory of one dimension is read at integers alone (tex1Dfetch), without a filter. {}.",
            advice("bascule.cuda_array(x) copies it into an array that tex1D samples",
                   "A bascule::CudaArray can be sampled by tex1D"));
    }
    for (int axis = 0; axis < axes; ++axis) {
        const AddressMode mode = options.address[static_cast<std::size_t>(axis)];
        const bool periodic = mode == AddressMode::wrap || mode == AddressMode::mirror;
        if (periodic && !options.normalized) {
            reject_field(ErrorKind::value, "address",
                         "the address modes wrap and mirror need normalised coordinates: {}.",
                         advice("pass normalized=True, and coordinates from 0 to 1",
                                "set `normalized`, and pass coordinates from 0 to 1"));
        }
    }
    CUDA_TEXTURE_DESC made{};
    for (std::size_t axis = 0; axis < 3; ++axis)
        made.addressMode[axis] = static_cast<CUaddress_mode>(options.address[axis]);
    made.filterMode =
        options.filter == FilterMode::linear ? CU_TR_FILTER_MODE_LINEAR : CU_TR_FILTER_MODE_POINT;
    made.flags = (promotes ? 0u : unsigned{CU_TRSF_READ_AS_INTEGER}) |
                 (options.normalized ? unsigned{CU_TRSF_NORMALIZED_COORDINATES} : 0u) |
                 (options.srgb ? unsigned{CU_TRSF_SRGB} : 0u);
    std::ranges::copy(options.border, made.borderColor);
    return made;
}

std::uint64_t make_texture(Device device, const CUDA_RESOURCE_DESC& resource, const CUDA_TEXTURE_DESC& how) {
    const Driver& driver = Driver::get();
    const ContextGuard context(device.context());
    CUtexObject made = 0;
    driver.check(driver.api().cuTexObjectCreate(&made, &resource, &how, nullptr), "making a texture");
    return made;
}

CUDA_RESOURCE_DESC array_resource(const CudaArray& array) {
    CUDA_RESOURCE_DESC made{};
    made.resType = CU_RESOURCE_TYPE_ARRAY;
    made.res.array.hArray = array.handle();
    return made;
}

}  // namespace

ImageObject::~ImageObject() {
    if (argument_.handle == 0) return;
    end_in_context(device_, [&](const Driver& driver) {
        if (argument_.is_surface)
            driver.report(driver.api().cuSurfObjectDestroy(argument_.handle), "destroying a surface");
        else
            driver.report(driver.api().cuTexObjectDestroy(argument_.handle), "destroying a texture");
    });
}

ImageObject::ImageObject(ImageObject&& other) noexcept
    : device_(other.device_), argument_(std::exchange(other.argument_, {})) {}

ImageObject& ImageObject::operator=(ImageObject&& other) noexcept {
    std::swap(device_, other.device_);
    std::swap(argument_, other.argument_);
    return *this;
}

Texture::Texture(const ArrayView& array, const TextureOptions& options, Device device)
    : ImageObject(device, false, array) {
    const CUDA_RESOURCE_DESC resource = memory_resource(array, options, device);
    const bool linear = resource.resType == CU_RESOURCE_TYPE_LINEAR;
    argument_.handle =
        make_texture(device, resource, texture_description(options, array.dtype, linear ? 1 : 2, linear));
}

Texture::Texture(const CudaArray& array, const TextureOptions& options)
    : ImageObject(array.stream().device(), false, array.view()) {
    if (options.channels != 1 && options.channels != array.format().channels) {
        reject_field(ErrorKind::value, "channels", "the CUDA array has {} channels, got {}.",
                     array.format().channels, options.channels);
    }
    TextureOptions how = options;
    if (array.options().cube) how.normalized = true;  // cube coordinates are directions
    const int axes = texel_shape(array.shape(), array.format().channels).size() -
                     (array.options().layered || array.options().cube ? 1 : 0);
    argument_.handle = make_texture(device_, array_resource(array),
                                    texture_description(how, array.format().dtype, axes, false));
}

Surface::Surface(const CudaArray& array) : ImageObject(array.stream().device(), true, array.view()) {
    if (!array.options().surface) {
        reject(ErrorKind::value, "the CUDA array was not made for surfaces: {}.",
               advice("pass surface=True to what makes it", "set CudaArrayOptions::surface"));
    }
    const Driver& driver = Driver::get();
    const ContextGuard context(device_.context());
    const CUDA_RESOURCE_DESC resource = array_resource(array);
    CUsurfObject made = 0;
    driver.check(driver.api().cuSurfObjectCreate(&made, &resource), "making a surface");
    argument_.handle = made;
}

}  // namespace bascule
