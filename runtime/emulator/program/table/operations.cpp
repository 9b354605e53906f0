#include "program/table/operations.hpp"

#include <algorithm>
#include <charconv>
#include <optional>
#include <tuple>
#include <utility>

namespace emulated::program {
namespace {

using enum ptx::Type;
using O = Operation;
using F = Flag;

// --- sets the rows share -----------------------------------------------------------------------------------

constexpr TypeSet any_pred{pred};
constexpr TypeSet bits{b16, b32, b64};
constexpr TypeSet all_bits = bits | any_pred;
constexpr TypeSet integers{u16, u32, u64, s16, s32, s64};
constexpr TypeSet integers_32{u32, s32};
constexpr TypeSet integers_32_64{u32, u64, s32, s64};
constexpr TypeSet narrow_integers{u16, u32, s16, s32};
constexpr TypeSet unsigned_integers{u16, u32, u64};
constexpr TypeSet signed_integers{s16, s32, s64};
constexpr TypeSet singles{f32};
constexpr TypeSet doubles{f64};
constexpr TypeSet floats{f32, f64};
constexpr TypeSet half_types{f16, f16x2};
constexpr TypeSet bf16_types{bf16, bf16x2};
constexpr TypeSet halves = half_types | bf16_types;
constexpr TypeSet scalars = bits | integers | floats;
constexpr TypeSet memory_types = scalars | TypeSet{b8, u8, s8};
constexpr TypeSet convertible = integers | floats | TypeSet{u8, s8, f16, bf16};
constexpr TypeSet sized_32_64{b32, b64};
constexpr TypeSet fp8_pairs{e4m3x2, e5m2x2};

constexpr TypeSet untyped{Type::none};

constexpr FlagSet nearest{F::rn};
constexpr FlagSet directed{F::rz, F::rm, F::rp};
constexpr FlagSet roundings = nearest | directed;
constexpr FlagSet flush{F::ftz};
constexpr FlagSet approximate{F::approx};
constexpr FlagSet single_flags{F::rz, F::rm, F::rp, F::ftz, F::sat};
constexpr FlagSet saturates{F::sat};
constexpr FlagSet equality{F::eq, F::ne};
constexpr FlagSet ordered{F::eq, F::ne, F::lt, F::le, F::gt, F::ge};
constexpr FlagSet unsigned_order{F::lo, F::ls, F::hi, F::hs};
constexpr FlagSet unordered{F::equ, F::neu, F::ltu, F::leu, F::gtu, F::geu, F::num, F::is_nan};
constexpr FlagSet combinations{F::and_, F::or_, F::xor_};
constexpr FlagSet spaces{F::global, F::constant, F::shared, F::local, F::param, F::shared_cluster};
constexpr FlagSet stored_spaces{F::global, F::shared, F::local, F::param, F::shared_cluster};
constexpr FlagSet vectors{F::v2, F::v4};
constexpr FlagSet half_flags{F::sat, F::ftz};
constexpr FlagSet policies{F::policy};
constexpr FlagSet scopes{F::cta, F::gpu, F::sys, F::cluster};
constexpr FlagSet load_hints{F::ca, F::cg, F::cs, F::cv, F::lu, F::evict, F::nc, F::weak, F::policy};
constexpr FlagSet store_hints{F::wb, F::cg, F::cs, F::wt, F::evict, F::weak, F::policy};
constexpr FlagSet load_order = scopes | FlagSet{F::is_volatile, F::relaxed, F::acquire, F::mmio};
constexpr FlagSet store_order = scopes | FlagSet{F::is_volatile, F::relaxed, F::release, F::mmio};
constexpr FlagSet fence_order = scopes | FlagSet{F::acquire, F::release, F::acq_rel, F::sc};
constexpr FlagSet atomic_spaces{F::global, F::shared, F::shared_cluster};
constexpr FlagSet atom_order = scopes | FlagSet{F::relaxed, F::acquire, F::release, F::acq_rel, F::policy};
constexpr FlagSet red_order = scopes | FlagSet{F::relaxed, F::release, F::policy};
constexpr FlagSet keeps_subnormals{F::noftz};
constexpr FlagSet synchronous{F::sync};
constexpr FlagSet plain_geometries{F::geometry_1d, F::geometry_2d, F::geometry_3d, F::a1d, F::a2d};
constexpr FlagSet cubes{F::cube, F::acube};
constexpr FlagSet geometries = plain_geometries | cubes;
constexpr FlagSet gathered{F::right, F::g, F::b, F::a};  // .r .g .b .a
constexpr FlagSet outside{F::trap, F::clamp, F::zero};
constexpr FlagSet reduced = FlagSet{F::geometry_1d, F::geometry_2d, F::geometry_3d} | outside;
constexpr FlagSet unformatted = FlagSet{F::b} | plain_geometries | outside;
constexpr FlagSet surface_queries{F::width, F::height, F::depth};
constexpr FlagSet texture_queries =
    surface_queries | FlagSet{F::array_size, F::num_mipmap_levels, F::num_samples};
constexpr FlagSet extremes_and_sum{F::add, F::min, F::max};
constexpr FlagSet extremes{F::min, F::max};
constexpr FlagSet signs_apart{F::xorsign, F::abs_};
constexpr FlagSet float_classes{F::finite, F::infinite, F::number, F::notanumber, F::normal, F::subnormal};
constexpr FlagSet votes{F::all, F::any, F::uni, F::ballot};
constexpr FlagSet shuffles{F::up, F::down, F::bfly, F::idx};
constexpr FlagSet conversions{F::rni, F::rzi, F::rmi, F::rpi, F::rn, F::rz, F::rm, F::rp, F::ftz, F::sat};
constexpr FlagSet shift_modes{F::wrap, F::clamp};
constexpr FlagSet prmt_modes{F::f4e, F::b4e, F::rc8, F::ecl, F::ecr, F::rc16};

// Types of matrix elements. program/table/matrices.cpp says which shape goes with which types.
constexpr TypeSet wmma_factors{bf16, tf32, f64, s8, u8, s4, u4, b1};
constexpr TypeSet factors = wmma_factors | TypeSet{f16, e4m3, e5m2};
constexpr TypeSet sums{f16, f32, f64, s32};
constexpr FlagSet mma_shapes{F::m8n8k4,   F::m8n8k16,  F::m8n8k32,  F::m8n8k128,  F::m16n8k4,  F::m16n8k8,
                             F::m16n8k16, F::m16n8k32, F::m16n8k64, F::m16n8k128, F::m16n8k256};
constexpr FlagSet wmma_tiles{F::m16n16k16, F::m8n32k16, F::m32n8k16};
constexpr FlagSet wmma_shapes = wmma_tiles | FlagSet{F::m16n16k8, F::m8n8k4, F::m8n8k32, F::m8n8k128};
constexpr FlagSet layouts{F::row, F::col};
constexpr FlagSet shared_or_generic{F::shared}, shared_or_global{F::shared, F::global};
constexpr FlagSet numbers_of_matrices{F::x1, F::x2, F::x4};
constexpr FlagSet together{F::sync, F::aligned};
constexpr TypeSet warpgroup_factors{f16, bf16, tf32, e4m3, e5m2, s8, u8, b1};
constexpr FlagSet warpgroup_orders{F::fence, F::commit_group, F::wait_group};
constexpr FlagSet warpgroup_product{F::mma_async, F::warpgroup_shape};
// Asynchronous copies name two spaces. The completion mechanism determines which is the destination.
constexpr FlagSet copies_async{F::async, F::shared, F::global};
constexpr FlagSet counts_bytes{F::async, F::bulk, F::complete_tx_bytes};
constexpr FlagSet in_bulk_groups{F::async, F::bulk, F::bulk_group, F::shared, F::global};
constexpr FlagSet both_shared{F::shared, F::shared_cluster};
constexpr FlagSet reduces_to_shared{F::reduce, F::async,         F::bulk, F::complete_tx_bytes,
                                    F::shared, F::shared_cluster};
constexpr FlagSet reduces_to_global{F::reduce, F::async, F::bulk, F::bulk_group, F::shared, F::global};
constexpr FlagSet tensor_ranks{F::geometry_1d, F::geometry_2d, F::geometry_3d, F::geometry_4d,
                               F::geometry_5d};
constexpr FlagSet tensor_loads{F::async, F::bulk, F::tensor, F::complete_tx_bytes, F::global};
constexpr FlagSet tensor_stores = in_bulk_groups | FlagSet{F::tensor};
constexpr FlagSet tensor_reductions = tensor_stores | FlagSet{F::reduce};
constexpr FlagSet tensor_prefetches{F::async, F::bulk, F::prefetch, F::tensor, F::level, F::global};
constexpr FlagSet load_modes{F::tile, F::im2col, F::policy},
    store_modes{F::tile, F::im2col_no_offs, F::policy};
constexpr FlagSet replaced{F::replace, F::tile, F::b1024};
constexpr FlagSet replaced_words{F::rank,     F::box_dim,           F::global_dim,   F::element_stride,
                                 F::elemtype, F::interleave_layout, F::swizzle_mode, F::fill_mode};
constexpr FlagSet replaced_addresses{F::global_address, F::global_stride};
constexpr FlagSet copied_maps{F::cp_fenceproxy, F::global, F::shared, F::tensor_proxy,
                              F::release,       F::sync,   F::aligned};
constexpr FlagSet map_fences{F::proxy, F::tensor_proxy};
constexpr FlagSet counts_up_or_down{F::inc, F::dec};
constexpr FlagSet additions{F::add};
constexpr FlagSet remote_red{F::async, F::relaxed, F::cluster, F::complete_tx_bytes};
constexpr FlagSet remote_store{F::async, F::complete_tx_bytes};
constexpr FlagSet arrivals{F::arrive, F::arrive_drop};
constexpr FlagSet phase_tests{F::test_wait, F::try_wait};
constexpr FlagSet cluster_scopes{F::cta, F::cluster};

// --- the table ---------------------------------------------------------------------------------------------

constexpr Row table[] = {
#define FORM(spelled, operation, ...) {spelled, O::operation, __VA_ARGS__},
#include "program/table/rows.hpp"
};

// An opcode has at most one flag of each group.
constexpr FlagSet exclusive[] = {
    {F::rn, F::rz, F::rm, F::rp, F::rna, F::approx, F::full},
    {F::rni, F::rzi, F::rmi, F::rpi},
    combinations,
    spaces,
    {F::v2, F::v4, F::v8},
    scopes,
    {F::ca, F::cg, F::cs, F::cv, F::lu, F::wb, F::wt, F::is_volatile, F::relaxed, F::acquire, F::release},
    geometries | tensor_ranks,
    load_modes.minus(policies) | store_modes.minus(policies),
    outside,
    {F::weak, F::nc, F::is_volatile, F::relaxed, F::acquire, F::release, F::acq_rel, F::sc},
};

// A load or store with one of the flags `with` must also have one of `needs`.
struct Requirement {
    FlagSet with, needs;
};
constexpr Requirement requirements[] = {
    {scopes, {F::relaxed, F::acquire, F::release}},
    {{F::relaxed, F::acquire, F::release}, scopes},
    {{F::mmio}, {F::relaxed}},
    {{F::nc}, {F::global}},
};

bool lacks_something(const FlagSet& flags) {
    return std::ranges::any_of(requirements, [&](const Requirement& each) {
        return !(flags & each.with).empty() && (flags & each.needs).empty();
    });
}

bool contradicts_itself(const FlagSet& flags) {
    const bool names_two_spaces =
        (flags.has(F::async) && !flags.has(F::proxy)) || flags.has(F::cp_fenceproxy);
    return std::ranges::any_of(exclusive, [&](const FlagSet& group) {
        const FlagSet chosen = names_two_spaces ? (flags & group).minus(spaces) : flags & group;
        return !chosen.empty() && !chosen.single();
    });
}

bool matches(const Row& row, const Opcode& opcode, std::string_view name) {
    if (row.name != name || !row.types.has(opcode.type)) return false;
    const auto fits = [](TypeSet set, Type type) { return set.empty() ? type == Type::none : set.has(type); };
    if (!fits(row.second, opcode.second) || !fits(row.third, opcode.third) ||
        !fits(row.fourth, opcode.fourth))
        return false;
    if (!opcode.flags.minus(row.selecting | row.neutral).empty()) return false;
    if ((opcode.flags & row.all_of) != row.all_of) return false;
    return row.one_of.empty() || (opcode.flags & row.one_of).single();
}

/// Parses n and k of m64n128k16.
std::optional<std::pair<std::uint16_t, std::uint16_t>> warpgroup_shape(std::string_view part) {
    const std::size_t k = part.find('k');
    if (!part.starts_with("m64n") || k == part.npos) return std::nullopt;
    std::uint16_t columns = 0, depth = 0;
    const char *const middle = part.data() + k, *const end = part.data() + part.size();
    const auto n = std::from_chars(part.data() + 4, middle, columns);
    if (n.ec != std::errc() || n.ptr != middle || columns == 0) return std::nullopt;
    const auto rest = std::from_chars(middle + 1, end, depth);
    if (rest.ec != std::errc() || rest.ptr != end) return std::nullopt;
    return std::pair{columns, depth};
}

}  // namespace

std::span<const Row> operation_table() noexcept { return table; }

std::variant<Opcode, Refusal> find_operation(std::string_view text) {
    Opcode opcode;
    const std::size_t dot = text.find('.');
    const std::string_view name = text.substr(0, dot);
    const bool asks = name == "txq" || name == "suq";
    const auto refuse = [&](const std::string& why) {
        return Refusal{std::string(text) + " is not supported" +
                       (asks ? ": the drivers of GPUs refuse it too. Pass the answer as an argument" : why)};
    };
    if (std::ranges::find(table, name, &Row::name) == std::end(table)) return refuse("");

    // These modifiers must come first; the order of the others does not matter. Comparisons use .lo and .hi as operators.
    const FlagSet first = name == "wgmma"           ? warpgroup_orders | FlagSet{F::mma_async}
                          : name == "setmaxnreg"    ? FlagSet{F::inc, F::dec}
                          : name.starts_with("set") ? FlagSet{}
                                                    : FlagSet{F::lo, F::hi, F::wide, F::left, F::to, F::pack};
    std::size_t types = 0;
    for (std::size_t at = dot; at != std::string_view::npos;) {
        const std::size_t next = text.find('.', at + 1);
        const std::string_view part =
            text.substr(at + 1, next == std::string_view::npos ? next : next - at - 1);
        at = next;
        if (const auto type = ptx::type_named(part)) {
            Type* const places[] = {&opcode.type, &opcode.second, &opcode.third, &opcode.fourth};
            if (types == std::size(places)) return refuse("");
            *places[types++] = *type;
        } else if (const auto shape = warpgroup_shape(part); shape && opcode.columns == 0) {
            opcode.flags.add(F::warpgroup_shape);
            std::tie(opcode.columns, opcode.depth) = *shape;
        } else if (const auto flag = flag_named(part)) {
            if (first.has(*flag) && part.data() != text.data() + dot + 1)
                return refuse(": ." + std::string(part) + " must follow the name");
            // Not a repetition: several cache hints that share a flag, and the same layout for both matrices.
            if (opcode.flags.has(*flag) && !(F::evict == *flag || layouts.has(*flag)))
                return refuse(": one of its modifiers stands twice");
            opcode.flags.add(*flag == Flag::shared_cta ? Flag::shared : *flag);
        } else {
            return refuse(": the modifier ." + std::string(part) + " is unknown here");
        }
    }
    if (contradicts_itself(opcode.flags)) return refuse(": two of its modifiers exclude each other");
    if ((name == "ld" || name == "st") && !opcode.flags.has(Flag::async) && lacks_something(opcode.flags))
        return refuse(": one of its modifiers needs another");
    opcode.row = std::ranges::find_if(table, [&](const Row& row) { return matches(row, opcode, name); });
    if (opcode.row == std::end(table)) return refuse("");
    return opcode;
}

}  // namespace emulated::program
