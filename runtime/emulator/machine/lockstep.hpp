// Whole warps of a block that run in lockstep: each instruction is done for all of them before the next. What an
// instruction costs beside its lanes is paid once, and one warp's results are on their way to memory while the others'
// are computed. Warps part where they no longer do the same, and meet again at the block's next barrier.
#pragma once

#include <span>

#include "machine/warp.hpp"

namespace emulated::machine {

/// Makes Code::lockstep, once the instructions have their handlers.
void link_lockstep(const program::Code& code);

/// Whether all lanes of the warp are there and stand at one place, outside of any function that was called, and no copy
/// that they began waits for them.
bool can_run_in_lockstep(const Warp& warp) noexcept;

/// Runs warps, which can and which stand at the same place, until they have ended, wait at a barrier or have spent their
/// budget. True: they part, and each is to go on alone; `Lanes::went_on` of them have done the instruction where the
/// next one, and perhaps others, cannot do as they did.
bool run_in_lockstep(Lanes& lanes, std::span<Warp> warps);

}  // namespace emulated::machine
