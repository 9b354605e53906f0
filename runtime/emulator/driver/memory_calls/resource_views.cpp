#include "driver/memory_calls/resource_views.hpp"

#include <optional>
#include <string>

#include <fmt/format.h>

#include "driver/process.hpp"

namespace emulated::driver {
namespace {

using memory::Image;
using memory::TexelFormat;

// Three of each kind, with one, two and four channels, before the compressed ones.
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

// Why an array has no such view; empty where it has.
std::string objection(const memory::ImageObject& object, const CUDA_RESOURCE_VIEW_DESC& view) {
    const Image& image = object.image;
    const auto is = [](std::size_t asked, std::uint32_t extent) {
        return asked == extent || (asked == 0 && extent == 1);
    };
    if (!is(view.width, image.width) || !is(view.height, image.height) || !is(view.depth, image.slices))
        return fmt::format("a view has the extents of its array, {} x {} x {}, and not {} x {} x {}",
                           image.width, image.height, image.slices, view.width, view.height, view.depth);
    if (!is_range(view.firstMipmapLevel, view.lastMipmapLevel, object.levels()))
        return fmt::format("the array has {} levels, and the view begins with level {} and ends with {}",
                           object.levels(), view.firstMipmapLevel, view.lastMipmapLevel);
    const std::uint32_t layers = image.layered ? image.slices : 1;
    if (!is_range(view.firstLayer, view.lastLayer, layers))
        return fmt::format("the array has {} layers, and the view begins with layer {} and ends with {}",
                           layers, view.firstLayer, view.lastLayer);
    const auto format = format_of(view.format);
    if (format && format->bytes() != image.format.bytes())
        return fmt::format("the array's texels have {} bytes, and the view's {}", image.format.bytes(),
                           format->bytes());
    return {};
}

}  // namespace

CUresult narrow_to_view(memory::ImageObject& object, const CUDA_RESOURCE_VIEW_DESC& view, const char* name) {
    const auto refuse = [&](CUresult code, const std::string& why) {
        Process::get().set_report(fmt::format("{}: {}", name, why));
        return code;
    };
    const auto format = format_of(view.format);
    if (!format && view.format != CU_RES_VIEW_FORMAT_NONE)
        return refuse(CUDA_ERROR_NOT_SUPPORTED, "the emulated device does not read block-compressed formats");
    if (const std::string why = objection(object, view); !why.empty())
        return refuse(CUDA_ERROR_INVALID_VALUE, why);
    const bool whole = view.lastLayer - view.firstLayer + 1 == object.image.slices;
    if (object.image.cube && object.image.layered && !whole)
        return refuse(CUDA_ERROR_NOT_SUPPORTED, "the emulated device has no views of some layers of cubes");

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
    return CUDA_SUCCESS;
}

}  // namespace emulated::driver
