// The variants of texture and surface instructions, packed into Instruction::immediate. One handler serves each family.
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

}  // namespace emulated::program
