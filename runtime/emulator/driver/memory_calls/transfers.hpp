// Copies and fills of rows of bytes: what every cuMemcpy and cuMemset comes down to.
#pragma once

#include <cstddef>
#include <cstdint>

#include <cuda.h>

#include "driver/process.hpp"
#include "streams/work_graph.hpp"

namespace emulated::driver {

/// Rows of bytes, `pitch` apart, in slices that are `slice_pitch` apart; of one row, or one slice, it does not matter.
struct Rows {
    CUdeviceptr address = 0;
    std::size_t pitch = 0;
    std::size_t slice_pitch = 0;
};

struct Extent {
    std::size_t width = 0;  ///< bytes
    std::size_t height = 1;
    std::size_t depth = 1;

    bool empty() const noexcept { return width == 0 || height == 0 || depth == 0; }
    std::size_t bytes() const noexcept { return width * height * depth; }
};

/// What a caller says an end of a copy is.
enum class Side : std::uint8_t { host, device, unified };

struct CopyEnd {
    Side side = Side::unified;
    Rows rows;
};

/// Whether the host waits where the documentation leaves it to the function ("API synchronization behavior").
enum class Wait : bool { no, yes };

struct Copy {
    CopyEnd to, from;
    Extent extent;
    /// How a node of a captured graph tells of it; null: as a copy between addresses.
    const CUDA_MEMCPY3D* described = nullptr;
    /// cuMemcpyPeer* goes by the host where a device does not reach the other one's memory.
    bool between_peers = false;
};
CUresult copy_rows(const Copy& copy, CUstream stream, Wait wait, const char* name);
/// A node that does the same at every launch. `stream` is what the trace tells.
CUresult make_copy_node(streams::WorkNode& node, const Copy& copy, Context& context, CUstream stream,
                        const char* name);

/// Elements of 1, 2 or 4 bytes, in the context of the stream.
CUresult fill_rows(const CUDA_MEMSET_NODE_PARAMS_v2& fill, CUstream stream, Wait wait, const char* name);

/// For the search for races: the operation that runs in this thread gives memory, or takes it away.
void note_write(CUdeviceptr address, std::size_t bytes);

}  // namespace emulated::driver
