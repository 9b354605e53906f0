// What a CudaError says beside the driver's description: the report with the user's source lines, and the launch
// that caused it.
#pragma once

#include <string>

#include <bascule/interface/arguments/signature.hpp>
#include <bascule/jit/text/source.hpp>

namespace bascule {

/// Remembers where a text came from, for the lines that reports name; the newest place of equal texts counts. Bounded:
/// the oldest are forgotten. Thread-safe.
void remember_place(const Source& source, const CompileOptions& options = {});

/// A report of the emulated device with "line 2 of /bascule/<hash>.cu" replaced by the user's line, its file and its text.
/// Thread-safe.
std::string with_user_places(std::string report);

/// Remembers that the argument `index` of the calling thread's next launch, of this kernel, was None: the error of an illegal
/// address in that launch says so. Thread-safe.
void note_null_argument(const Signature& signature, int index);

/// From now on every CudaError has these details. Called when the first module is made. Thread-safe.
void describe_failures() noexcept;

}  // namespace bascule
