// nvJitLink at run time: links PTX, cubins and LTO-IR. Needs no driver and no device.
#pragma once

#include <memory>

#include <bascule/jit/compile/nvrtc.hpp>
#include <bascule/jit/link/linker.hpp>

namespace bascule {

/// The nvJitLink that belongs to this NVRTC: beside it, in the wheel of its release, or where the loader finds one of
/// its major version; null where there is none, or only one that is older than NVRTC. Loaded once a path; thread-safe.
std::shared_ptr<const Linker> find_nvjitlink(const Nvrtc& nvrtc);

}  // namespace bascule
