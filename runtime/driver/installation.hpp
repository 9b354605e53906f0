// Describes what this program runs on: the device, the driver, NVRTC and the CUDA headers.
#pragma once

#include <string>

namespace bascule {

/// Returns four lines that begin with `device`, `driver`, `nvrtc` and `headers`. Each names what
/// was found and its path, or says why it is missing and how to fix that. For logs and bug reports: programs query
/// Device and catch errors. Opens the driver and NVRTC if they are not open, and makes no context. Thread-safe; throws
/// nothing but std::bad_alloc.
std::string describe_installation();

}  // namespace bascule
