// Creates and destroys CUDA arrays. Their rows are contiguous here.
#include "driver/memory_calls/arrays.hpp"

#include <algorithm>
#include <bit>

#include <fmt/format.h>

#include "driver/captures.hpp"
#include "driver/device_limits.hpp"
#include "driver/memory_calls/allocations.hpp"

namespace emulated::driver {
namespace {

using memory::Allocation;
using memory::TexelFormat;

constexpr struct ChannelFormat {
    CUarray_format format;
    TexelFormat::Kind kind;
    std::uint8_t bytes;
} formats[] = {
    {CU_AD_FORMAT_UNSIGNED_INT8, TexelFormat::Kind::unsigned_integer, 1},
    {CU_AD_FORMAT_UNSIGNED_INT16, TexelFormat::Kind::unsigned_integer, 2},
    {CU_AD_FORMAT_UNSIGNED_INT32, TexelFormat::Kind::unsigned_integer, 4},
    {CU_AD_FORMAT_SIGNED_INT8, TexelFormat::Kind::signed_integer, 1},
    {CU_AD_FORMAT_SIGNED_INT16, TexelFormat::Kind::signed_integer, 2},
    {CU_AD_FORMAT_SIGNED_INT32, TexelFormat::Kind::signed_integer, 4},
    {CU_AD_FORMAT_HALF, TexelFormat::Kind::floating, 2},
    {CU_AD_FORMAT_FLOAT, TexelFormat::Kind::floating, 4},
};

constexpr unsigned layered = CUDA_ARRAY3D_LAYERED, cubemap = CUDA_ARRAY3D_CUBEMAP,
                   stored = CUDA_ARRAY3D_SURFACE_LDST, gathered = CUDA_ARRAY3D_TEXTURE_GATHER;

/// Maximum extents of a kind of array; 0 if the extent must be 0.
struct Most {
    std::size_t width, height, depth;
};

Most most_of(const CUDA_ARRAY3D_DESCRIPTOR& asked, bool mipmapped) {
    const bool flat = asked.Height == 0;
    if ((asked.Flags & cubemap) != 0) {
        const int faces = (asked.Flags & layered) != 0 ? limits::array_cube_layers / 6 * 6 : 6;
        return {limits::array_2d_small, limits::array_2d_small, static_cast<std::size_t>(faces)};
    }
    if ((asked.Flags & layered) != 0) {
        if (flat) return {limits::array_1d_layered_width, 0, limits::array_layers};
        return {limits::array_2d_small, limits::array_2d_small, limits::array_layers};
    }
    if (asked.Depth != 0) return {limits::array_3d, limits::array_3d, limits::array_3d};
    if (mipmapped && flat) return {limits::array_mipmapped, 0, 0};
    if (mipmapped) return {limits::array_mipmapped, limits::array_mipmapped, 0};
    if (flat) {
        const bool surface = (asked.Flags & stored) != 0;
        return {static_cast<std::size_t>(surface ? limits::surface_1d_width : limits::array_1d_width), 0, 0};
    }
    if ((asked.Flags & gathered) != 0) return {limits::array_2d_small, limits::array_2d_small, 0};
    return {limits::array_2d_width, limits::array_2d_height, 0};
}

/// What is wrong with a description; empty if it is valid.
std::string objection(const CUDA_ARRAY3D_DESCRIPTOR& asked, bool mipmapped) {
    const auto is = [&](unsigned flag) { return (asked.Flags & flag) != 0; };
    if (asked.Width == 0) return "its width is 0";
    if (is(layered | cubemap) && asked.Depth == 0) return "it has layers or faces, and its depth is 0";
    if (!is(layered) && asked.Height == 0 && asked.Depth != 0) return "it has a depth and no height";
    if (is(cubemap) && asked.Width != asked.Height) return "the faces of a cube are squares";
    if (is(cubemap) && asked.Depth % 6 != 0) return "a cube has 6 faces";
    if (is(gathered) && (is(layered | cubemap) || asked.Height == 0 || asked.Depth != 0))
        return "only arrays of two dimensions are made for gathers";
    const Most most = most_of(asked, mipmapped);
    if (asked.Width > most.width || asked.Height > most.height || asked.Depth > most.depth)
        return fmt::format("arrays of its kind have at most {} x {} x {} texels", most.width, most.height,
                           most.depth);
    return {};
}

memory::Image image_of(const CUDA_ARRAY3D_DESCRIPTOR& asked, const TexelFormat& format) {
    memory::Image made;
    made.kind = memory::Image::Kind::array;
    made.cube = (asked.Flags & cubemap) != 0;
    made.layered = (asked.Flags & layered) != 0;
    made.gathers = (asked.Flags & gathered) != 0;
    const bool slices_are_texels = !made.cube && !made.layered && asked.Depth != 0;
    made.dimensions = slices_are_texels ? 3 : asked.Height != 0 ? 2 : 1;
    made.format = format;
    made.width = static_cast<std::uint32_t>(asked.Width);
    made.height = static_cast<std::uint32_t>(std::max<std::size_t>(asked.Height, 1));
    made.slices = static_cast<std::uint32_t>(std::max<std::size_t>(asked.Depth, 1));
    made.pitch = std::uint64_t{made.width} * format.bytes();
    made.slice_pitch = made.pitch * made.height;
    return made;
}

/// Computes the image of a new array, without an address. Refuses invalid descriptions with a report.
void plan_image(memory::Image& image, const CUDA_ARRAY3D_DESCRIPTOR& asked, bool mipmapped,
                const char* name) {
    const auto refuse_array = [&](CUresult code, const std::string& why) {
        return refuse(code, "{}: an array of {} x {} x {} cannot be made: {}", name, asked.Width,
                      asked.Height, asked.Depth, why);
    };
    if ((asked.Flags & ~(layered | cubemap | stored | gathered)) != 0)
        return refuse_array(
            CUDA_ERROR_NOT_SUPPORTED,
            fmt::format("the emulated device does not know all of its flags {:#x}", asked.Flags));
    const auto format = texel_format(asked.Format, asked.NumChannels);
    if (!format)
        return refuse_array(CUDA_ERROR_INVALID_VALUE,
                            "its texels have 1, 2 or 4 channels of 8, 16 or 32 bits");
    if (const std::string why = objection(asked, mipmapped); !why.empty())
        return refuse_array(CUDA_ERROR_INVALID_VALUE, why);
    image = image_of(asked, *format);
}

CUDA_ARRAY3D_DESCRIPTOR level_of(CUDA_ARRAY3D_DESCRIPTOR description, unsigned level) {
    const auto halve = [&](std::size_t& extent) {
        if (extent != 0) extent = std::max<std::size_t>(extent >> level, 1);
    };
    halve(description.Width);
    halve(description.Height);
    if ((description.Flags & (CUDA_ARRAY3D_LAYERED | CUDA_ARRAY3D_CUBEMAP)) == 0) halve(description.Depth);
    return description;
}

/// Creates mipmap levels in one allocation. Each is a CUDA array with half the extents of the previous one. An array that
/// is not mipmapped has one level.
void create_levels(MipmappedArray& made, const CUDA_ARRAY3D_DESCRIPTOR& asked, unsigned levels,
                   bool mipmapped, const char* name) {
    std::uint64_t bytes = 0;
    for (unsigned level = 0; level < levels; ++level) {
        memory::Image& image = made.images.emplace_back();
        plan_image(image, level_of(asked, level), mipmapped, name);
        constexpr std::uint64_t step = limits::texture_alignment;
        image.address = (bytes + step - 1) / step * step;
        bytes = image.address + image.span();
    }
    CUdeviceptr address = 0;
    allocate_memory(&address, bytes, Allocation::Kind::device);
    Process::get().heap().set_name(address, mipmapped ? "of a mipmapped array" : "of a CUDA array");
    const std::uint64_t serial = Process::get().heap().find(address)->serial;
    for (unsigned level = 0; level < levels; ++level) {
        memory::Image& image = made.images[level];
        image.address += address;
        image.serial = serial;
        auto part = std::make_shared<ArrayObject>();
        part->description = level_of(asked, level);
        part->image = image;
        part->is_level = mipmapped;
        made.handles.push_back(new_handle<CUarray>(std::move(part)));
    }
}

void create(CUarray* handle, const CUDA_ARRAY3D_DESCRIPTOR& asked, const char* name) {
    require(handle != nullptr);
    unsafe_now(name);
    MipmappedArray made;
    create_levels(made, asked, 1, false, name);
    *handle = made.handles[0];
}

// "Clamped to the range [1, 1 + floor(log2(max(width, height, depth)))]". Layers and faces do not count as depth.
unsigned levels_of(const CUDA_ARRAY3D_DESCRIPTOR& asked, unsigned wanted) {
    const bool deep = (asked.Flags & (CUDA_ARRAY3D_LAYERED | CUDA_ARRAY3D_CUBEMAP)) == 0;
    const std::size_t longest = std::max({asked.Width, asked.Height, deep ? asked.Depth : 0});
    return std::clamp(wanted, 1u, static_cast<unsigned>(std::bit_width(longest)));
}

}  // namespace

std::optional<TexelFormat> texel_format(CUarray_format format, unsigned channels) {
    if (channels != 1 && channels != 2 && channels != 4) return std::nullopt;
    const ChannelFormat* known = find_row(formats, &ChannelFormat::format, format);
    if (known == nullptr) return std::nullopt;
    return TexelFormat{known->kind, known->bytes, static_cast<std::uint8_t>(channels)};
}

EMULATED_CONTEXT_API(cuArrayCreate, 3020, CUarray* array, const CUDA_ARRAY_DESCRIPTOR* asked) {
    require(asked != nullptr);
    CUDA_ARRAY3D_DESCRIPTOR full{};
    full.Width = asked->Width;
    full.Height = asked->Height;
    full.Format = asked->Format;
    full.NumChannels = asked->NumChannels;
    return create(array, full, "cuArrayCreate");
}

EMULATED_CONTEXT_API(cuArray3DCreate, 3020, CUarray* array, const CUDA_ARRAY3D_DESCRIPTOR* asked) {
    require(asked != nullptr);
    return create(array, *asked, "cuArray3DCreate");
}

EMULATED_CONTEXT_API(cuArrayGetDescriptor, 3020, CUDA_ARRAY_DESCRIPTOR* out, CUarray array) {
    const auto found = object_of<ArrayObject>(array);
    const CUDA_ARRAY3D_DESCRIPTOR& full = found->description;
    // The older structure has no field for a depth.
    require(full.Depth == 0);
    return answer(out, {full.Width, full.Height, full.Format, full.NumChannels});
}

EMULATED_CONTEXT_API(cuArray3DGetDescriptor, 3020, CUDA_ARRAY3D_DESCRIPTOR* out, CUarray array) {
    return answer(out, object_of<ArrayObject>(array)->description);
}

EMULATED_API(cuArrayDestroy, 2000, CUarray array) {
    check(ready_to_free());
    const auto found = object_of<ArrayObject>(array);
    require(!found->is_level, CUDA_ERROR_INVALID_HANDLE);
    unsafe_now("cuArrayDestroy");
    remove<ArrayObject>(array);
    free_memory(found->image.address, {Allocation::Kind::device});
}

// Mipmapped arrays

EMULATED_CONTEXT_API(cuMipmappedArrayCreate, 5000, CUmipmappedArray* array,
                     const CUDA_ARRAY3D_DESCRIPTOR* asked, unsigned int wanted) {
    require(array != nullptr && asked != nullptr);
    unsafe_now("cuMipmappedArrayCreate");
    auto made = std::make_shared<MipmappedArray>();
    create_levels(*made, *asked, levels_of(*asked, wanted), true, "cuMipmappedArrayCreate");
    *array = new_handle<CUmipmappedArray>(std::move(made));
}

EMULATED_CONTEXT_API(cuMipmappedArrayGetLevel, 5000, CUarray* out, CUmipmappedArray array,
                     unsigned int level) {
    const auto found = object_of<MipmappedArray>(array);
    require(level < found->handles.size());
    return answer(out, found->handles[level]);
}

EMULATED_API(cuMipmappedArrayDestroy, 5000, CUmipmappedArray array) {
    check(ready_to_free());
    const auto found = object_of<MipmappedArray>(array);
    unsafe_now("cuMipmappedArrayDestroy");
    for (const CUarray each : found->handles) Process::get().handles().remove<ArrayObject>(each);
    remove<MipmappedArray>(array);
    free_memory(found->images[0].address, {Allocation::Kind::device});
}

}  // namespace emulated::driver
