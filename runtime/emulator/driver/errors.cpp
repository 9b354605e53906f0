// cuGetErrorName and cuGetErrorString: one row per code.
#include <array>

#include "driver/call.hpp"

namespace emulated::driver {
namespace {

struct Row {
    CUresult code;
    const char* name;
    const char* text;
};

#define ROW(code, text) \
    Row { code, #code, text }

constexpr std::array rows = {
    ROW(CUDA_SUCCESS, "no error"),
    ROW(CUDA_ERROR_INVALID_VALUE, "invalid argument"),
    ROW(CUDA_ERROR_OUT_OF_MEMORY, "out of memory"),
    ROW(CUDA_ERROR_NOT_INITIALIZED, "cuInit was not called"),
    ROW(CUDA_ERROR_DEINITIALIZED, "the driver is shutting down"),
    ROW(CUDA_ERROR_STUB_LIBRARY, "the emulated device has no CUDA runtime tables"),
    ROW(CUDA_ERROR_NO_DEVICE, "no device"),
    ROW(CUDA_ERROR_DEVICE_UNAVAILABLE, "another process has the device for itself"),
    ROW(CUDA_ERROR_INVALID_DEVICE, "invalid device ordinal"),
    ROW(CUDA_ERROR_INVALID_IMAGE, "invalid device image"),
    ROW(CUDA_ERROR_INVALID_CONTEXT, "invalid or missing context"),
    ROW(CUDA_ERROR_NO_BINARY_FOR_GPU, "no PTX for the emulated device"),
    ROW(CUDA_ERROR_ECC_UNCORRECTABLE, "an uncorrectable memory error"),
    ROW(CUDA_ERROR_PEER_ACCESS_UNSUPPORTED, "no peer access between these devices"),
    ROW(CUDA_ERROR_INVALID_PTX, "the PTX has an error"),
    ROW(CUDA_ERROR_NVLINK_UNCORRECTABLE, "an uncorrectable NVLink error"),
    ROW(CUDA_ERROR_JIT_COMPILER_NOT_FOUND, "the driver's PTX compiler was not found"),
    ROW(CUDA_ERROR_UNSUPPORTED_PTX_VERSION, "the PTX is of a newer CUDA version than the driver"),
    ROW(CUDA_ERROR_JIT_COMPILATION_DISABLED, "compiling PTX is disabled"),
    ROW(CUDA_ERROR_CONTAINED, "an error that the device has contained"),
    // Missing in older <cuda.h> headers.
    Row{static_cast<CUresult>(227), "CUDA_ERROR_INSUFFICIENT_LOADER_VERSION",
        "the code is of a newer CUDA version than the driver"},
    ROW(CUDA_ERROR_INVALID_SOURCE, "invalid source"),
    ROW(CUDA_ERROR_FILE_NOT_FOUND, "file not found"),
    ROW(CUDA_ERROR_INVALID_HANDLE, "invalid handle"),
    ROW(CUDA_ERROR_ILLEGAL_STATE, "illegal state"),
    ROW(CUDA_ERROR_NOT_FOUND, "name not found"),
    ROW(CUDA_ERROR_NOT_READY, "not finished yet"),
    ROW(CUDA_ERROR_ILLEGAL_ADDRESS, "a kernel used an illegal address"),
    ROW(CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES, "the launch needs more than a multiprocessor has"),
    ROW(CUDA_ERROR_LAUNCH_TIMEOUT, "a kernel ran for too long, or was interrupted"),
    ROW(CUDA_ERROR_CONTEXT_IS_DESTROYED, "the context is destroyed"),
    ROW(CUDA_ERROR_ASSERT, "an assertion failed in a kernel"),
    ROW(CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED, "the peer access is enabled already"),
    ROW(CUDA_ERROR_PEER_ACCESS_NOT_ENABLED, "the peer access is not enabled"),
    ROW(CUDA_ERROR_TOO_MANY_PEERS, "the context has as many peers as it can"),
    ROW(CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED, "the host memory is registered already"),
    ROW(CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED, "the host memory is not registered"),
    ROW(CUDA_ERROR_ILLEGAL_INSTRUCTION, "a kernel met an illegal instruction"),
    ROW(CUDA_ERROR_MISALIGNED_ADDRESS, "a kernel used a misaligned address"),
    ROW(CUDA_ERROR_INVALID_ADDRESS_SPACE, "a kernel used an address of another space"),
    ROW(CUDA_ERROR_HARDWARE_STACK_ERROR, "a kernel's stack overflowed"),
    ROW(CUDA_ERROR_INVALID_PC, "a kernel jumped to an invalid place"),
    ROW(CUDA_ERROR_LAUNCH_FAILED, "a kernel failed"),
    ROW(CUDA_ERROR_TENSOR_MEMORY_LEAK, "a kernel left tensor memory allocated"),
    ROW(CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE, "too many blocks for a cooperative launch"),
    ROW(CUDA_ERROR_NOT_PERMITTED, "not permitted"),
    ROW(CUDA_ERROR_NOT_SUPPORTED, "not supported by the emulated device"),
    ROW(CUDA_ERROR_MPS_CLIENT_TERMINATED, "the MPS server has ended this client"),
    ROW(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, "not while a stream is being captured"),
    ROW(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, "an earlier error has invalidated the capture"),
    ROW(CUDA_ERROR_STREAM_CAPTURE_MERGE, "two captures would become one"),
    ROW(CUDA_ERROR_STREAM_CAPTURE_UNMATCHED, "the capture began on another stream"),
    ROW(CUDA_ERROR_STREAM_CAPTURE_UNJOINED, "a stream of the capture was not waited for before its end"),
    ROW(CUDA_ERROR_STREAM_CAPTURE_ISOLATION, "what is captured would depend on what is not"),
    ROW(CUDA_ERROR_STREAM_CAPTURE_IMPLICIT, "the legacy default stream would depend on a capture"),
    ROW(CUDA_ERROR_CAPTURED_EVENT, "the event marks what was captured, not what runs"),
    ROW(CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD, "another thread began the capture"),
    ROW(CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE, "the graph differs too much from the executable one"),
    ROW(CUDA_ERROR_EXTERNAL_DEVICE, "an error of an external device"),
    ROW(CUDA_ERROR_INVALID_CLUSTER_SIZE, "the clusters do not fit the grid, the kernel or the device"),
    ROW(CUDA_ERROR_UNKNOWN, "unknown error"),
};

void look_up(CUresult code, const char** out, const char* Row::*member) {
    require(out != nullptr);
    const Row* row = find_row(rows, &Row::code, code);
    *out = row == nullptr ? nullptr : row->*member;
    require(row != nullptr);
}

}  // namespace

EMULATED_API(cuGetErrorName, 6000, CUresult error, const char** name) {
    return look_up(error, name, &Row::name);
}

EMULATED_API(cuGetErrorString, 6000, CUresult error, const char** text) {
    return look_up(error, text, &Row::text);
}

}  // namespace emulated::driver
