// Source lines that launch, as small values.
#pragma once

#include <cstdint>
#include <string>

namespace bascule {

/// A source line that launches; 0 for none. A small value, valid until the process ends.
struct LaunchSite {
    std::uint32_t number = 0;

    /// `place` is for example "train.py:12: kernel[8, 128](x)". Equal texts give equal sites. After 65,536 texts, a
    /// new one gives number 0.
    static LaunchSite of(const std::string& place);
    std::string place() const;  ///< empty for none
    bool operator==(const LaunchSite&) const = default;
};

}  // namespace bascule
