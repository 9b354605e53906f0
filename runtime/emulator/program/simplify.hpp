// Steps that need not run: what a launch fixes is known before its first thread.
#pragma once

#include <map>

#include "program/layout.hpp"
#include "program/step.hpp"

namespace emulated::program {

/// Registers that are written once, with a kernel's parameter, a constant or a special register, become names
/// for the place where that stands.
void simplify(Body& body, Layout& layout);

/// Loads and stores whose address is a sum with something that all lanes share, as an array's begin is, add it themselves.
void join_addresses(Body& body, const Layout& layout);

/// Loads and stores that differ from an earlier one of their basic block in the displacement alone learn of
/// it.
void share_addresses(Body& body);

/// Forward branches over steps that neither part the lanes nor leave the function become guards of these steps: the
/// lanes need not part to meet again. Tells, by the step that a guard ends before, the guard. For a body whose
/// registers are placed, because liveness knows branches alone.
std::map<std::size_t, std::size_t> guard_ifs(Body& body);

}  // namespace emulated::program
