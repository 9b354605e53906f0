// Functions of the host among a stream's work.
#pragma once

#include <bascule/runtime/streams/owner.hpp>
#include <bascule/runtime/streams/stream_ref.hpp>

namespace bascule {

/// The driver calls `function(data)` from a thread of its own, when the stream's earlier work is done; later work
/// waits for it. It must call nothing of CUDA. In a capture it becomes a node of the graph, and is called by each launch
/// of that. `owners` are taken also when this throws. Not called after an error of the device. Throws: CudaError.
void launch_host_function(StreamRef stream, void (*function)(void*), void* data, const Owners& owners = {});

}  // namespace bascule
