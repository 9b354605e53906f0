// Streams whose handle nobody but Bascule has.
#pragma once

#include <atomic>
#include <cstdint>

#include <bascule/runtime/streams/stream_ref.hpp>

namespace bascule {

/// Nobody else can begin to capture a hidden stream, so operations on it need not ask the driver for that. Who hides one
/// promises that each use of its handle by others begins with `give_out_handle` (<bascule/runtime/lifetime/lifetime.hpp>).
/// The streams of C++ programs are not hidden: anybody may read their handles. Throws where there is no memory.
void hide_stream(StreamRef stream);
/// False where it was not hidden.
bool show_stream(StreamRef stream) noexcept;

/// False for hidden streams, and for the legacy default stream, which no capture takes.
bool may_be_captured_by_others(StreamRef stream) noexcept;

/// Counts streams that are not hidden any more: what was known of hidden ones holds until it changes.
inline std::atomic<std::uint64_t> streams_shown{0};

}  // namespace bascule
