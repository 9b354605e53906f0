// The fill functions, by element size.
#include "driver/call.hpp"
#include "driver/memory_calls/transfers.hpp"

namespace emulated::driver {

/// Those of one element size: of one row and of several, each with and without a wait.
#define EMULATED_FILLS(bits, Value)                                                                       \
    EMULATED_STREAM_CONTEXT_API(cuMemsetD##bits, 3020, CUdeviceptr at, Value value, std::size_t count) {  \
        return fill_rows({at, 0}, value, sizeof value, count, 1, nullptr, Wait::yes, "cuMemsetD" #bits);  \
    }                                                                                                     \
    EMULATED_STREAM_CONTEXT_API(cuMemsetD##bits##Async, 3020, CUdeviceptr at, Value value,                \
                                std::size_t count, CUstream s) {                                          \
        return fill_rows({at, 0}, value, sizeof value, count, 1, s, Wait::no, "cuMemsetD" #bits "Async"); \
    }                                                                                                     \
    EMULATED_STREAM_CONTEXT_API(cuMemsetD2D##bits, 3020, CUdeviceptr at, std::size_t pitch, Value value,  \
                                std::size_t width, std::size_t height) {                                  \
        return fill_rows({at, pitch}, value, sizeof value, width, height, nullptr, Wait::yes,             \
                         "cuMemsetD2D" #bits);                                                            \
    }                                                                                                     \
    EMULATED_STREAM_CONTEXT_API(cuMemsetD2D##bits##Async, 3020, CUdeviceptr at, std::size_t pitch,        \
                                Value value, std::size_t width, std::size_t height, CUstream s) {         \
        return fill_rows({at, pitch}, value, sizeof value, width, height, s, Wait::no,                    \
                         "cuMemsetD2D" #bits "Async");                                                    \
    }
EMULATED_FILLS(8, unsigned char)
EMULATED_FILLS(16, unsigned short)
EMULATED_FILLS(32, unsigned int)

}  // namespace emulated::driver
