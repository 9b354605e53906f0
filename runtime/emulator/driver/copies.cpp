// Copies and fills, in stream order. Memory that is neither pinned nor the device's is read or written before
// the call returns.
#include <cstring>
#include <vector>

#include "driver/call.hpp"

using emulated::driver::Context;
using emulated::driver::context_of;
using emulated::driver::find_stream;
using emulated::driver::Process;
using emulated::memory::Allocation;

namespace {

/// One end of a copy.
struct End {
    std::byte* bytes = nullptr;  ///< in this process; null when part of the range is no memory
    bool pageable = false;       ///< ordinary host memory
};

End device_end(CUdeviceptr address, std::size_t bytes) {
    return {Process::get().heap().host(address, bytes), false};
}

End host_end(const void* host, std::size_t bytes) {
    const auto address = reinterpret_cast<CUdeviceptr>(host);
    const bool known = Process::get().heap().find(address) != nullptr;
    if (known) return device_end(address, bytes);
    return {static_cast<std::byte*>(const_cast<void*>(host)), true};
}

/// A pointer of either kind: the heap says which.
End any_end(CUdeviceptr address, std::size_t bytes) {
    return host_end(reinterpret_cast<const void*>(address), bytes);
}

enum class Wait : bool { no, yes };

CUresult copy(End to, End from, std::size_t bytes, CUstream handle, Wait wait, const char* name) {
    if (bytes == 0) return CUDA_SUCCESS;
    if (to.bytes == nullptr || from.bytes == nullptr) return CUDA_ERROR_INVALID_VALUE;
    Context* context = context_of(handle);
    if (context == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    auto* stream = find_stream(*context, handle);
    if (stream == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    emulated::driver::trace(BASCULE_EMULATED_COPY, handle, nullptr, bytes, name);
    if (from.pageable && wait == Wait::no) {
        std::vector<std::byte> staged(from.bytes, from.bytes + bytes);  // the caller may change it at once
        context->graph.submit(*stream, [to, staged = std::move(staged)] {
            std::memmove(to.bytes, staged.data(), staged.size());
        });
    } else {
        context->graph.submit(*stream, [to, from, bytes] { std::memmove(to.bytes, from.bytes, bytes); });
    }
    if (to.pageable || wait == Wait::yes) context->graph.synchronize(*stream);
    return context->error.load();
}

template <class Value>
CUresult fill(CUdeviceptr address, Value value, std::size_t count, CUstream handle, const char* name) {
    const std::size_t bytes = count * sizeof(Value);
    if (bytes == 0) return CUDA_SUCCESS;
    std::byte* to = Process::get().heap().host(address, bytes);
    if (to == nullptr || address % sizeof(Value) != 0) return CUDA_ERROR_INVALID_VALUE;
    Context* context = context_of(handle);
    auto* stream = context == nullptr ? nullptr : find_stream(*context, handle);
    if (stream == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    emulated::driver::trace(BASCULE_EMULATED_FILL, handle, nullptr, bytes, name);
    context->graph.submit(*stream, [to, value, count] {
        for (std::size_t i = 0; i < count; ++i) std::memcpy(to + i * sizeof value, &value, sizeof value);
    });
    return CUDA_SUCCESS;
}

}  // namespace

EMULATED_API cuMemcpy(CUdeviceptr to, CUdeviceptr from, std::size_t bytes) {
    EMULATED_COUNT("cuMemcpy");
    EMULATED_NEEDS_CONTEXT();
    return copy(any_end(to, bytes), any_end(from, bytes), bytes, nullptr, Wait::yes, "cuMemcpy");
}

EMULATED_API cuMemcpyAsync(CUdeviceptr to, CUdeviceptr from, std::size_t bytes, CUstream stream) {
    EMULATED_COUNT("cuMemcpyAsync");
    EMULATED_NEEDS_CONTEXT();
    return copy(any_end(to, bytes), any_end(from, bytes), bytes, stream, Wait::no, "cuMemcpyAsync");
}

EMULATED_API cuMemcpyHtoD(CUdeviceptr to, const void* from, std::size_t bytes) {
    EMULATED_COUNT("cuMemcpyHtoD");
    EMULATED_NEEDS_CONTEXT();
    return copy(device_end(to, bytes), host_end(from, bytes), bytes, nullptr, Wait::yes, "cuMemcpyHtoD");
}

EMULATED_API cuMemcpyHtoDAsync(CUdeviceptr to, const void* from, std::size_t bytes, CUstream stream) {
    EMULATED_COUNT("cuMemcpyHtoDAsync");
    EMULATED_NEEDS_CONTEXT();
    return copy(device_end(to, bytes), host_end(from, bytes), bytes, stream, Wait::no, "cuMemcpyHtoDAsync");
}

EMULATED_API cuMemcpyDtoH(void* to, CUdeviceptr from, std::size_t bytes) {
    EMULATED_COUNT("cuMemcpyDtoH");
    EMULATED_NEEDS_CONTEXT();
    return copy(host_end(to, bytes), device_end(from, bytes), bytes, nullptr, Wait::yes, "cuMemcpyDtoH");
}

EMULATED_API cuMemcpyDtoHAsync(void* to, CUdeviceptr from, std::size_t bytes, CUstream stream) {
    EMULATED_COUNT("cuMemcpyDtoHAsync");
    EMULATED_NEEDS_CONTEXT();
    return copy(host_end(to, bytes), device_end(from, bytes), bytes, stream, Wait::no, "cuMemcpyDtoHAsync");
}

EMULATED_API cuMemcpyDtoD(CUdeviceptr to, CUdeviceptr from, std::size_t bytes) {
    EMULATED_COUNT("cuMemcpyDtoD");
    EMULATED_NEEDS_CONTEXT();
    return copy(device_end(to, bytes), device_end(from, bytes), bytes, nullptr, Wait::no, "cuMemcpyDtoD");
}

EMULATED_API cuMemcpyDtoDAsync(CUdeviceptr to, CUdeviceptr from, std::size_t bytes, CUstream stream) {
    EMULATED_COUNT("cuMemcpyDtoDAsync");
    EMULATED_NEEDS_CONTEXT();
    return copy(device_end(to, bytes), device_end(from, bytes), bytes, stream, Wait::no, "cuMemcpyDtoDAsync");
}

EMULATED_API cuMemsetD8(CUdeviceptr address, unsigned char value, std::size_t count) {
    EMULATED_COUNT("cuMemsetD8");
    EMULATED_NEEDS_CONTEXT();
    return fill(address, value, count, nullptr, "cuMemsetD8");
}

EMULATED_API cuMemsetD8Async(CUdeviceptr address, unsigned char value, std::size_t count, CUstream stream) {
    EMULATED_COUNT("cuMemsetD8Async");
    EMULATED_NEEDS_CONTEXT();
    return fill(address, value, count, stream, "cuMemsetD8Async");
}

EMULATED_API cuMemsetD16Async(CUdeviceptr address, unsigned short value, std::size_t count, CUstream stream) {
    EMULATED_COUNT("cuMemsetD16Async");
    EMULATED_NEEDS_CONTEXT();
    return fill(address, value, count, stream, "cuMemsetD16Async");
}

EMULATED_API cuMemsetD32Async(CUdeviceptr address, unsigned int value, std::size_t count, CUstream stream) {
    EMULATED_COUNT("cuMemsetD32Async");
    EMULATED_NEEDS_CONTEXT();
    return fill(address, value, count, stream, "cuMemsetD32Async");
}
