// CUDA arrays: memory in an opaque layout, which textures read and surfaces write.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include <bascule/interface/arrays/array_interface.hpp>
#include <bascule/runtime/streams/owner.hpp>
#include <bascule/runtime/streams/stream_ref.hpp>
#include <bascule/runtime/textures/texels.hpp>

struct CUarray_st;

namespace bascule {

struct CudaArrayOptions {
    int channels = 1;      ///< 2 or 4: the last axis of the shape
    bool layered = false;  ///< the first axis counts layers, across which textures do not filter
    /// Six faces (+x, -x, +y, -y, +z, -z) along the first axis of the shape; with `layered`, 6 faces per layer.
    bool cube = false;
    bool surface = false;  ///< a surface may write it
    bool gather = false;   ///< tex2Dgather may read it
};

/// A CUDA array owned by this object: 1-D, 2-D or 3-D, layered, or a cube. Kernels cannot use its address. Its stream
/// orders copies and launches, as in a DeviceArray. Move-only. As thread-safe as memory: order your accesses.
class CudaArray {
  public:
    /// `shape` is in NumPy's order, with the width last (before the channels): (height, width), (depth, height, width).
    /// The elements are undefined. Throws: ArgumentError for an array that the device does not support; CudaError.
    CudaArray(std::span<const std::int64_t> shape, DType dtype, const CudaArrayOptions& options = {},
              StreamRef stream = StreamRef::device_default());
    ~CudaArray();  // never throws; waits for the device if the driver does
    CudaArray(CudaArray&& other) noexcept;
    CudaArray& operator=(CudaArray&& other) noexcept;

    const Dimensions& shape() const noexcept;
    const TexelFormat& format() const noexcept;
    const CudaArrayOptions& options() const noexcept;
    std::size_t bytes() const noexcept;
    StreamRef stream() const noexcept;
    CUarray_st* handle() const noexcept;
    /// A view without an address. Its stream orders uses of the array.
    const ArrayView& view() const noexcept;

    /// Copies all elements in C order, in the order of `stream`, after the work enqueued so far on `producers`. Owners
    /// are kept until the copy is done. Host memory that is not pinned may be reused, or has been filled, on return.
    /// Pinned memory, and all memory in a capture, is used when the stream does the copy. Throws: CudaError.
    void copy_from_device(StreamRef stream, std::uint64_t source, std::span<const Producer> producers = {},
                          const Owners& owners = {}) const;
    void copy_from_host(StreamRef stream, const void* source, std::span<const Producer> producers = {},
                        const Owners& owners = {}) const;
    void copy_to_device(StreamRef stream, std::uint64_t destination, std::span<const Producer> producers = {},
                        const Owners& owners = {}) const;
    void copy_to_host(StreamRef stream, void* destination, std::span<const Producer> producers = {},
                      const Owners& owners = {}) const;

  private:
    struct State;
    struct Copy;
    std::shared_ptr<State> state_;
};

}  // namespace bascule
