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

EMULATED_CONTEXT_API(cuMemcpy, CUdeviceptr to, CUdeviceptr from, std::size_t bytes) {
    return copy_rows(unified(to), unified(from), {bytes}, nullptr, Wait::yes, "cuMemcpy");
}

EMULATED_CONTEXT_API(cuMemcpyAsync, CUdeviceptr to, CUdeviceptr from, std::size_t bytes, CUstream stream) {
    return copy_rows(unified(to), unified(from), {bytes}, stream, Wait::no, "cuMemcpyAsync");
}

EMULATED_CONTEXT_API(cuMemcpyHtoD, CUdeviceptr to, const void* from, std::size_t bytes) {
    return copy_rows(device(to), host(from), {bytes}, nullptr, Wait::yes, "cuMemcpyHtoD");
}

EMULATED_CONTEXT_API(cuMemcpyHtoDAsync, CUdeviceptr to, const void* from, std::size_t bytes,
                     CUstream stream) {
    return copy_rows(device(to), host(from), {bytes}, stream, Wait::no, "cuMemcpyHtoDAsync");
}

EMULATED_CONTEXT_API(cuMemcpyDtoH, void* to, CUdeviceptr from, std::size_t bytes) {
    return copy_rows(host(to), device(from), {bytes}, nullptr, Wait::yes, "cuMemcpyDtoH");
}

EMULATED_CONTEXT_API(cuMemcpyDtoHAsync, void* to, CUdeviceptr from, std::size_t bytes, CUstream stream) {
    return copy_rows(host(to), device(from), {bytes}, stream, Wait::no, "cuMemcpyDtoHAsync");
}

EMULATED_CONTEXT_API(cuMemcpyDtoD, CUdeviceptr to, CUdeviceptr from, std::size_t bytes) {
    return copy_rows(device(to), device(from), {bytes}, nullptr, Wait::no, "cuMemcpyDtoD");
}

EMULATED_CONTEXT_API(cuMemcpyDtoDAsync, CUdeviceptr to, CUdeviceptr from, std::size_t bytes,
                     CUstream stream) {
    return copy_rows(device(to), device(from), {bytes}, stream, Wait::no, "cuMemcpyDtoDAsync");
}

/// "Serialized with respect to all pending and future asynchronous work" of three contexts: the host waits,
/// which is more than that asks for.
EMULATED_CONTEXT_API(cuMemcpyPeer, CUdeviceptr to, CUcontext to_context, CUdeviceptr from,
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
EMULATED_CONTEXT_API(cuMemcpyPeerAsync, CUdeviceptr to, CUcontext to_context, CUdeviceptr from,
                     CUcontext from_context, std::size_t bytes, CUstream stream) {
    EMULATED_CHECK(state_of(to_context));
    EMULATED_CHECK(state_of(from_context));
    return copy_rows(device(to), device(from), {bytes}, stream, Wait::no, "cuMemcpyPeerAsync");
}

EMULATED_API(cuMemcpy2D, const CUDA_MEMCPY2D* copy) {
    return copy_2d(copy, nullptr, Wait::yes, "cuMemcpy2D");
}

EMULATED_API(cuMemcpy2DUnaligned, const CUDA_MEMCPY2D* copy) {
    return copy_2d(copy, nullptr, Wait::yes, "cuMemcpy2DUnaligned");
}

EMULATED_API(cuMemcpy2DAsync, const CUDA_MEMCPY2D* copy, CUstream stream) {
    return copy_2d(copy, stream, Wait::no, "cuMemcpy2DAsync");
}

}  // namespace emulated::driver
