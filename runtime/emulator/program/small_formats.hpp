// Conversions to and from small floating-point formats, packed into an instruction's immediate. The lowering writes it and
// the machine reads it.
#pragma once

#include <cstdint>

#include "program/table/flags.hpp"

namespace emulated::program {

enum class SmallFormat : std::uint8_t { f16, bf16, e4m3, e5m2, tf32, f32, f64 };

struct SmallConversion {
    SmallFormat to = SmallFormat::f16, from = SmallFormat::f32;
    Flag rounding = Flag::rn;       ///< rn, rz, rm, rp, or rna: to nearest, ties away from zero
    bool relu = false;              ///< negative numbers become +0
    bool saturates = false;         ///< values beyond the greatest number become that number
    bool pair = false;              ///< d holds two values
    bool packed = false;            ///< a holds two values too
    std::uint8_t source_bytes = 4;  ///< bytes of a source register
};

}  // namespace emulated::program
