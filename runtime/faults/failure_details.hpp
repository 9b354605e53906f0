// What a CudaError says beside the driver's description: the report with the user's source lines, and the launch
// that caused it.
#pragma once

namespace bascule {

/// From now on every CudaError has these details. Called when the first module is made. Thread-safe.
void describe_failures() noexcept;

}  // namespace bascule
