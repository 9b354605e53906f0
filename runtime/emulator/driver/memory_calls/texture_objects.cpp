// Texture and surface objects: the driver's checks, and the objects that kernels look up by handle.
#include <algorithm>
#include <cmath>
#include <optional>

#include <fmt/format.h>

#include "driver/captures.hpp"
#include "driver/device_limits.hpp"
#include "driver/memory_calls/allocations.hpp"
#include "driver/memory_calls/arrays.hpp"

namespace emulated::driver {
namespace {

using memory::Image;
using memory::Sampler;
using memory::TexelFormat;

/// An image object with the descriptions it was made from, for queries.
struct DescribedImage final : memory::ImageObject {
    CUDA_RESOURCE_DESC resource{};
    CUDA_TEXTURE_DESC texture{};
    std::optional<CUDA_RESOURCE_VIEW_DESC> view;
};

template <class... Values>
void refuse_texture(fmt::format_string<Values...> why, Values&&... values) {
    refuse(CUDA_ERROR_INVALID_VALUE, "cuTexObjectCreate: {}",
           fmt::format(why, std::forward<Values>(values)...));
}
void no_textures(const char* why) { refuse(CUDA_ERROR_NOT_SUPPORTED, "cuTexObjectCreate: {}", why); }

/// Sets the address of memory that a texture reads in place. Refuses misaligned and unknown addresses.
void locate(Image& image, CUdeviceptr address) {
    if (address % limits::texture_alignment != 0)
        return refuse_texture(
            "the address {:#x} is not a multiple of {} (CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT)", address,
            limits::texture_alignment);
    const memory::Heap& heap = Process::get().heap();
    const memory::Allocation* known = Process::get().find_usable(address);
    const bool gone = known == nullptr || (known->kept && Process::get().is_being_freed(known->base));
    if (gone || image.span() > known->bytes - (address - known->base))
        return refuse_texture("the texture has {} bytes at {:#x}, {}", image.span(), address,
                              heap.describe(address, image.span()));
    image.address = address;
    image.serial = known->serial;
}

void open_linear(const CUDA_RESOURCE_DESC& resource, Image& image) {
    const auto& linear = resource.res.linear;
    const auto format = texel_format(linear.format, linear.numChannels);
    require(format.has_value());
    const std::size_t texels = linear.sizeInBytes / format->bytes();
    if (texels == 0 || texels > limits::texture_linear_width)
        return refuse_texture("a texture over linear memory has 1 to {} texels, got {}",
                              limits::texture_linear_width, texels);
    image.kind = Image::Kind::linear;
    image.format = *format;
    image.width = static_cast<std::uint32_t>(texels);
    image.pitch = image.slice_pitch = texels * format->bytes();
    return locate(image, linear.devPtr);
}

void open_pitched(const CUDA_RESOURCE_DESC& resource, Image& image) {
    const auto& pitched = resource.res.pitch2D;
    const auto format = texel_format(pitched.format, pitched.numChannels);
    require(format.has_value());
    const bool fits = pitched.width > 0 && pitched.height > 0 &&
                      pitched.width <= limits::texture_pitched_width &&
                      pitched.height <= limits::texture_pitched_height &&
                      pitched.pitchInBytes <= limits::texture_pitched_pitch &&
                      pitched.pitchInBytes >= pitched.width * format->bytes();
    if (!fits)
        return refuse_texture(
            "{} rows of {} texels, {} bytes apart: a texture over pitched memory has at most {} x "
            "{} texels in rows of at most {} bytes, which hold them",
            pitched.height, pitched.width, pitched.pitchInBytes, limits::texture_pitched_width,
            limits::texture_pitched_height, limits::texture_pitched_pitch);
    if (pitched.pitchInBytes % limits::texture_pitch_alignment != 0)
        return refuse_texture(
            "rows are {} bytes apart, which is not a multiple of {} "
            "(CU_DEVICE_ATTRIBUTE_TEXTURE_PITCH_ALIGNMENT)",
            pitched.pitchInBytes, limits::texture_pitch_alignment);
    image.kind = Image::Kind::pitched;
    image.dimensions = 2;
    image.format = *format;
    image.width = static_cast<std::uint32_t>(pitched.width);
    image.height = static_cast<std::uint32_t>(pitched.height);
    image.pitch = pitched.pitchInBytes;
    image.slice_pitch = image.pitch * image.height;
    return locate(image, pitched.devPtr);
}

/// Fills the image of `object` from a resource description.
void open_resource(const CUDA_RESOURCE_DESC& resource, memory::ImageObject& object) {
    require(resource.flags == 0);
    Image& image = object.image;
    switch (resource.resType) {
        case CU_RESOURCE_TYPE_ARRAY: {
            const auto array = object_of<ArrayObject>(resource.res.array.hArray);
            image = array->image;
            return;
        }
        case CU_RESOURCE_TYPE_LINEAR:
            return open_linear(resource, image);
        case CU_RESOURCE_TYPE_PITCH2D:
            return open_pitched(resource, image);
        case CU_RESOURCE_TYPE_MIPMAPPED_ARRAY: {
            const auto array = object_of<MipmappedArray>(resource.res.mipmap.hMipmappedArray);
            image = array->images[0];
            object.smaller_levels.assign(array->images.begin() + 1, array->images.end());
            return;
        }
        default:
            throw Failed{CUDA_ERROR_INVALID_VALUE};
    }
}

// Resource views

// Each kind has three formats, for one, two and four channels. They precede the compressed formats.
std::optional<TexelFormat> format_of(CUresourceViewFormat format) {
    using Kind = TexelFormat::Kind;
    constexpr struct {
        Kind kind;
        std::uint8_t bytes;
    } kinds[] = {{Kind::unsigned_integer, 1}, {Kind::signed_integer, 1},   {Kind::unsigned_integer, 2},
                 {Kind::signed_integer, 2},   {Kind::unsigned_integer, 4}, {Kind::signed_integer, 4},
                 {Kind::floating, 2},         {Kind::floating, 4}};
    const auto number = static_cast<unsigned>(format);
    if (number < CU_RES_VIEW_FORMAT_UINT_1X8 || number > CU_RES_VIEW_FORMAT_FLOAT_4X32) return std::nullopt;
    const auto& [kind, bytes] = kinds[(number - 1) / 3];
    return TexelFormat{kind, bytes, static_cast<std::uint8_t>(1u << (number - 1) % 3)};
}

bool is_range(unsigned first, unsigned last, std::size_t count) { return first <= last && last < count; }

/// Restricts an object over a whole array to a view: its levels and layers, and the format of its texels.
void narrow_to_view(memory::ImageObject& object, const CUDA_RESOURCE_VIEW_DESC& view) {
    const auto format = format_of(view.format);
    if (!format && view.format != CU_RES_VIEW_FORMAT_NONE)
        return no_textures("the emulated device does not read block-compressed formats");
    const Image& image = object.image;
    const auto is = [](std::size_t asked, std::uint32_t extent) {
        return asked == extent || (asked == 0 && extent == 1);
    };
    if (!is(view.width, image.width) || !is(view.height, image.height) || !is(view.depth, image.slices))
        return refuse_texture("a view has the extents of its array, {} x {} x {}, and not {} x {} x {}",
                              image.width, image.height, image.slices, view.width, view.height, view.depth);
    if (!is_range(view.firstMipmapLevel, view.lastMipmapLevel, object.levels()))
        return refuse_texture("the array has {} levels, and the view begins with level {} and ends with {}",
                              object.levels(), view.firstMipmapLevel, view.lastMipmapLevel);
    const std::uint32_t layers = image.layered ? image.slices : 1;
    if (!is_range(view.firstLayer, view.lastLayer, layers))
        return refuse_texture("the array has {} layers, and the view begins with layer {} and ends with {}",
                              layers, view.firstLayer, view.lastLayer);
    if (format && format->bytes() != image.format.bytes())
        return refuse_texture("the array's texels have {} bytes, and the view's {}", image.format.bytes(),
                              format->bytes());
    const bool whole = view.lastLayer - view.firstLayer + 1 == image.slices;
    if (image.cube && image.layered && !whole)
        return no_textures("the emulated device has no views of some layers of cubes");

    std::vector<Image> levels;
    for (unsigned number = view.firstMipmapLevel; number <= view.lastMipmapLevel; ++number) {
        Image& level = levels.emplace_back(object.level(number));
        if (format) level.format = *format;
        if (!level.layered) continue;
        level.address += level.slice_pitch * view.firstLayer;
        level.slices = view.lastLayer - view.firstLayer + 1;
    }
    object.image = levels[0];
    object.smaller_levels.assign(levels.begin() + 1, levels.end());
}

constexpr unsigned known_flags = CU_TRSF_READ_AS_INTEGER | CU_TRSF_NORMALIZED_COORDINATES | CU_TRSF_SRGB |
                                 CU_TRSF_DISABLE_TRILINEAR_OPTIMIZATION | CU_TRSF_SEAMLESS_CUBEMAP;

/// Fills the sampler from a texture description.
void open_sampler(const CUDA_TEXTURE_DESC& asked, const Image& image, Sampler& sampler) {
    const auto is = [&](unsigned flag) { return (asked.flags & flag) != 0; };
    require((asked.flags & ~known_flags) == 0);
    const bool modes = std::ranges::all_of(asked.addressMode, [](CUaddress_mode mode) {
        return mode >= CU_TR_ADDRESS_MODE_WRAP && mode <= CU_TR_ADDRESS_MODE_BORDER;
    });
    const bool filter =
        asked.filterMode == CU_TR_FILTER_MODE_POINT || asked.filterMode == CU_TR_FILTER_MODE_LINEAR;
    require(modes && filter);
    const TexelFormat& format = image.format;
    const bool floating = format.kind == TexelFormat::Kind::floating;
    sampler.promotes = !floating && format.channel_bytes < 4 && !is(CU_TRSF_READ_AS_INTEGER);
    const bool bytes = format.kind == TexelFormat::Kind::unsigned_integer && format.channel_bytes == 1;
    if (is(CU_TRSF_SRGB) && !(bytes && sampler.promotes))
        return refuse_texture("sRGB is for unsigned 8-bit integers that are read as numbers");
    sampler.srgb = is(CU_TRSF_SRGB);
    // "addressMode, filterMode [and the flag for normalised coordinates are] ignored if resType is
    // CU_RESOURCE_TYPE_LINEAR". Reads outside return 0.
    if (image.kind == Image::Kind::linear) {
        sampler.address.fill(Sampler::Address::border);
        return;
    }
    sampler.linear = asked.filterMode == CU_TR_FILTER_MODE_LINEAR;
    if (sampler.linear && !floating && !sampler.promotes)
        return refuse_texture(
            "linear filtering gives floating-point numbers, and the texture is read as integers");
    if (is(CU_TRSF_SEAMLESS_CUBEMAP) && !image.cube)
        return refuse_texture("only cubes are filtered across the edges of their faces");
    sampler.normalized_coordinates = is(CU_TRSF_NORMALIZED_COORDINATES) || image.cube;
    for (std::size_t d = 0; d < 3; ++d) {
        const bool periodic = asked.addressMode[d] == CU_TR_ADDRESS_MODE_WRAP ||
                              asked.addressMode[d] == CU_TR_ADDRESS_MODE_MIRROR;
        // "Won't be supported and will be switched to cudaAddressModeClamp."
        sampler.address[d] = periodic && !sampler.normalized_coordinates
                                 ? Sampler::Address::clamp
                                 : static_cast<Sampler::Address>(asked.addressMode[d]);
    }
    // Address modes are ignored. Without a filter, a point and its nearest texel lie on one face, so clamping
    // never leaves it.
    if (is(CU_TRSF_SEAMLESS_CUBEMAP))
        sampler.address.fill(sampler.linear ? Sampler::Address::seam : Sampler::Address::clamp);
    std::ranges::copy(asked.borderColor, sampler.border.begin());
    const bool colored = std::ranges::any_of(sampler.border, [](float each) { return each != 0; });
    if (colored && !floating && !sampler.promotes)
        return no_textures("the emulated device has no border colour for integers but 0");
}

/// Sets how the sampler selects mipmap levels, from a texture description.
void open_levels(const CUDA_TEXTURE_DESC& asked, const Image& image, Sampler& sampler) {
    const CUfilter_mode mode = asked.mipmapFilterMode;
    require(mode == CU_TR_FILTER_MODE_POINT || mode == CU_TR_FILTER_MODE_LINEAR);
    const float numbers[] = {asked.mipmapLevelBias, asked.minMipmapLevelClamp, asked.maxMipmapLevelClamp};
    require(std::ranges::none_of(numbers, [](float each) { return std::isnan(each); }));
    if (!sampler.normalized_coordinates)
        return refuse_texture(
            "mipmapped arrays are read at normalised coordinates (CU_TRSF_NORMALIZED_COORDINATES)");
    sampler.mixes_levels = mode == CU_TR_FILTER_MODE_LINEAR;
    if (sampler.mixes_levels && image.format.kind != TexelFormat::Kind::floating && !sampler.promotes)
        return refuse_texture(
            "a mixture of two levels is a floating-point number, and the texture is read as integers");
    if (sampler.linear && asked.maxAnisotropy > 1)
        return no_textures("the emulated device has no anisotropic filtering");
    sampler.level_bias = asked.mipmapLevelBias;
    sampler.least_level = asked.minMipmapLevelClamp;
    sampler.most_level = asked.maxMipmapLevelClamp;
}

/// Returns a description that an object was made from.
template <class Out, class Member>
void describe(Out* out, std::uint64_t handle, bool is_surface, Member DescribedImage::*member) {
    const auto found = Process::get().images().find(handle);
    require(found != nullptr && found->is_surface == is_surface);
    const std::optional<Out> asked = static_cast<const DescribedImage&>(*found).*member;
    require(asked.has_value());
    return answer(out, *asked);
}

void destroy(std::uint64_t handle, bool is_surface) {
    check(ready_to_free());
    unsafe_now(is_surface ? "cuSurfObjectDestroy" : "cuTexObjectDestroy");
    require(Process::get().images().remove(handle, is_surface));
}

}  // namespace

EMULATED_CONTEXT_API(cuTexObjectCreate, 5000, CUtexObject* texture, const CUDA_RESOURCE_DESC* resource,
                     const CUDA_TEXTURE_DESC* asked, const CUDA_RESOURCE_VIEW_DESC* view) {
    require(texture != nullptr && resource != nullptr && asked != nullptr);
    unsafe_now("cuTexObjectCreate");
    const bool mipmapped = resource->resType == CU_RESOURCE_TYPE_MIPMAPPED_ARRAY;
    if (view != nullptr && resource->resType != CU_RESOURCE_TYPE_ARRAY && !mipmapped)
        return refuse_texture("resource views are of CUDA arrays alone");
    auto made = std::make_shared<DescribedImage>();
    made->resource = *resource;
    made->texture = *asked;
    open_resource(*resource, *made);
    if (view != nullptr) {
        made->view = *view;
        narrow_to_view(*made, *view);
    }
    open_sampler(*asked, made->image, made->sampler);
    if (mipmapped) open_levels(*asked, made->image, made->sampler);
    *texture = Process::get().images().add(std::move(made));
}

EMULATED_API(cuTexObjectDestroy, 5000, CUtexObject texture) { return destroy(texture, false); }

EMULATED_CONTEXT_API(cuTexObjectGetResourceDesc, 5000, CUDA_RESOURCE_DESC* out, CUtexObject texture) {
    return describe(out, texture, false, &DescribedImage::resource);
}

EMULATED_CONTEXT_API(cuTexObjectGetTextureDesc, 5000, CUDA_TEXTURE_DESC* out, CUtexObject texture) {
    return describe(out, texture, false, &DescribedImage::texture);
}

/// "If no resource view was set for [the texture object] CUDA_ERROR_INVALID_VALUE is returned."
EMULATED_CONTEXT_API(cuTexObjectGetResourceViewDesc, 5000, CUDA_RESOURCE_VIEW_DESC* out,
                     CUtexObject texture) {
    return describe(out, texture, false, &DescribedImage::view);
}

EMULATED_CONTEXT_API(cuSurfObjectCreate, 5000, CUsurfObject* surface, const CUDA_RESOURCE_DESC* resource) {
    require(surface != nullptr && resource != nullptr && resource->flags == 0);
    unsafe_now("cuSurfObjectCreate");
    if (resource->resType != CU_RESOURCE_TYPE_ARRAY)
        return refuse(CUDA_ERROR_INVALID_VALUE, "cuSurfObjectCreate: surfaces are of CUDA arrays alone");
    const auto array = object_of<ArrayObject>(resource->res.array.hArray);
    if ((array->description.Flags & CUDA_ARRAY3D_SURFACE_LDST) == 0)
        return refuse(CUDA_ERROR_INVALID_VALUE,
                      "cuSurfObjectCreate: the array was not made for surfaces (CUDA_ARRAY3D_SURFACE_LDST)");
    auto made = std::make_shared<DescribedImage>();
    made->is_surface = true;
    made->resource = *resource;
    made->image = array->image;
    *surface = Process::get().images().add(std::move(made));
}

EMULATED_API(cuSurfObjectDestroy, 5000, CUsurfObject surface) { return destroy(surface, true); }

EMULATED_CONTEXT_API(cuSurfObjectGetResourceDesc, 5000, CUDA_RESOURCE_DESC* out, CUsurfObject surface) {
    return describe(out, surface, true, &DescribedImage::resource);
}

}  // namespace emulated::driver
