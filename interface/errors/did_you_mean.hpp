// Finds the name that the user probably meant.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace bascule {

/// The number of letters to add, remove, change or swap with a neighbour to get from one name to the other.
inline std::size_t edit_distance(std::string_view from, std::string_view to) {
    // Three rows of the usual table: a swap looks two rows back.
    std::vector<std::size_t> before(to.size() + 1), above(to.size() + 1), row(to.size() + 1);
    for (std::size_t j = 0; j <= to.size(); ++j) above[j] = j;
    for (std::size_t i = 1; i <= from.size(); ++i) {
        row[0] = i;
        for (std::size_t j = 1; j <= to.size(); ++j) {
            const std::size_t changed = above[j - 1] + (from[i - 1] == to[j - 1] ? 0 : 1);
            row[j] = std::min({above[j] + 1, row[j - 1] + 1, changed});
            if (i > 1 && j > 1 && from[i - 1] == to[j - 2] && from[i - 2] == to[j - 1]) {
                row[j] = std::min(row[j], before[j - 2] + 1);
            }
        }
        std::swap(before, above);
        std::swap(above, row);
    }
    return above[to.size()];
}

/// The nearest of `names`, or "" if none is near. In a near name at most a third of the letters differ, or two in
/// short names.
inline std::string nearest_name(std::string_view wanted, const std::vector<std::string>& names) {
    std::string nearest;
    std::size_t least = std::max<std::size_t>(2, wanted.size() / 3) + 1;
    for (const std::string& name : names) {
        const std::size_t distance = edit_distance(wanted, name);
        if (distance < least && distance < name.size()) {
            least = distance;
            nearest = name;
        }
    }
    return nearest;
}

/// " Did you mean 'saxpy'?"; empty if none of `names` is near.
inline std::string did_you_mean(std::string_view wanted, const std::vector<std::string>& names) {
    const std::string nearest = nearest_name(wanted, names);
    return nearest.empty() ? nearest : " Did you mean '" + nearest + "'?";
}

}  // namespace bascule
