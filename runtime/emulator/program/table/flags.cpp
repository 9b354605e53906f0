#include "program/table/flags.hpp"

#include <algorithm>

namespace emulated::program {
namespace {

struct Name {
    std::string_view part;
    Flag flag;
};

// Sorted by name.
// clang-format off
constexpr auto names = [] {
    auto made = std::to_array<Name>({
#define FLAG(name) {#name, Flag::name},
#define NAMED(name, part) {part, Flag::name},
        BASCULE_PTX_FLAGS(FLAG, NAMED)
#undef NAMED
#undef FLAG
        {"L1::evict_last", Flag::evict},
        {"L1::evict_normal", Flag::evict},
        {"L1::evict_unchanged", Flag::evict},
        {"L1::no_allocate", Flag::evict},
        {"L2::128B", Flag::evict},
        {"L2::256B", Flag::evict},
        {"L2::64B", Flag::evict},
        {"L2", Flag::level},
        {"L2::evict_normal", Flag::keep},
        {"L2::evict_unchanged", Flag::first},
        {"param::entry", Flag::param},
        {"param::func", Flag::param},
    });
    std::ranges::sort(made, {}, &Name::part);
    return made;
}();
// clang-format on

}  // namespace

std::optional<Flag> flag_named(std::string_view part) noexcept {
    const auto* found = std::ranges::lower_bound(names, part, {}, &Name::part);
    if (found == names.end() || found->part != part) return std::nullopt;
    return found->flag;
}

}  // namespace emulated::program
