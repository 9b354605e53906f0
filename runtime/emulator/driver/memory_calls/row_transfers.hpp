// Copies and fills of rows of bytes, the common part of all cuMemcpy and cuMemset functions.
#pragma once

#include <cstddef>
#include <cstdint>

#include <cuda.h>

#include "driver/process.hpp"
#include "streams/work_graph.hpp"

namespace emulated::driver {

/// Rows of bytes, `pitch` apart, in slices that are `slice_pitch` apart. The pitches are ignored for a single row or slice.
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

/// The kind of memory that a caller names for one side of a copy.
enum class Side : std::uint8_t { host, device, unified };

struct CopyEnd {
    Side side = Side::unified;
    Rows rows;
};

/// Whether the function waits for the transfer where the kinds of memory do not decide that ("API synchronization
/// behavior").
enum class Wait : bool { no, yes };

struct Copy {
    CopyEnd to, from;
    Extent extent;
    /// The parameters that a node of a captured graph reports; null: those of a copy between addresses.
    const CUDA_MEMCPY3D* described = nullptr;
    /// cuMemcpyPeer* copies through the host if one device cannot access the other's memory.
    bool between_peers = false;
};
void copy_rows(const Copy& copy, CUstream stream, Wait wait, const char* name);
/// Makes a node that copies at every launch. `stream` is for the trace.
void make_copy_node(streams::WorkNode& node, const Copy& copy, Context& context, CUstream stream,
                    const char* name);

/// Fills elements of 1, 2 or 4 bytes, in the stream's context.
void fill_rows(const CUDA_MEMSET_NODE_PARAMS_v2& fill, CUstream stream, Wait wait, const char* name);

/// Logs a write to this memory for the search for races: the operation that this thread runs allocates or frees it.
void note_write(CUdeviceptr address, std::size_t bytes);

}  // namespace emulated::driver
