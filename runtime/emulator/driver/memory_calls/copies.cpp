// The copy functions: which ends they have, and whether the host waits.
#include <initializer_list>

#include <fmt/format.h>

#include "driver/capture.hpp"
#include "driver/memory_calls/transfers.hpp"

namespace emulated::driver {
namespace {

CopyEnd device(CUdeviceptr address) { return {Side::device, {address, 0}}; }
CopyEnd unified(CUdeviceptr address) { return {Side::unified, {address, 0}}; }
CopyEnd host(const void* address) {
    return {Side::host, {static_cast<CUdeviceptr>(reinterpret_cast<std::uintptr_t>(address)), 0}};
}

/// One side of a CUDA_MEMCPY2D.
struct Side2D {
    CUmemorytype type;
    const void* host;
    CUdeviceptr device;
    std::size_t x, y, pitch;
};

/// False where the row that is asked for does not lie within the pitch, or the kind of memory is unknown.
bool to_end(CopyEnd& end, const Side2D& side, std::size_t width) {
    const std::size_t pitch = side.pitch == 0 ? side.x + width : side.pitch;
    if (side.x > pitch || width > pitch - side.x || pitch > 2147483647) return false;
    if (side.type == CU_MEMORYTYPE_HOST) {
        end = host(side.host);
    } else if (side.type == CU_MEMORYTYPE_DEVICE) {
        end = device(side.device);
    } else if (side.type == CU_MEMORYTYPE_UNIFIED) {
        end = unified(side.device);
    } else {
        return false;
    }
    end.rows.address += side.y * pitch + side.x;
    end.rows.pitch = pitch;
    return true;
}

CUresult copy_2d(const CUDA_MEMCPY2D* copy, CUstream stream, Wait wait, const char* name) {
    EMULATED_CHECK(ready());
    EMULATED_REQUIRE(copy != nullptr, CUDA_ERROR_INVALID_VALUE);
    if (copy->srcMemoryType == CU_MEMORYTYPE_ARRAY || copy->dstMemoryType == CU_MEMORYTYPE_ARRAY) {
        Process::get().set_report(fmt::format("{}: the emulated device has no CUDA arrays", name));
        return CUDA_ERROR_NOT_SUPPORTED;
    }
    CopyEnd to;
    CopyEnd from;
    const bool fits = to_end(to,
                             {copy->dstMemoryType, copy->dstHost, copy->dstDevice, copy->dstXInBytes,
                              copy->dstY, copy->dstPitch},
                             copy->WidthInBytes) &&
                      to_end(from,
                             {copy->srcMemoryType, copy->srcHost, copy->srcDevice, copy->srcXInBytes,
                              copy->srcY, copy->srcPitch},
                             copy->WidthInBytes);
    EMULATED_REQUIRE(fits, CUDA_ERROR_INVALID_VALUE);
    return copy_rows(to, from, {copy->WidthInBytes, copy->Height}, stream, wait, name);
}

/// Alive, or why not.
CUresult state_of(CUcontext handle) {
    const Context* context = find_context(handle);
    if (context == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
    return context->alive ? CUDA_SUCCESS : CUDA_ERROR_CONTEXT_IS_DESTROYED;
}

}  // namespace

/// Those of one kind: with a wait, where its documentation has one, and in a stream.
#define EMULATED_COPIES(kind, version, To, to_end, From, from_end, wait)                                   \
    EMULATED_STREAM_CONTEXT_API(cuMemcpy##kind, version, To to, From from, std::size_t bytes) {            \
        return copy_rows(to_end(to), from_end(from), {bytes}, nullptr, wait, "cuMemcpy" #kind);            \
    }                                                                                                      \
    EMULATED_STREAM_CONTEXT_API(cuMemcpy##kind##Async, version, To to, From from, std::size_t bytes,       \
                                CUstream stream) {                                                         \
        return copy_rows(to_end(to), from_end(from), {bytes}, stream, Wait::no, "cuMemcpy" #kind "Async"); \
    }
EMULATED_COPIES(, 4000, CUdeviceptr, unified, CUdeviceptr, unified, Wait::yes)
EMULATED_COPIES(HtoD, 3020, CUdeviceptr, device, const void*, host, Wait::yes)
EMULATED_COPIES(DtoH, 3020, void*, host, CUdeviceptr, device, Wait::yes)
EMULATED_COPIES(DtoD, 3020, CUdeviceptr, device, CUdeviceptr, device, Wait::no)

/// "Serialized with respect to all pending and future asynchronous work" of three contexts: the host waits,
/// which is more than that asks for.
EMULATED_STREAM_CONTEXT_API(cuMemcpyPeer, 4000, CUdeviceptr to, CUcontext to_context, CUdeviceptr from,
                            CUcontext from_context, std::size_t bytes) {
    EMULATED_CHECK(state_of(to_context));
    EMULATED_CHECK(state_of(from_context));
    EMULATED_CHECK(unsafe_now("cuMemcpyPeer"));
    for (Context* context : {find_context(to_context), find_context(from_context), current_context()})
        context->graph.synchronize_all();
    EMULATED_CHECK(copy_rows(device(to), device(from), {bytes}, nullptr, Wait::no, "cuMemcpyPeer"));
    current_context()->graph.synchronize_all();
    return current_context()->take_error();
}

/// Addresses tell the devices: the contexts need only be there.
EMULATED_STREAM_CONTEXT_API(cuMemcpyPeerAsync, 4000, CUdeviceptr to, CUcontext to_context, CUdeviceptr from,
                            CUcontext from_context, std::size_t bytes, CUstream stream) {
    EMULATED_CHECK(state_of(to_context));
    EMULATED_CHECK(state_of(from_context));
    return copy_rows(device(to), device(from), {bytes}, stream, Wait::no, "cuMemcpyPeerAsync");
}

EMULATED_STREAM_API(cuMemcpy2D, 3020, const CUDA_MEMCPY2D* copy) {
    return copy_2d(copy, nullptr, Wait::yes, "cuMemcpy2D");
}

EMULATED_STREAM_API(cuMemcpy2DUnaligned, 3020, const CUDA_MEMCPY2D* copy) {
    return copy_2d(copy, nullptr, Wait::yes, "cuMemcpy2DUnaligned");
}

EMULATED_STREAM_API(cuMemcpy2DAsync, 3020, const CUDA_MEMCPY2D* copy, CUstream stream) {
    return copy_2d(copy, stream, Wait::no, "cuMemcpy2DAsync");
}

}  // namespace emulated::driver
