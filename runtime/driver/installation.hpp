// What this program runs on, for people: the device, the driver, NVRTC and the CUDA headers.
#pragma once

#include <string>

namespace bascule {

/// Four lines that begin with `device`, `driver`, `nvrtc` and `headers` and say which was found where, or why none was
/// and what to do. For logs and bug reports: programs ask Device, and catch errors. Opens the driver and NVRTC if
/// nothing has, and makes no context. Thread-safe; throws nothing but std::bad_alloc.
std::string describe_installation();

}  // namespace bascule
