// Enqueues functions that run on the host.
#pragma once

#include <bascule/runtime/streams/owner.hpp>
#include <bascule/runtime/streams/stream_ref.hpp>

namespace bascule {

/// Enqueues `function(data)`. The driver calls it in a thread of its own when the stream's earlier work is done, and later
/// work waits for it. The function must not call CUDA. In a capture it becomes a node of the graph and runs at each launch.
/// `owners` are taken even if this throws. The function is not called after a device error. Throws: CudaError.
void launch_host_function(StreamRef stream, void (*function)(void*), void* data, const Owners& owners = {});

}  // namespace bascule
