// Streams whose handle only Bascule has.
#pragma once

#include <atomic>
#include <cstdint>

#include <bascule/runtime/streams/stream_ref.hpp>

namespace bascule {

/// Other code cannot begin to capture a hidden stream, so operations on it need not query the driver for that. The caller
/// promises that each use of its handle by others begins with `give_out_handle`. The streams of C++ programs are not hidden:
/// their handles are public. Throws where there is no memory.
void hide_stream(StreamRef stream);
/// Others have the stream's handle from now on and may capture it: each operation that hands owners over queries the driver.
/// Does nothing for a stream that is not hidden.
void give_out_handle(StreamRef stream) noexcept;

/// False for hidden streams and for the legacy default stream, which no capture takes.
bool may_be_captured_by_others(StreamRef stream) noexcept;

/// Counts streams that are no longer hidden: what was known of hidden ones holds until it changes.
inline std::atomic<std::uint64_t> streams_shown{0};

}  // namespace bascule
