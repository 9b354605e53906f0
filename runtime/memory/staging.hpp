// Pinned memory of ours that values wait in until the device has read them.
#pragma once

#include <cstddef>

#include <bascule/runtime/driver/device.hpp>
#include <bascule/runtime/streams/owner.hpp>

namespace bascule {

/// What is longer is not worth a second copy: waiting for the first takes as long.
inline constexpr std::size_t most_staged_bytes = std::size_t{1} << 20;

/// Pinned memory that stays for later copies after a synchronisation of the device.
inline constexpr std::size_t most_kept_staging_bytes = std::size_t{32} << 20;

/// A copy of at most so many bytes, which the device may read in its own time: the owner, whose object is the
/// copy, goes with the operation that reads it. Throws: CudaError where there is no pinned memory.
Owner stage(const void* source, std::size_t bytes, Device device);

}  // namespace bascule
