// Tables of names with a help text for each, about texts and options.
#pragma once

#include <algorithm>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace bascule {

/// Names separated by blanks; one that ends with '*' stands for all names with that beginning.
struct NameRow {
    std::string_view names;
    std::string_view help;
};

/// Splits a text at blanks.
inline std::vector<std::string_view> words_of(std::string_view text) {
    std::vector<std::string_view> words;
    for (std::size_t at = 0; at < text.size();) {
        const std::size_t end = std::min(text.find(' ', at), text.size());
        if (end > at) words.push_back(text.substr(at, end - at));
        at = end + 1;
    }
    return words;
}

/// Whether the name matches one of `names`, which are written as in a row.
inline bool fits_one(std::string_view names, std::string_view name) {
    while (!names.empty()) {
        const std::string_view pattern = names.substr(0, names.find(' '));
        const bool is_beginning = pattern.ends_with('*');
        if (is_beginning ? name.starts_with(pattern.substr(0, pattern.size() - 1)) : name == pattern)
            return true;
        names.remove_prefix(std::min(pattern.size() + 1, names.size()));
    }
    return false;
}

inline std::string find_row(std::span<const NameRow> rows, std::string_view name) {
    const auto row =
        std::ranges::find_if(rows, [&](const NameRow& each) { return fits_one(each.names, name); });
    return row == rows.end() ? std::string() : std::string(row->help);
}

}  // namespace bascule
