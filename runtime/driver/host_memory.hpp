// What this process has mapped.
#pragma once

#include <cstdint>

namespace bascule {

/// Whether the process may read the byte at `address`: asked of the kernel, so that a wrong address is not a
/// fault. It may be unmapped by the next moment.
bool is_readable(std::uint64_t address) noexcept;

}  // namespace bascule
