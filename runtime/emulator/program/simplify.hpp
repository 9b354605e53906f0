// Optimisations of steps that use what is known before a launch.
#pragma once

#include <map>

#include "program/layout.hpp"
#include "program/step.hpp"

namespace emulated::program {

/// Replaces registers that are written once, with a kernel parameter, a constant or a special register, by the place of
/// that value.
void simplify(Body& body, Layout& layout);

/// Lets loads and stores add to their addresses a value that all lanes share, such as the start of an array.
void join_addresses(Body& body, const Layout& layout);

/// Lets loads and stores reuse the address check of an earlier one in the same basic block that differs only in the
/// displacement.
void share_addresses(Body& body);

/// Lets copies of accumulators of wgmma follow results that are still outstanding, and gives the accumulators places that
/// no other register shares (Body::unshared).
void follow_sums(Body& body);

/// Turns forward branches over straight-line steps into guards of these steps, so that lanes need not diverge and rejoin.
/// Returns the guard by the step before which it ends. Called after register allocation, because liveness analysis knows
/// only branches.
std::map<std::size_t, std::size_t> guard_ifs(Body& body);

}  // namespace emulated::program
