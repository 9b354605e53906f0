// What the runtime adds to a finding of a check: the user's lines, the line of the launch, and the value of the index.
#pragma once

#include <bascule/runtime/driver/emulated_device.hpp>

namespace bascule {

/// Replaces lines of the compiled text by the user's, and completes the report. Thread-safe.
Finding complete_finding(EmulatedFinding found);

/// Makes findings that are taken from now on complete. Called for each module that is made. Thread-safe.
void describe_findings() noexcept;

}  // namespace bascule
