// The parts that a CudaError adds to the driver's description: the report with the user's source lines, and the launch
// that caused the error.
#pragma once

#include <optional>
#include <string>

#include <bascule/interface/arguments/signature.hpp>
#include <bascule/interface/errors/finding.hpp>
#include <bascule/jit/program/program.hpp>

namespace bascule {

/// Remembers where a text is in the user's files, for the lines that reports name. For equal texts, the newest place is
/// used. Forgets the oldest beyond a limit. Thread-safe.
void remember_place(const Source& source, const CompileOptions& options = {});

/// The user's text that was compiled under this name; nullopt for other files. Thread-safe.
std::optional<Source> user_source(const std::string& compiled_name);

/// Replaces the compiled text's name and line in a finding by the user's, and adds the text of the line. Thread-safe.
void place_in_user_file(ThreadAction& action);

/// Replaces "line 2 of /bascule/<hash>.cu" in a report of the emulated device by the user's file, line and source text.
/// Thread-safe.
std::string with_user_places(std::string report);

/// Remembers that argument `index` of the calling thread's next launch, of this kernel, was None. The error of an illegal
/// address in that launch then says so. Thread-safe.
void note_null_argument(const Signature& signature, int index);

/// Makes every later CudaError contain the report and the launch that caused it. Called for each module that is made.
/// Thread-safe.
void describe_failures() noexcept;

/// Lets launches give the emulated device their arrays if it checks kernels. Call this after its checks have changed.
void watch_arrays() noexcept;

}  // namespace bascule
