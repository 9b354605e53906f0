// Runs whole warps of a block in lockstep: each instruction runs for all warps before the next one. The overhead of an
// instruction is paid once, and one warp's results are being stored while another's are computed. Warps separate when they
// diverge and rejoin at the block's next barrier.
#pragma once

#include <span>

#include "machine/warp.hpp"

namespace emulated::machine {

/// Fills Code::lockstep after the instructions have their handlers.
void link_lockstep(const program::Code& code);

/// True if all lanes of the warp are ready at the same position outside called functions, and the warp has begun no
/// asynchronous copies.
bool can_run_in_lockstep(const Warp& warp) noexcept;

/// Runs warps that are at the same position until they end, wait at a barrier or use up their budget. Returns true if they
/// must continue alone; then the first `Lanes::went_on` warps have executed the instruction at which they diverge.
bool run_in_lockstep(Lanes& lanes, std::span<Warp> warps);

}  // namespace emulated::machine
