// A table of names: what the help for diagnostics is written in.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace bascule {

/// A name, or the beginning of one where it ends with '*'.
struct NameRow {
    std::string_view name;
    std::string_view help;
};

inline bool fits(std::string_view pattern, std::string_view name) {
    if (!pattern.ends_with('*')) return name == pattern;
    pattern.remove_suffix(1);
    return name.starts_with(pattern);
}

inline std::string find_row(std::span<const NameRow> rows, std::string_view name) {
    for (const NameRow& row : rows) {
        if (fits(row.name, name)) return std::string(row.help);
    }
    return {};
}

}  // namespace bascule
