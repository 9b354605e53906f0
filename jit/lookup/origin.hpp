// The origin of an image: the compiler, memory or disk.
#pragma once

#include <cstdint>

namespace bascule {

enum class Origin : std::uint8_t { compiled, memory, disk };

const char* to_string(Origin origin) noexcept;  ///< "compiled", "memory", "disk"

}  // namespace bascule
