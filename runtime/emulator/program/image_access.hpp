// What an instruction on a texture or a surface does, packed into Instruction::immediate: one handler a family.
#pragma once

#include <bit>
#include <cstdint>

#include "program/table/flags.hpp"
#include "ptx/types.hpp"

namespace emulated::program {

enum class Geometry : std::uint8_t { d1, d2, d3, a1, a2, cube, acube };

struct GeometryTraits {
    Flag flag;
    const char* name;
    std::uint8_t coordinates;  ///< without the layer
    bool layered;              ///< the layer comes first
};

/// By Geometry.
inline constexpr GeometryTraits geometry_traits[] = {
    {Flag::geometry_1d, "1d", 1, false}, {Flag::geometry_2d, "2d", 2, false},
    {Flag::geometry_3d, "3d", 3, false}, {Flag::a1d, "a1d", 1, true},
    {Flag::a2d, "a2d", 2, true},         {Flag::cube, "cube", 3, false},
    {Flag::acube, "acube", 3, true},
};
constexpr const GeometryTraits& traits_of(Geometry geometry) {
    return geometry_traits[static_cast<unsigned>(geometry)];
}

/// Where a surface access leaves the surface.
enum class Outside : std::uint8_t { trap, clamp, zero };

struct ImageAccess {
    Geometry geometry = Geometry::d1;
    ptx::Type type = ptx::Type::none;        ///< of one result or value
    ptx::Type coordinate = ptx::Type::none;  ///< of a texture: s32 or f32
    std::uint8_t values = 1;                 ///< surfaces: how many are loaded or stored
    Outside outside = Outside::trap;
    Flag what =
        Flag::rn;  ///< tex: lod or grad; tld4: the component; sured: the operation; queries: what is asked
    bool formatted = false;  ///< surfaces: .p, so that x counts texels and not bytes
    std::uint8_t unused = 0;

    std::int64_t packed() const { return std::bit_cast<std::int64_t>(*this); }
    static ImageAccess unpacked(std::int64_t from) { return std::bit_cast<ImageAccess>(from); }
};

}  // namespace emulated::program
