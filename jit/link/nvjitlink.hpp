// nvJitLink at run time: links PTX, cubins and LTO-IR. Needs no driver and no device.
#pragma once

#include <bascule/jit/compile/nvrtc.hpp>
#include <bascule/jit/link/linker.hpp>

namespace bascule {

/// The nvJitLink for this NVRTC: in the same directory, in the wheel of its release, or one of its major version that the
/// loader finds. Null if there is none, or only one that is older than NVRTC. Loaded once for each path; thread-safe.
std::shared_ptr<const Linker> find_nvjitlink(const Nvrtc& nvrtc);

}  // namespace bascule
