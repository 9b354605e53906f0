// The variants of instructions that have one handler for a family: textures, surfaces, video instructions and small formats.
// The lowering packs a variant into Instruction::immediate, and the handler reads it.
#pragma once

#include <cstdint>

#include "program/table/flags.hpp"
#include "ptx/types.hpp"

namespace emulated::program {

/// The kind of image that an instruction accesses.
struct Geometry {
    Flag flag;
    const char* name;
    std::uint8_t dimensions;  ///< without the layer
    bool layered;             ///< the layer comes first
    bool cube;

    constexpr unsigned coordinates() const { return dimensions + (layered ? 1u : 0u); }
};

inline constexpr Geometry geometries[] = {
    {Flag::geometry_1d, "1d", 1, false, false}, {Flag::geometry_2d, "2d", 2, false, false},
    {Flag::geometry_3d, "3d", 3, false, false}, {Flag::a1d, "a1d", 1, true, false},
    {Flag::a2d, "a2d", 2, true, false},         {Flag::cube, "cube", 3, false, true},
    {Flag::acube, "acube", 3, true, true},
};

struct ImageAccess {
    std::uint8_t shape = 0;                  ///< index into `geometries`
    ptx::Type type = ptx::Type::none;        ///< of one result or value
    ptx::Type coordinate = ptx::Type::none;  ///< texture coordinates: s32 or f32
    std::uint8_t values = 1;                 ///< surfaces: the number of values loaded or stored
    Flag outside = Flag::trap;               ///< surfaces: trap, clamp or zero
    /// tex: lod or grad; tld4: the component; sured: the operation; queries: the attribute
    Flag what = Flag::rn;
    bool formatted = false;  ///< surfaces: .p, for which x is in texels and not bytes

    const Geometry& geometry() const { return geometries[shape]; }
};

/// Selectors of a scalar video instruction: the whole word, a byte or a half.
enum class Part : std::uint8_t { word, b0, b1, b2, b3, h0, h1 };

/// The form of a scalar video instruction: vadd.s32.u32.s32.sat.min d, a.b0, b.h1, c.
struct ScalarVideo {
    Part d = Part::word, a = Part::word, b = Part::word;
    Flag secondary =
        Flag::count;  ///< add, min or max of the result and c; if none, the result itself, or merged into c
    Flag scale = Flag::count;  ///< shr7 or shr15; none otherwise
    bool d_signed : 1 = false, a_signed : 1 = false, b_signed : 1 = false;
    bool saturates : 1 = false, wraps : 1 = false;
    bool negates_product : 1 = false, negates_c : 1 = false, plus_one : 1 = false;
};

/// The form of an instruction on two halves or four bytes: vadd4.u32.s32.u32.sat d.b31, a.b7654, b.b3210, c. Each lane of a
/// source selects one of the parts of a and b together.
struct VectorVideo {
    std::uint8_t lanes = 2;      ///< 2 or 4
    std::uint8_t mask = 0;       ///< one bit per lane
    std::uint16_t a = 0, b = 0;  ///< four bits per lane, the lowest lane first
    bool d_signed : 1 = false, a_signed : 1 = false, b_signed : 1 = false;
    bool saturates : 1 = false, accumulates : 1 = false;
};

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
