// Pinned memory that holds copied values until the device has read them.
#pragma once

#include <cstddef>

#include <bascule/runtime/driver/device.hpp>
#include <bascule/runtime/streams/owner.hpp>

namespace bascule {

/// Longer copies are not staged: waiting for them takes no longer than copying twice.
inline constexpr std::size_t most_staged_bytes = std::size_t{1} << 20;

/// This much pinned memory is kept for later copies when the device is synchronized.
inline constexpr std::size_t most_kept_staging_bytes = std::size_t{32} << 20;

/// Copies at most `most_staged_bytes` to pinned memory and returns its owner, whose `object` is the copy. Keep the
/// owner until the operation that reads the copy is done. Throws: CudaError if no pinned memory is available.
Owner stage(const void* source, std::size_t bytes, Device device);

}  // namespace bascule
