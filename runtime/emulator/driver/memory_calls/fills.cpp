// The fill functions, by element size.
#include "driver/call.hpp"
#include "driver/memory_calls/transfers.hpp"

using emulated::driver::fill_rows;
using emulated::driver::Wait;

EMULATED_API(cuMemsetD8, CUdeviceptr address, unsigned char value, std::size_t count) {
    EMULATED_NEEDS_CONTEXT();
    return fill_rows({address, 0}, value, sizeof value, count, 1, nullptr, Wait::yes, "cuMemsetD8");
}

EMULATED_API(cuMemsetD8Async, CUdeviceptr address, unsigned char value, std::size_t count, CUstream stream) {
    EMULATED_NEEDS_CONTEXT();
    return fill_rows({address, 0}, value, sizeof value, count, 1, stream, Wait::no, "cuMemsetD8Async");
}

EMULATED_API(cuMemsetD2D8, CUdeviceptr address, std::size_t pitch, unsigned char value, std::size_t width,
             std::size_t height) {
    EMULATED_NEEDS_CONTEXT();
    return fill_rows({address, pitch}, value, sizeof value, width, height, nullptr, Wait::yes,
                     "cuMemsetD2D8");
}

EMULATED_API(cuMemsetD2D8Async, CUdeviceptr address, std::size_t pitch, unsigned char value,
             std::size_t width, std::size_t height, CUstream stream) {
    EMULATED_NEEDS_CONTEXT();
    return fill_rows({address, pitch}, value, sizeof value, width, height, stream, Wait::no,
                     "cuMemsetD2D8Async");
}

EMULATED_API(cuMemsetD16, CUdeviceptr address, unsigned short value, std::size_t count) {
    EMULATED_NEEDS_CONTEXT();
    return fill_rows({address, 0}, value, sizeof value, count, 1, nullptr, Wait::yes, "cuMemsetD16");
}

EMULATED_API(cuMemsetD16Async, CUdeviceptr address, unsigned short value, std::size_t count,
             CUstream stream) {
    EMULATED_NEEDS_CONTEXT();
    return fill_rows({address, 0}, value, sizeof value, count, 1, stream, Wait::no, "cuMemsetD16Async");
}

EMULATED_API(cuMemsetD2D16, CUdeviceptr address, std::size_t pitch, unsigned short value, std::size_t width,
             std::size_t height) {
    EMULATED_NEEDS_CONTEXT();
    return fill_rows({address, pitch}, value, sizeof value, width, height, nullptr, Wait::yes,
                     "cuMemsetD2D16");
}

EMULATED_API(cuMemsetD2D16Async, CUdeviceptr address, std::size_t pitch, unsigned short value,
             std::size_t width, std::size_t height, CUstream stream) {
    EMULATED_NEEDS_CONTEXT();
    return fill_rows({address, pitch}, value, sizeof value, width, height, stream, Wait::no,
                     "cuMemsetD2D16Async");
}

EMULATED_API(cuMemsetD32, CUdeviceptr address, unsigned int value, std::size_t count) {
    EMULATED_NEEDS_CONTEXT();
    return fill_rows({address, 0}, value, sizeof value, count, 1, nullptr, Wait::yes, "cuMemsetD32");
}

EMULATED_API(cuMemsetD32Async, CUdeviceptr address, unsigned int value, std::size_t count, CUstream stream) {
    EMULATED_NEEDS_CONTEXT();
    return fill_rows({address, 0}, value, sizeof value, count, 1, stream, Wait::no, "cuMemsetD32Async");
}

EMULATED_API(cuMemsetD2D32, CUdeviceptr address, std::size_t pitch, unsigned int value, std::size_t width,
             std::size_t height) {
    EMULATED_NEEDS_CONTEXT();
    return fill_rows({address, pitch}, value, sizeof value, width, height, nullptr, Wait::yes,
                     "cuMemsetD2D32");
}

EMULATED_API(cuMemsetD2D32Async, CUdeviceptr address, std::size_t pitch, unsigned int value,
             std::size_t width, std::size_t height, CUstream stream) {
    EMULATED_NEEDS_CONTEXT();
    return fill_rows({address, pitch}, value, sizeof value, width, height, stream, Wait::no,
                     "cuMemsetD2D32Async");
}
