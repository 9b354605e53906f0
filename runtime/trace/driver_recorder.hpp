// Records Bascule's calls of a real driver in the form of the emulated device's trace, so that the tests of order can
// check the same operations on a GPU.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include <bascule/runtime/emulator/emulated_abi.h>

namespace bascule {

/// Starts or stops recording; starting clears the record. After the first call, every entry of the function table goes
/// through the recorder for the rest of the process. Bookkeeping and failed calls are not recorded. Thread-safe, like
/// the other functions. Throws: the errors of Driver::get.
void record_operations(bool on);
std::vector<BasculeEmulatedOperation> recorded_operations();
/// The number of calls of a function of the table since the recorder was first used, by all threads.
std::uint64_t recorded_calls_of(std::string_view function);

}  // namespace bascule
