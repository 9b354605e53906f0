// Streams whose handle only Bascule knows.
#pragma once

#include <atomic>
#include <cstdint>

#include <bascule/runtime/streams/stream_ref.hpp>

namespace bascule {

/// Marks a stream as hidden. Other code cannot capture it, so operations on it need not query the driver. The caller
/// must call `give_out_handle` before other code gets the handle. Streams of C++ programs are not hidden, because their
/// handles are public. Throws std::bad_alloc.
void hide_stream(StreamRef stream);
/// Records that other code has the handle and may capture the stream. From now on, each operation with owners queries
/// the driver. Does nothing if the stream is not hidden.
void give_out_handle(StreamRef stream) noexcept;

/// False for hidden streams and for the legacy default stream, which cannot be captured.
bool may_be_captured_by_others(StreamRef stream) noexcept;

/// Counts streams that were given out. Cached facts about hidden streams are valid until it changes.
inline std::atomic<std::uint64_t> streams_shown{0};

}  // namespace bascule
