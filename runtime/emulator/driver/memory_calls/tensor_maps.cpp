// Tensor maps. Quotations are from the CUDA driver API's documentation; memory/tensor_map has the rules.
#include <algorithm>
#include <cstring>

#include "driver/call.hpp"
#include "memory/tensor_map.hpp"

namespace emulated::driver {
namespace {

using memory::TensorMap;

/// Checks what both encodings share: "Tensor map objects are only supported on devices of compute capability 9.0 or higher",
/// and "tensorMap address must be aligned to 64 bytes".
void require_place(const char* function, const CUtensorMap* map) {
    if (!architecture_limits().clusters)
        return refuse(CUDA_ERROR_NOT_SUPPORTED,
                      "{}: tensor maps need compute capability 9.0: set BASCULE_EMULATED_ARCH=90", function);
    if (map == nullptr || reinterpret_cast<std::uintptr_t>(map) % TensorMap::alignment != 0)
        return refuse(CUDA_ERROR_INVALID_VALUE,
                      "{}: a tensor map is written to an address that is a multiple of 64 bytes", function);
}

/// Copies `count` values, but not more than `to` holds. `from` may be null if `count` is 0.
template <class Value, std::size_t Count, class From>
void copy_values(const char* function, const char* name, std::array<Value, Count>& to, const From* from,
                 std::size_t count) {
    if (from == nullptr && count > 0)
        return refuse(CUDA_ERROR_INVALID_VALUE, "{}: {} is null", function, name);
    std::copy_n(from, std::min(count, Count), to.begin());
}

void write_map(const char* function, CUtensorMap* to, const TensorMap& map,
               CUtensorMapL2promotion promotion) {
    std::string why = map.why_invalid();
    if (why.empty() && static_cast<unsigned>(promotion) > CU_TENSOR_MAP_L2_PROMOTION_L2_256B)
        why = fmt::format("{} is not an L2 promotion", static_cast<unsigned>(promotion));
    if (!why.empty()) return refuse(CUDA_ERROR_INVALID_VALUE, "{}: {}", function, why);
    const auto encoded = map.encode();
    std::memcpy(to, encoded.data(), encoded.size());
}

/// A map with the arguments that both encodings have in the same form.
TensorMap map_of(const char* name, CUtensorMapDataType type, cuuint32_t rank, void* address,
                 const cuuint64_t* extents, const cuuint64_t* strides) {
    TensorMap map;
    map.type = static_cast<std::uint32_t>(type);
    map.rank = rank;
    map.address = reinterpret_cast<std::uintptr_t>(address);
    copy_values(name, "globalDim", map.extents, extents, rank);
    copy_values(name, "globalStrides", map.strides, strides, rank == 0 ? 0 : rank - 1);
    return map;
}

}  // namespace

EMULATED_CONTEXT_API(cuTensorMapEncodeTiled, 12000, CUtensorMap* to, CUtensorMapDataType type,
                     cuuint32_t rank, void* address, const cuuint64_t* extents, const cuuint64_t* strides,
                     const cuuint32_t* box, const cuuint32_t* steps, CUtensorMapInterleave interleave,
                     CUtensorMapSwizzle swizzle, CUtensorMapL2promotion promotion,
                     CUtensorMapFloatOOBfill fill) {
    constexpr const char* name = "cuTensorMapEncodeTiled";
    require_place(name, to);
    TensorMap map = map_of(name, type, rank, address, extents, strides);
    copy_values(name, "boxDim", map.box, box, rank);
    copy_values(name, "elementStrides", map.steps, steps, rank);
    map.interleave = static_cast<std::uint32_t>(interleave);
    map.swizzle = static_cast<std::uint32_t>(swizzle);
    map.fill = static_cast<std::uint32_t>(fill);
    write_map(name, to, map, promotion);
}

/// The corners are in the order of the dimensions, width first, as CUTLASS passes them; the documentation names them "{D, H,
/// W}".
EMULATED_CONTEXT_API(cuTensorMapEncodeIm2col, 12000, CUtensorMap* to, CUtensorMapDataType type,
                     cuuint32_t rank, void* address, const cuuint64_t* extents, const cuuint64_t* strides,
                     const int* lower, const int* upper, cuuint32_t channels, cuuint32_t pixels,
                     const cuuint32_t* steps, CUtensorMapInterleave interleave, CUtensorMapSwizzle swizzle,
                     CUtensorMapL2promotion promotion, CUtensorMapFloatOOBfill fill) {
    constexpr const char* name = "cuTensorMapEncodeIm2col";
    require_place(name, to);
    TensorMap map = map_of(name, type, rank, address, extents, strides);
    copy_values(name, "elementStrides", map.steps, steps, rank);
    map.im2col = true;
    const std::size_t corners = rank < 3 ? 0 : rank - 2;
    copy_values(name, "pixelBoxLowerCorner", map.lower, lower, corners);
    copy_values(name, "pixelBoxUpperCorner", map.upper, upper, corners);
    map.channels = channels;
    map.pixels = pixels;
    map.interleave = static_cast<std::uint32_t>(interleave);
    map.swizzle = static_cast<std::uint32_t>(swizzle);
    map.fill = static_cast<std::uint32_t>(fill);
    write_map(name, to, map, promotion);
}

/// The address "must follow previous alignment requirements".
EMULATED_CONTEXT_API(cuTensorMapReplaceAddress, 12000, CUtensorMap* of, void* address) {
    constexpr const char* name = "cuTensorMapReplaceAddress";
    require_place(name, of);
    auto map = TensorMap::decode(reinterpret_cast<const std::byte*>(of));
    if (!map) return refuse(CUDA_ERROR_INVALID_VALUE, "{}: the bytes are not a tensor map", name);
    map->address = reinterpret_cast<std::uintptr_t>(address);
    write_map(name, of, *map, CU_TENSOR_MAP_L2_PROMOTION_NONE);
}

}  // namespace emulated::driver
