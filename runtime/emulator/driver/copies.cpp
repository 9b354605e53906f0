// Copies and fills, in stream order. Memory that is neither pinned nor the device's is read or written before
// the call returns.
#include <algorithm>
#include <cstring>
#include <vector>

#include <fmt/format.h>

#include "driver/call.hpp"

using emulated::driver::Process;
using emulated::driver::StreamTarget;
using emulated::streams::Policy;

namespace {

/// One end of a copy.
struct End {
    std::byte* bytes = nullptr;  ///< in this process; null when part of the range is no memory
    bool pageable = false;       ///< ordinary host memory
    CUdeviceptr address = 0;
};

End device_end(CUdeviceptr address, std::size_t bytes) {
    return {Process::get().heap().host(address, bytes), false, address};
}

End host_end(const void* host, std::size_t bytes) {
    const auto address = reinterpret_cast<CUdeviceptr>(host);
    if (Process::get().heap().find(address) != nullptr) return device_end(address, bytes);
    if (Process::get().heap().is_device_address(address)) return {nullptr, false, address};
    return {static_cast<std::byte*>(const_cast<void*>(host)), host != nullptr, address};
}

/// A pointer of either kind: the heap says which.
End any_end(CUdeviceptr address, std::size_t bytes) {
    return host_end(reinterpret_cast<const void*>(address), bytes);
}

/// Says in the report which range is no memory.
CUresult refuse(const char* name, const char* role, CUdeviceptr address, std::size_t bytes) {
    Process::get().set_report(fmt::format("{}: the {} is {} bytes at {:#x}, {}", name, role, bytes, address,
                                          Process::get().heap().describe(address, bytes)));
    return CUDA_ERROR_INVALID_VALUE;
}

enum class Wait : bool { no, yes };

CUresult copy(End to, End from, std::size_t bytes, CUstream handle, Wait wait, const char* name) {
    const StreamTarget target(handle);
    EMULATED_CHECK(target.state);
    if (bytes == 0) return CUDA_SUCCESS;
    if (to.bytes == nullptr) return refuse(name, "destination", to.address, bytes);
    if (from.bytes == nullptr) return refuse(name, "source", from.address, bytes);
    emulated::driver::trace(BASCULE_EMULATED_COPY, handle, nullptr, bytes, name);
    auto& context = *target.context;
    auto& stream = *target.stream;
    const auto failed = [&context] { return context.error.load() != CUDA_SUCCESS; };
    if (from.pageable && wait == Wait::no && Process::get().scheduler().policy() != Policy::eager) {
        std::vector<std::byte> staged(from.bytes, from.bytes + bytes);  // the caller may change it at once
        context.graph.submit(stream, [failed, to, staged = std::move(staged)] {
            if (!failed()) std::memmove(to.bytes, staged.data(), staged.size());
        });
    } else {
        context.graph.submit(stream, [failed, to, from, bytes] {
            if (!failed()) std::memmove(to.bytes, from.bytes, bytes);
        });
    }
    // Memory that the driver has not pinned is complete when the call returns.
    if (!to.pageable && wait == Wait::no) return CUDA_SUCCESS;
    context.graph.synchronize(stream);
    return context.error.load();
}

template <class Value>
CUresult fill(CUdeviceptr address, Value value, std::size_t count, CUstream handle, const char* name) {
    const StreamTarget target(handle);
    EMULATED_CHECK(target.state);
    const std::size_t bytes = count * sizeof(Value);
    if (bytes == 0) return CUDA_SUCCESS;
    EMULATED_REQUIRE(address % sizeof(Value) == 0, CUDA_ERROR_INVALID_VALUE);
    std::byte* to = Process::get().heap().host(address, bytes);
    if (to == nullptr) return refuse(name, "destination", address, bytes);
    emulated::driver::trace(BASCULE_EMULATED_FILL, handle, nullptr, bytes, name);
    auto& context = *target.context;
    context.graph.submit(*target.stream, [&context, to, value, count] {
        if (context.error.load() != CUDA_SUCCESS) return;
        if constexpr (sizeof value == 1) {
            std::memset(to, value, count);
        } else {
            std::fill_n(reinterpret_cast<Value*>(to), count, value);
        }
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

/// Addresses tell the devices: the contexts need not.
EMULATED_API cuMemcpyPeer(CUdeviceptr to, CUcontext, CUdeviceptr from, CUcontext, std::size_t bytes) {
    EMULATED_COUNT("cuMemcpyPeer");
    EMULATED_NEEDS_CONTEXT();
    return copy(device_end(to, bytes), device_end(from, bytes), bytes, nullptr, Wait::no, "cuMemcpyPeer");
}

EMULATED_API cuMemcpyPeerAsync(CUdeviceptr to, CUcontext, CUdeviceptr from, CUcontext, std::size_t bytes,
                               CUstream stream) {
    EMULATED_COUNT("cuMemcpyPeerAsync");
    EMULATED_NEEDS_CONTEXT();
    return copy(device_end(to, bytes), device_end(from, bytes), bytes, stream, Wait::no, "cuMemcpyPeerAsync");
}

EMULATED_API cuMemsetD8(CUdeviceptr address, unsigned char value, std::size_t count) {
    EMULATED_COUNT("cuMemsetD8");
    EMULATED_NEEDS_CONTEXT();
    return fill(address, value, count, nullptr, "cuMemsetD8");
}

EMULATED_API cuMemsetD16(CUdeviceptr address, unsigned short value, std::size_t count) {
    EMULATED_COUNT("cuMemsetD16");
    EMULATED_NEEDS_CONTEXT();
    return fill(address, value, count, nullptr, "cuMemsetD16");
}

EMULATED_API cuMemsetD32(CUdeviceptr address, unsigned int value, std::size_t count) {
    EMULATED_COUNT("cuMemsetD32");
    EMULATED_NEEDS_CONTEXT();
    return fill(address, value, count, nullptr, "cuMemsetD32");
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
