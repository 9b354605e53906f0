// What an error of the driver says beside the driver's own words: the report in the user's own lines, and the
// launch that caused it.
#pragma once

namespace bascule {

/// From now on every CudaError has these details. Called before there is code that could fail on a device. Thread-safe.
void describe_failures() noexcept;

}  // namespace bascule
