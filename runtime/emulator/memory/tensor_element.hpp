// The element types of tensor maps.
#pragma once

#include <cstdint>

namespace emulated::memory {

/// The elements of a tensor, with the values of CUtensorMapDataType.
enum class TensorElement : std::uint8_t {
    u8,
    u16,
    u32,
    s32,
    u64,
    s64,
    f16,
    f32,
    f64,
    bf16,
    f32_ftz,
    tf32,
    tf32_ftz,
    count
};

}  // namespace emulated::memory
