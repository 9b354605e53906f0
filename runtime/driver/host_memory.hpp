// Tests whether an address is mapped in this process.
#pragma once

#include <cstdint>

namespace bascule {

/// True if the process may read the byte at `address`. Asks the operating system, so a wrong address causes no fault.
/// Another thread may unmap it right afterwards.
bool is_readable(std::uint64_t address) noexcept;

}  // namespace bascule
