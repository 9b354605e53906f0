// The fill functions, by element size.
#include "driver/call.hpp"
#include "driver/memory_calls/row_transfers.hpp"

namespace emulated::driver {

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
