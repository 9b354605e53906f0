// Lines of the program that launch, as small values.
#pragma once

#include <cstdint>
#include <string>

namespace bascule {

/// A line of the user's program that launches; 0 for none. A small value, valid until the process ends.
struct LaunchSite {
    std::uint32_t number = 0;

    /// "train.py:12: kernel[8, 128](x)". The same text gives the same site; beyond 65,536 texts, none.
    static LaunchSite of(const std::string& place);
    std::string place() const;  ///< empty for none
    bool operator==(const LaunchSite&) const = default;
};

}  // namespace bascule
