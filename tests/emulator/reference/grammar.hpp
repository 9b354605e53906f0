// The opcodes of PTX, for the families in the operation table: every legal spelling.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace reference {

/// A line of PTX syntax: `(a|b)` one of these, `{a|b}` one of these or nothing, `$name` a set of types.
struct Syntax {
    std::string_view line;
};

std::span<const Syntax> scalar_syntax();  ///< instructions of one thread
std::span<const Syntax> memory_syntax();  ///< ld, st, atom, red, prefetch, cvta, isspacep
std::span<const Syntax> video_syntax();
/// 128 bits, vectors of atomics, and instructions for the L2 cache.
std::span<const Syntax> wide_syntax();
std::span<const Syntax> exchange_syntax();     ///< between the threads of a warp
std::span<const Syntax> control_syntax();      ///< barriers, fences, branches
std::span<const Syntax> tensor_syntax();       ///< matrices of a warp
std::span<const Syntax> tensor_copy_syntax();  ///< copies by tensor maps
std::span<const Syntax> async_syntax();        ///< asynchronous copies, barriers in shared memory, clusters
std::span<const Syntax> image_syntax();        ///< textures and surfaces

/// Returns every spelling that a line stands for.
std::vector<std::string> spellings_of(const Syntax& syntax);

}  // namespace reference
