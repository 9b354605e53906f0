#include "program/flags.hpp"

#include <algorithm>
#include <iterator>

namespace emulated::program {
namespace {

struct Name {
    std::string_view part;
    Flag flag;
};

// Sorted by name.
constexpr Name names[] = {
    {"L1::evict_first", Flag::evict},
    {"L1::evict_last", Flag::evict},
    {"L1::evict_normal", Flag::evict},
    {"L1::evict_unchanged", Flag::evict},
    {"L1::no_allocate", Flag::evict},
    {"L2::128B", Flag::evict},
    {"L2::256B", Flag::evict},
    {"L2::64B", Flag::evict},
    {"NaN", Flag::nan_wins},
    {"acq_rel", Flag::acq_rel},
    {"acquire", Flag::acquire},
    {"add", Flag::add},
    {"aligned", Flag::aligned},
    {"all", Flag::all},
    {"and", Flag::and_},
    {"any", Flag::any},
    {"approx", Flag::approx},
    {"arrive", Flag::arrive},
    {"b4e", Flag::b4e},
    {"ballot", Flag::ballot},
    {"bfly", Flag::bfly},
    {"ca", Flag::ca},
    {"cas", Flag::cas},
    {"cc", Flag::cc},
    {"cg", Flag::cg},
    {"clamp", Flag::clamp},
    {"cluster", Flag::cluster},
    {"const", Flag::constant},
    {"cs", Flag::cs},
    {"cta", Flag::cta},
    {"cv", Flag::cv},
    {"dec", Flag::dec},
    {"down", Flag::down},
    {"ecl", Flag::ecl},
    {"ecr", Flag::ecr},
    {"eq", Flag::eq},
    {"equ", Flag::equ},
    {"exch", Flag::exch},
    {"f4e", Flag::f4e},
    {"finite", Flag::finite},
    {"ftz", Flag::ftz},
    {"full", Flag::full},
    {"ge", Flag::ge},
    {"geu", Flag::geu},
    {"gl", Flag::gl},
    {"global", Flag::global},
    {"gpu", Flag::gpu},
    {"gt", Flag::gt},
    {"gtu", Flag::gtu},
    {"hi", Flag::hi},
    {"hs", Flag::hs},
    {"idx", Flag::idx},
    {"inc", Flag::inc},
    {"infinite", Flag::infinite},
    {"l", Flag::left},
    {"le", Flag::le},
    {"leu", Flag::leu},
    {"lo", Flag::lo},
    {"local", Flag::local},
    {"ls", Flag::ls},
    {"lt", Flag::lt},
    {"ltu", Flag::ltu},
    {"lu", Flag::lu},
    {"max", Flag::max},
    {"min", Flag::min},
    {"mmio", Flag::mmio},
    {"nan", Flag::is_nan},
    {"nc", Flag::nc},
    {"ne", Flag::ne},
    {"neu", Flag::neu},
    {"noftz", Flag::noftz},
    {"normal", Flag::normal},
    {"notanumber", Flag::notanumber},
    {"num", Flag::num},
    {"number", Flag::number},
    {"or", Flag::or_},
    {"param", Flag::param},
    {"popc", Flag::popc},
    {"r", Flag::right},
    {"rc16", Flag::rc16},
    {"rc8", Flag::rc8},
    {"red", Flag::red},
    {"relaxed", Flag::relaxed},
    {"release", Flag::release},
    {"relu", Flag::relu},
    {"rm", Flag::rm},
    {"rmi", Flag::rmi},
    {"rn", Flag::rn},
    {"rni", Flag::rni},
    {"rp", Flag::rp},
    {"rpi", Flag::rpi},
    {"rz", Flag::rz},
    {"rzi", Flag::rzi},
    {"sat", Flag::sat},
    {"sc", Flag::sc},
    {"shared", Flag::shared},
    {"shared::cta", Flag::shared_cta},
    {"shiftamt", Flag::shiftamt},
    {"subnormal", Flag::subnormal},
    {"sync", Flag::sync},
    {"sys", Flag::sys},
    {"to", Flag::to},
    {"uni", Flag::uni},
    {"up", Flag::up},
    {"v2", Flag::v2},
    {"v4", Flag::v4},
    {"volatile", Flag::is_volatile},
    {"warp", Flag::warp},
    {"wb", Flag::wb},
    {"weak", Flag::weak},
    {"wide", Flag::wide},
    {"wrap", Flag::wrap},
    {"wt", Flag::wt},
    {"xor", Flag::xor_},
};
static_assert(std::is_sorted(std::begin(names), std::end(names),
                             [](const Name& a, const Name& b) { return a.part < b.part; }));

}  // namespace

std::optional<Flag> flag_named(std::string_view part) noexcept {
    const Name* found =
        std::lower_bound(std::begin(names), std::end(names), part,
                         [](const Name& name, std::string_view key) { return name.part < key; });
    if (found == std::end(names) || found->part != part) return std::nullopt;
    return found->flag;
}

}  // namespace emulated::program
