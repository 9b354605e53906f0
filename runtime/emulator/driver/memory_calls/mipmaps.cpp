// Mipmapped arrays: levels, each of half the extents of the one before, that are CUDA arrays themselves.
#include <algorithm>
#include <bit>

#include "driver/capture.hpp"
#include "driver/limits.hpp"
#include "driver/memory_calls/allocations.hpp"
#include "driver/memory_calls/arrays.hpp"

namespace emulated::driver {
namespace {

using memory::Allocation;

// "Clamped to the range [1, 1 + floor(log2(max(width, height, depth)))]". Layers and faces are no depth.
unsigned levels_of(const CUDA_ARRAY3D_DESCRIPTOR& asked, unsigned wanted) {
    const bool deep = (asked.Flags & (CUDA_ARRAY3D_LAYERED | CUDA_ARRAY3D_CUBEMAP)) == 0;
    const std::size_t longest = std::max({asked.Width, asked.Height, deep ? asked.Depth : 0});
    return std::clamp(wanted, 1u, static_cast<unsigned>(std::bit_width(longest)));
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

}  // namespace

EMULATED_CONTEXT_API(cuMipmappedArrayCreate, 5000, CUmipmappedArray* array,
                     const CUDA_ARRAY3D_DESCRIPTOR* asked, unsigned int wanted) {
    EMULATED_REQUIRE(array != nullptr && asked != nullptr, CUDA_ERROR_INVALID_VALUE);
    auto made = std::make_shared<MipmappedArray>();
    std::uint64_t bytes = 0;
    const unsigned levels = levels_of(*asked, wanted);
    for (unsigned level = 0; level < levels; ++level) {
        memory::Image& image = made->images.emplace_back();
        EMULATED_CHECK(plan_image(image, level_of(*asked, level), true, "cuMipmappedArrayCreate"));
        constexpr std::uint64_t step = limits::texture_alignment;
        image.address = (bytes + step - 1) / step * step;
        bytes = image.address + image.span();
    }
    EMULATED_CHECK(allocate_images(made->images, bytes, "of a mipmapped array"));
    for (unsigned level = 0; level < levels; ++level) {
        auto part = std::make_shared<ArrayObject>();
        part->description = level_of(*asked, level);
        part->image = made->images[level];
        part->is_level = true;
        made->handles.push_back(new_handle<CUarray>(std::move(part)));
    }
    *array = new_handle<CUmipmappedArray>(std::move(made));
    return CUDA_SUCCESS;
}

EMULATED_CONTEXT_API(cuMipmappedArrayGetLevel, 5000, CUarray* out, CUmipmappedArray array,
                     unsigned int level) {
    EMULATED_FIND(found, find_object<MipmappedArray>(array));
    EMULATED_REQUIRE(level < found->handles.size(), CUDA_ERROR_INVALID_VALUE);
    return answer(out, found->handles[level]);
}

EMULATED_API(cuMipmappedArrayDestroy, 5000, CUmipmappedArray array) {
    EMULATED_CHECK(ready_to_free());
    EMULATED_FIND(found, find_object<MipmappedArray>(array));
    const CUresult result = free_memory(found->images[0].address, {Allocation::Kind::device});
    for (const CUarray each : found->handles) Process::get().handles().remove<ArrayObject>(each);
    Process::get().handles().remove<MipmappedArray>(array);
    return result;
}

}  // namespace emulated::driver
