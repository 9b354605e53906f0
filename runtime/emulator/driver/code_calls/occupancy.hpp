// What one multiprocessor of an sm_80 holds at once: registers, shared memory, warps.
#pragma once

#include <cstddef>

#include "driver/process.hpp"

namespace emulated::driver {

/// 32-bit registers per thread: those that hold a value at once, as far as an assembler would give them. It
/// spills where the text bounds them (.maxnreg, .maxntid, .minnctapersm), and at 255.
int registers_of(const program::Kernel& kernel) noexcept;

/// Blocks of this size that one multiprocessor holds at once; 0 when it holds none.
int resident_blocks(const KernelHandle& handle, int device, int block_size,
                    std::size_t dynamic_shared_bytes) noexcept;

}  // namespace emulated::driver
