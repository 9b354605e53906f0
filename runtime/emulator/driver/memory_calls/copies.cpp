// The copy and fill functions. Each says what source and destination are and whether the host waits.
#include <cstddef>
#include <cstring>

#include "driver/captures.hpp"
#include "driver/graph_nodes.hpp"
#include "driver/memory_calls/arrays.hpp"
#include "driver/memory_calls/row_transfers.hpp"

namespace emulated::driver {
namespace {

CopyEnd device(CUdeviceptr address) { return {Side::device, {address, 0}}; }
CopyEnd unified(CUdeviceptr address) { return {Side::unified, {address, 0}}; }
CopyEnd host(const void* address) {
    return {Side::host, {static_cast<CUdeviceptr>(reinterpret_cast<std::uintptr_t>(address)), 0}};
}
Copy peer_copy(CUdeviceptr to, CUdeviceptr from, std::size_t bytes) {
    Copy copy{device(to), device(from), {bytes}};
    copy.between_peers = true;
    return copy;
}

/// One side of a CUDA_MEMCPY2D or CUDA_MEMCPY3D. `height` is in rows per slice.
struct Side3D {
    CUmemorytype type;
    const void* host;
    CUdeviceptr device;
    CUarray array;
    std::size_t x, y, z, pitch, height;
};

/// Checks that the box lies inside the array and starts and ends on texel boundaries.
void to_array_end(CopyEnd& end, const Side3D& side, const Extent& extent) {
    const auto array = object_of<ArrayObject>(side.array);
    const memory::Image& image = array->image;
    const auto fits = [](std::size_t from, std::size_t count, std::size_t all) {
        return from <= all && count <= all - from;
    };
    const bool inside = fits(side.x, extent.width, image.pitch) &&
                        fits(side.y, extent.height, image.height) && fits(side.z, extent.depth, image.slices);
    const bool whole = side.x % image.format.bytes() == 0 && extent.width % image.format.bytes() == 0;
    require(inside && whole);
    end = device(image.address + side.z * image.slice_pitch + side.y * image.pitch + side.x);
    end.rows.pitch = image.pitch;
    end.rows.slice_pitch = image.slice_pitch;
}

/// Refuses rows that exceed the pitch or height, and unknown kinds of memory.
void to_end(CopyEnd& end, const Side3D& side, const Extent& extent) {
    if (side.type == CU_MEMORYTYPE_ARRAY) return to_array_end(end, side, extent);
    const std::size_t pitch = side.pitch == 0 ? side.x + extent.width : side.pitch;
    const std::size_t height = side.height == 0 ? side.y + extent.height : side.height;
    const bool fits = side.x <= pitch && extent.width <= pitch - side.x && pitch <= 2147483647 &&
                      (extent.depth <= 1 || (side.y <= height && extent.height <= height - side.y));
    require(fits);
    if (side.type == CU_MEMORYTYPE_HOST) {
        end = host(side.host);
    } else if (side.type == CU_MEMORYTYPE_DEVICE) {
        end = device(side.device);
    } else if (side.type == CU_MEMORYTYPE_UNIFIED) {
        end = unified(side.device);
    } else {
        throw Failed{CUDA_ERROR_INVALID_VALUE};
    }
    std::size_t slice_pitch = 0;
    require(!__builtin_mul_overflow(pitch, height, &slice_pitch));
    end.rows.address += side.z * slice_pitch + side.y * pitch + side.x;
    end.rows.pitch = pitch;
    end.rows.slice_pitch = slice_pitch;
}

/// Checks both sides of a copy. `box` must outlive `made`.
void find_ends(Copy& made, const CUDA_MEMCPY3D& box) {
    require(box.srcLOD == 0 && box.dstLOD == 0 && box.reserved0 == nullptr && box.reserved1 == nullptr);
    made.extent = {box.WidthInBytes, box.Height, box.Depth};
    made.described = &box;
    to_end(made.to,
           {box.dstMemoryType, box.dstHost, box.dstDevice, box.dstArray, box.dstXInBytes, box.dstY, box.dstZ,
            box.dstPitch, box.dstHeight},
           made.extent);
    return to_end(made.from,
                  {box.srcMemoryType, box.srcHost, box.srcDevice, box.srcArray, box.srcXInBytes, box.srcY,
                   box.srcZ, box.srcPitch, box.srcHeight},
                  made.extent);
}

void copy_3d(const CUDA_MEMCPY3D* box, CUstream stream, Wait wait, const char* name,
             bool between_peers = false) {
    check(ready());
    require(box != nullptr);
    Copy copy;
    find_ends(copy, *box);
    copy.between_peers = between_peers;
    return copy_rows(copy, stream, wait, name);
}

void copy_2d(const CUDA_MEMCPY2D* given, CUstream stream, Wait wait, const char* name) {
    check(ready());
    require(given != nullptr);
    CUDA_MEMCPY3D copy = {};
    copy.srcXInBytes = given->srcXInBytes;
    copy.srcY = given->srcY;
    copy.srcMemoryType = given->srcMemoryType;
    copy.srcHost = given->srcHost;
    copy.srcDevice = given->srcDevice;
    copy.srcArray = given->srcArray;
    copy.srcPitch = given->srcPitch;
    copy.dstXInBytes = given->dstXInBytes;
    copy.dstY = given->dstY;
    copy.dstMemoryType = given->dstMemoryType;
    copy.dstHost = given->dstHost;
    copy.dstDevice = given->dstDevice;
    copy.dstArray = given->dstArray;
    copy.dstPitch = given->dstPitch;
    copy.WidthInBytes = given->WidthInBytes;
    copy.Height = given->Height;
    copy.Depth = 1;
    return copy_3d(&copy, stream, wait, name);
}

/// Makes `end` a part of a one-dimensional array.
void in_array(CopyEnd& end, CUarray handle, std::size_t offset, std::size_t bytes) {
    check(ready());
    const auto array = object_of<ArrayObject>(handle);
    require(array->image.height == 1 && array->image.slices == 1);
    Side3D side{};
    side.array = handle;
    side.x = offset;
    return to_array_end(end, side, {bytes});
}

/// The addresses determine the devices; the contexts only need to exist.
void copy_3d_peer(const CUDA_MEMCPY3D_PEER* given, CUstream stream, Wait wait, const char* name) {
    check(ready());
    require(given != nullptr);
    check(state_of(find_context(given->srcContext)));
    check(state_of(find_context(given->dstContext)));
    CUDA_MEMCPY3D copy;  // the same layout, with reserved pointers in place of contexts
    static_assert(sizeof copy == sizeof *given &&
                  offsetof(CUDA_MEMCPY3D, reserved0) == offsetof(CUDA_MEMCPY3D_PEER, srcContext) &&
                  offsetof(CUDA_MEMCPY3D, reserved1) == offsetof(CUDA_MEMCPY3D_PEER, dstContext));
    std::memcpy(&copy, given, sizeof copy);
    copy.reserved0 = copy.reserved1 = nullptr;
    return copy_3d(&copy, stream, wait, name, true);
}

}  // namespace

void make_copy_node(streams::WorkNode& node, const CUDA_MEMCPY3D& box, Context& context) {
    Copy copy;
    find_ends(copy, box);
    return make_copy_node(node, copy, context, nullptr, "a memcpy node");
}

/// Copy functions of one kind: one that waits if its documentation says so, and one that takes a stream.
#define EMULATED_COPIES(kind, version, To, to_end, From, from_end, wait)                                     \
    EMULATED_STREAM_CONTEXT_API(cuMemcpy##kind, version, To to, From from, std::size_t bytes) {              \
        return copy_rows({to_end(to), from_end(from), {bytes}}, nullptr, wait, "cuMemcpy" #kind);            \
    }                                                                                                        \
    EMULATED_STREAM_CONTEXT_API(cuMemcpy##kind##Async, version, To to, From from, std::size_t bytes,         \
                                CUstream stream) {                                                           \
        return copy_rows({to_end(to), from_end(from), {bytes}}, stream, Wait::no, "cuMemcpy" #kind "Async"); \
    }
EMULATED_COPIES(, 4000, CUdeviceptr, unified, CUdeviceptr, unified, Wait::yes)
EMULATED_COPIES(HtoD, 3020, CUdeviceptr, device, const void*, host, Wait::yes)
EMULATED_COPIES(DtoH, 3020, void*, host, CUdeviceptr, device, Wait::yes)
EMULATED_COPIES(DtoD, 3020, CUdeviceptr, device, CUdeviceptr, device, Wait::no)

/// The same for one-dimensional arrays, at an offset in bytes.
#define EMULATED_ARRAY_COPY(kind, version, wait, stream, other, ...)                        \
    EMULATED_STREAM_CONTEXT_API(cuMemcpy##kind, version, __VA_ARGS__) {                     \
        CopyEnd end;                                                                        \
        in_array(end, array, offset, bytes);                                                \
        return copy_rows({EMULATED_ENDS_##other, {bytes}}, stream, wait, "cuMemcpy" #kind); \
    }
#define EMULATED_ENDS_FROM_HOST end, host(from)
#define EMULATED_ENDS_FROM_DEVICE end, device(from)
#define EMULATED_ENDS_TO_HOST host(to), end
#define EMULATED_ENDS_TO_DEVICE device(to), end
EMULATED_ARRAY_COPY(HtoA, 3020, Wait::yes, nullptr, FROM_HOST, CUarray array, std::size_t offset,
                    const void* from, std::size_t bytes)
EMULATED_ARRAY_COPY(HtoAAsync, 3020, Wait::no, stream, FROM_HOST, CUarray array, std::size_t offset,
                    const void* from, std::size_t bytes, CUstream stream)
EMULATED_ARRAY_COPY(DtoA, 3020, Wait::no, nullptr, FROM_DEVICE, CUarray array, std::size_t offset,
                    CUdeviceptr from, std::size_t bytes)
EMULATED_ARRAY_COPY(AtoH, 3020, Wait::yes, nullptr, TO_HOST, void* to, CUarray array, std::size_t offset,
                    std::size_t bytes)
EMULATED_ARRAY_COPY(AtoHAsync, 3020, Wait::no, stream, TO_HOST, void* to, CUarray array, std::size_t offset,
                    std::size_t bytes, CUstream stream)
EMULATED_ARRAY_COPY(AtoD, 3020, Wait::no, nullptr, TO_DEVICE, CUdeviceptr to, CUarray array,
                    std::size_t offset, std::size_t bytes)

EMULATED_STREAM_CONTEXT_API(cuMemcpyAtoA, 3020, CUarray to, std::size_t to_offset, CUarray from,
                            std::size_t from_offset, std::size_t bytes) {
    CopyEnd to_end, from_end;
    in_array(to_end, to, to_offset, bytes);
    in_array(from_end, from, from_offset, bytes);
    return copy_rows({to_end, from_end, {bytes}}, nullptr, Wait::no, "cuMemcpyAtoA");
}

/// The host waits for all work of the three contexts and for the copy, which is stronger than "serialized with respect
/// to all pending and future asynchronous work".
EMULATED_STREAM_CONTEXT_API(cuMemcpyPeer, 4000, CUdeviceptr to, CUcontext to_context, CUdeviceptr from,
                            CUcontext from_context, std::size_t bytes) {
    check(state_of(find_context(to_context)));
    check(state_of(find_context(from_context)));
    unsafe_now("cuMemcpyPeer");
    for (Context* context : {find_context(to_context), find_context(from_context), current_context()})
        context->graph.synchronize_all();
    copy_rows(peer_copy(to, from, bytes), nullptr, Wait::no, "cuMemcpyPeer");
    current_context()->graph.synchronize_all();
    check(current_context()->take_error());
}

/// The addresses determine the devices; the contexts only need to exist.
EMULATED_STREAM_CONTEXT_API(cuMemcpyPeerAsync, 4000, CUdeviceptr to, CUcontext to_context, CUdeviceptr from,
                            CUcontext from_context, std::size_t bytes, CUstream stream) {
    check(state_of(find_context(to_context)));
    check(state_of(find_context(from_context)));
    return copy_rows(peer_copy(to, from, bytes), stream, Wait::no, "cuMemcpyPeerAsync");
}

/// Copies that a structure describes: one that waits and one that takes a stream.
#define EMULATED_DESCRIBED_COPIES(kind, version, Copy, copy)                                  \
    EMULATED_STREAM_API(cuMemcpy##kind, version, const Copy* given) {                         \
        return copy(given, nullptr, Wait::yes, "cuMemcpy" #kind);                             \
    }                                                                                         \
    EMULATED_STREAM_API(cuMemcpy##kind##Async, version, const Copy* given, CUstream stream) { \
        return copy(given, stream, Wait::no, "cuMemcpy" #kind "Async");                       \
    }
EMULATED_DESCRIBED_COPIES(2D, 3020, CUDA_MEMCPY2D, copy_2d)
EMULATED_DESCRIBED_COPIES(3D, 3020, CUDA_MEMCPY3D, copy_3d)
EMULATED_DESCRIBED_COPIES(3DPeer, 4000, CUDA_MEMCPY3D_PEER, copy_3d_peer)

EMULATED_STREAM_API(cuMemcpy2DUnaligned, 3020, const CUDA_MEMCPY2D* given) {
    return copy_2d(given, nullptr, Wait::yes, "cuMemcpy2DUnaligned");
}

/// Fills of one row or of several: one that waits and one that takes a stream. `pitch` and `height` are parameters in `...`
/// or constants for one row.
#define EMULATED_FILL(kind, pitch, height, stream, wait, ...)                                          \
    EMULATED_STREAM_CONTEXT_API(cuMemsetD##kind, 3020, CUdeviceptr at, __VA_ARGS__) {                  \
        return fill_rows({at, pitch, value, sizeof value, width, height, nullptr}, stream, Wait::wait, \
                         "cuMemsetD" #kind);                                                           \
    }
#define EMULATED_FILLS(bits, Value)                                                                         \
    EMULATED_FILL(bits, 0, 1, nullptr, yes, Value value, std::size_t width)                                 \
    EMULATED_FILL(bits##Async, 0, 1, stream, no, Value value, std::size_t width, CUstream stream)           \
    EMULATED_FILL(2D##bits, pitch, height, nullptr, yes, std::size_t pitch, Value value, std::size_t width, \
                  std::size_t height)                                                                       \
    EMULATED_FILL(2D##bits##Async, pitch, height, stream, no, std::size_t pitch, Value value,               \
                  std::size_t width, std::size_t height, CUstream stream)
EMULATED_FILLS(8, unsigned char)
EMULATED_FILLS(16, unsigned short)
EMULATED_FILLS(32, unsigned int)

}  // namespace emulated::driver
