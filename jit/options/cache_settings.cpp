#include <algorithm>
#include <array>
#include <charconv>
#include <cstdlib>

#include <fmt/format.h>

#include <bascule/jit/options/cache_settings.hpp>

namespace bascule {
namespace {

constexpr std::array<std::pair<std::string_view, double>, 10> units = {{
    {"", 1},
    {"b", 1},
    {"kb", 1e3},
    {"mb", 1e6},
    {"gb", 1e9},
    {"tb", 1e12},
    {"kib", 1024.0},
    {"mib", 1024.0 * 1024},
    {"gib", 1024.0 * 1024 * 1024},
    {"tib", 1024.0 * 1024 * 1024 * 1024},
}};

std::string_view without_spaces_around(std::string_view text) {
    const std::size_t first = text.find_first_not_of(' ');
    if (first == text.npos) return {};
    return text.substr(first, text.find_last_not_of(' ') - first + 1);
}

}  // namespace

CacheLimit default_cache_limit() {
    CacheLimit limit;
    const char* named = std::getenv("BASCULE_CACHE_LIMIT");
    if (named == nullptr || *named == '\0') return limit;
    if (std::string_view(named) == "unlimited") {
        limit.bytes = CacheLimit::unlimited;
    } else if (const auto bytes = parse_byte_size(named)) {
        limit.bytes = *bytes;
    } else {
        limit.problem = fmt::format(
            "BASCULE_CACHE_LIMIT is \"{}\", which is not a size: write a number with kB, MB, GB, KiB, MiB or "
            "GiB behind it, such as 500MB, or unlimited. The limit is {} GiB until then.",
            named, CacheLimit::default_bytes >> 30);
    }
    return limit;
}

std::optional<std::uint64_t> parse_byte_size(std::string_view text) {
    text = without_spaces_around(text);
    double number = 0;
    const auto [end, error] =
        std::from_chars(text.data(), text.data() + text.size(), number, std::chars_format::fixed);
    if (error != std::errc()) return std::nullopt;
    std::string unit(without_spaces_around(text.substr(static_cast<std::size_t>(end - text.data()))));
    for (char& letter : unit) {
        if (letter >= 'A' && letter <= 'Z') letter = static_cast<char>(letter - 'A' + 'a');
    }
    const auto row = std::ranges::find(units, unit, &decltype(units)::value_type::first);
    if (row == units.end()) return std::nullopt;
    const double bytes = number * row->second;
    if (!(bytes >= 0 && bytes < 0x1p63) || text.starts_with('-')) return std::nullopt;  // it may be NaN
    return static_cast<std::uint64_t>(bytes);
}

}  // namespace bascule
