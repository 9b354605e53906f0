// The variants of video instructions, packed into an instruction's immediate. The lowering writes it and the machine reads
// it.
#pragma once

#include <cstdint>

#include "program/table/flags.hpp"

namespace emulated::program {

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

}  // namespace emulated::program
