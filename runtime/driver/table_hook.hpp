// For tests.
#pragma once

#include <atomic>

namespace bascule {

struct DriverFunctions;

/// Gets the table of a driver before the first of its functions is called, and may put others in their place. Where a
/// function was not found the entry is null.
inline std::atomic<void (*)(DriverFunctions&)> driver_table_hook{nullptr};

}  // namespace bascule
