// What Bascule asks of a driver that keeps no record itself, in the form of the emulated device's trace: the tests
// of order look at the same operations on a GPU.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include <bascule/runtime/emulator/emulated_abi.h>

namespace bascule {

/// Begins or ends the record; beginning empties it. From the first use on, every entry of the function table passes
/// through the recorder, for the rest of the process. Bookkeeping, and calls that failed, are not in it.
/// Thread-safe, as are the others. Throws: what Driver::get throws.
void record_operations(bool on);
std::vector<BasculeEmulatedOperation> recorded_operations();
/// Calls of an entry of the function table since the first use of the recorder, by all threads.
std::uint64_t recorded_calls_of(std::string_view function);

}  // namespace bascule
