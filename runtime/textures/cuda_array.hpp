// CUDA arrays: memory in a layout of the driver's own, which textures read and surfaces write.
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

struct Producer;

struct CudaArrayOptions {
    int channels = 1;      ///< 2 or 4: the shape's last axis
    bool layered = false;  ///< the shape's first axis counts layers, which are not filtered across
    /// Six faces (+x, -x, +y, -y, +z, -z), the shape's first axis; with `layered` it counts 6 faces a layer.
    bool cube = false;
    bool surface = false;  ///< a surface may write it
    bool gather = false;   ///< tex2Dgather may read it
};

/// A CUDA array that this object owns: 1-D, 2-D or 3-D, layered, or a cube. Kernels have no address of it. Its stream
/// orders copies and launches, as that of a DeviceArray. Move-only. Thread-safe as memory is: order your accesses.
class CudaArray {
  public:
    /// `shape` as NumPy has it, the width last (before the channels): (height, width), (depth, height, width). The
    /// elements are undefined. Throws: ArgumentError for what the device cannot make; CudaError.
    CudaArray(std::span<const std::int64_t> shape, DType dtype, const CudaArrayOptions& options = {},
              StreamRef stream = StreamRef::device_default());
    ~CudaArray();  // never throws; waits for the device where the driver does
    CudaArray(CudaArray&& other) noexcept;
    CudaArray& operator=(CudaArray&& other) noexcept;

    const Dimensions& shape() const noexcept;
    const TexelFormat& format() const noexcept;
    const CudaArrayOptions& options() const noexcept;
    std::size_t bytes() const noexcept;
    StreamRef stream() const noexcept;
    CUarray_st* handle() const noexcept;
    /// Without an address: its stream orders what uses the array.
    const ArrayView& view() const noexcept;

    /// All elements, in C order, in the order of `stream`, after what `producers` have enqueued. Owners are kept until
    /// the copy is done. Host memory may be reused on return, unless it is pinned; so for a copy to the host, which has
    /// arrived on return unless the memory is pinned. Throws: CudaError.
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
