// What a CudaError says beside the driver's description: the report with the user's source lines, and the launch
// that caused it.
#pragma once

#include <bascule/jit/text/source.hpp>

namespace bascule {

/// Remembers where a text came from, for the lines that reports name; the newest place of equal texts counts. Bounded:
/// the oldest are forgotten. Thread-safe.
void remember_place(const Source& source, const CompileOptions& options = {});

/// From now on every CudaError has these details. Called when the first module is made. Thread-safe.
void describe_failures() noexcept;

}  // namespace bascule
