#include "program/table/operations.hpp"

#include <algorithm>

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
// Asynchronous copies name two spaces. The completion mechanism determines which is the destination.
constexpr FlagSet copies_async{F::async, F::shared, F::global};
constexpr FlagSet counts_bytes{F::async, F::bulk, F::complete_tx_bytes};
constexpr FlagSet in_bulk_groups{F::async, F::bulk, F::bulk_group, F::shared, F::global};
constexpr FlagSet both_shared{F::shared, F::shared_cluster};
constexpr FlagSet reduces_to_shared{F::reduce, F::async,         F::bulk, F::complete_tx_bytes,
                                    F::shared, F::shared_cluster};
constexpr FlagSet reduces_to_global{F::reduce, F::async, F::bulk, F::bulk_group, F::shared, F::global};
constexpr FlagSet counts_up_or_down{F::inc, F::dec};
constexpr FlagSet additions{F::add};
constexpr FlagSet remote_red{F::async, F::relaxed, F::cluster, F::complete_tx_bytes};
constexpr FlagSet remote_store{F::async, F::complete_tx_bytes};
constexpr FlagSet arrivals{F::arrive, F::arrive_drop};
constexpr FlagSet phase_tests{F::test_wait, F::try_wait};
constexpr FlagSet cluster_scopes{F::cta, F::cluster};

// --- the table ---------------------------------------------------------------------------------------------
// Loads and stores have spaces as selecting flags; without one they are generic. Fields that a row omits are empty.
// clang-format off
constexpr Row table[] = {
    // name, operation, operands, types, second, selecting, neutral, one_of, all_of, third, fourth
    {"add", O::add, "DAA", integers},
    {"add", O::add, "DAA", {s32}, {}, saturates, {}, saturates},
    {"add", O::add, "DAA", singles, {}, single_flags, nearest},
    {"add", O::add, "DAA", doubles, {}, directed, nearest},
    {"add", O::add, "DAA", half_types, {}, half_flags, nearest},
    {"add", O::add, "DAA", bf16_types, {}, {}, nearest},
    {"add", O::add, "DAA", {u16x2, s16x2}},
    {"sub", O::sub, "DAA", integers},
    {"sub", O::sub, "DAA", {s32}, {}, saturates, {}, saturates},
    {"sub", O::sub, "DAA", singles, {}, single_flags, nearest},
    {"sub", O::sub, "DAA", doubles, {}, directed, nearest},
    {"sub", O::sub, "DAA", half_types, {}, half_flags, nearest},
    {"sub", O::sub, "DAA", bf16_types, {}, {}, nearest},
    {"mul", O::mul, "DAA", integers, {}, {F::lo, F::hi}, {}, {F::lo, F::hi}},
    {"mul", O::mul, "dAA", narrow_integers, {}, {F::wide}, {}, {F::wide}},
    {"mul", O::mul, "DAA", singles, {}, single_flags, nearest},
    {"mul", O::mul, "DAA", doubles, {}, directed, nearest},
    {"mul", O::mul, "DAA", half_types, {}, half_flags, nearest},
    {"mul", O::mul, "DAA", bf16_types, {}, {}, nearest},
    {"mad", O::mad, "DAAA", integers, {}, {F::lo, F::hi}, {}, {F::lo, F::hi}},
    {"mad", O::mad, "DAAA", {s32}, {}, {F::hi, F::sat}, {}, {}, {F::hi, F::sat}},
    {"mad", O::mad, "dAAa", narrow_integers, {}, {F::wide}, {}, {F::wide}},
    {"mad", O::fma, "DAAA", singles, {}, single_flags, nearest, roundings},
    {"mad", O::fma, "DAAA", doubles, {}, directed, nearest, roundings},
    {"fma", O::fma, "DAAA", singles, {}, single_flags, nearest, roundings},
    {"fma", O::fma, "DAAA", doubles, {}, directed, nearest, roundings},
    {"fma", O::fma, "DAAA", half_types, {}, half_flags, nearest, {}, nearest},
    {"fma", O::fma, "DAAA", bf16_types, {}, {}, nearest, {}, nearest},
    {"fma", O::fma, "DAAA", half_types, {}, {F::relu, F::ftz}, nearest, {}, {F::rn, F::relu}},
    {"fma", O::fma, "DAAA", bf16_types, {}, {F::relu}, nearest, {}, {F::rn, F::relu}},
    {"fma", O::fma, "DAAA", halves, {}, {F::oob, F::relu}, nearest, {}, {F::rn, F::oob}},
    {"mul24", O::mul24, "DAA", integers_32, {}, {F::lo, F::hi}, {}, {F::lo, F::hi}},
    {"mad24", O::mad24, "DAAA", integers_32, {}, {F::lo, F::hi}, {}, {F::lo, F::hi}},
    {"mad24", O::mad24, "DAAA", {s32}, {}, {F::hi, F::sat}, {}, {}, {F::hi, F::sat}},
    {"sad", O::sad, "DAAA", integers},
    {"div", O::div, "DAA", integers},
    {"div", O::div, "DAA", singles, {}, {F::rz, F::rm, F::rp, F::ftz}, {F::rn, F::approx, F::full}, roundings | FlagSet{F::approx, F::full}},
    {"div", O::div, "DAA", doubles, {}, directed, nearest, roundings},
    {"rem", O::rem, "DAA", integers},
    {"abs", O::abs, "DA", signed_integers},
    {"abs", O::abs, "DA", singles, {}, flush},
    {"abs", O::abs, "DA", half_types, {}, flush},
    {"abs", O::abs, "DA", bf16_types},
    {"abs", O::abs, "DA", doubles},
    {"neg", O::neg, "DA", signed_integers},
    {"neg", O::neg, "DA", singles, {}, flush},
    {"neg", O::neg, "DA", half_types, {}, flush},
    {"neg", O::neg, "DA", bf16_types},
    {"neg", O::neg, "DA", doubles},
    {"min", O::min, "DAA", integers},
    {"min", O::min, "DAA", singles, {}, {F::ftz, F::nan_wins}},
    {"min", O::min, "DAA", half_types, {}, {F::ftz, F::nan_wins}},
    {"min", O::min, "DAA", bf16_types, {}, {F::nan_wins}},
    {"min", O::min, "DAA", {f32, f16, f16x2}, {}, FlagSet{F::ftz, F::nan_wins} | signs_apart, {}, {}, signs_apart},
    {"min", O::min, "DAA", bf16_types, {}, FlagSet{F::nan_wins} | signs_apart, {}, {}, signs_apart},
    {"min", O::min, "DAA", {u16x2, s16x2}},
    {"min", O::min, "DAA", {s32, s16x2}, {}, {F::relu}, {}, {F::relu}},
    {"min", O::min, "DAA", doubles},
    {"max", O::max, "DAA", integers},
    {"max", O::max, "DAA", singles, {}, {F::ftz, F::nan_wins}},
    {"max", O::max, "DAA", half_types, {}, {F::ftz, F::nan_wins}},
    {"max", O::max, "DAA", bf16_types, {}, {F::nan_wins}},
    {"max", O::max, "DAA", {f32, f16, f16x2}, {}, FlagSet{F::ftz, F::nan_wins} | signs_apart, {}, {}, signs_apart},
    {"max", O::max, "DAA", bf16_types, {}, FlagSet{F::nan_wins} | signs_apart, {}, {}, signs_apart},
    {"max", O::max, "DAA", {u16x2, s16x2}},
    {"max", O::max, "DAA", {s32, s16x2}, {}, {F::relu}, {}, {F::relu}},
    {"max", O::max, "DAA", doubles},
    // The .cc forms. The lowering adds the carry operands.
    {"add", O::add_carry, "*", integers_32_64, {}, {F::cc}, {}, {F::cc}},
    {"addc", O::add_carry, "*", integers_32_64, {}, {F::cc}},
    {"sub", O::sub_borrow, "*", integers_32_64, {}, {F::cc}, {}, {F::cc}},
    {"subc", O::sub_borrow, "*", integers_32_64, {}, {F::cc}},
    {"mad", O::mad_carry, "*", integers_32_64, {}, {F::cc, F::lo, F::hi}, {}, {F::lo, F::hi}},
    {"madc", O::mad_carry, "*", integers_32_64, {}, {F::cc, F::lo, F::hi}, {}, {F::lo, F::hi}},

    {"popc", O::popc, "uA", sized_32_64},
    {"clz", O::clz, "uA", sized_32_64},
    {"bfind", O::bfind, "uA", integers_32_64, {}, {F::shiftamt}},
    {"brev", O::brev, "DA", sized_32_64},
    {"bfe", O::bfe, "DACC", integers_32_64},
    {"bfi", O::bfi, "DAACC", sized_32_64},
    {"bmsk", O::bmsk, "DAA", {b32}, {}, {F::wrap, F::clamp}, {}, {F::wrap, F::clamp}},
    {"szext", O::szext, "DAU", integers_32, {}, {F::wrap, F::clamp}, {}, {F::wrap, F::clamp}},
    {"fns", O::fns, "DAAA", {b32}},
    {"prmt", O::prmt, "DAAA", {b32}},
    {"prmt", O::prmt, "DAAA", {b32}, {}, prmt_modes, {}, prmt_modes},
    {"lop3", O::lop3, "DAAA*", {b32}},
    {"lop3", O::lop3, "*", {b32}, {}, {F::and_, F::or_}, {}, {F::and_, F::or_}},
    {"shf", O::shf, "DAAU", {b32}, {}, {F::left, F::wrap, F::clamp}, {}, {F::wrap, F::clamp}, {F::left}},
    {"shf", O::shf, "DAAU", {b32}, {}, {F::right, F::wrap, F::clamp}, {}, {F::wrap, F::clamp}, {F::right}},
    {"shl", O::shl, "DAU", bits},
    {"shr", O::shr, "DAU", bits | integers},
    {"dp4a", O::dp4a, "DAFA", integers_32, integers_32},
    {"dp2a", O::dp2a, "DAFA", integers_32, integers_32, {F::lo, F::hi}, {}, {F::lo, F::hi}},
    {"and", O::and_, "DAA", all_bits},
    {"or", O::or_, "DAA", all_bits},
    {"xor", O::xor_, "DAA", all_bits},
    {"not", O::not_, "DA", all_bits},
    {"cnot", O::cnot, "DA", bits},
    {"copysign", O::copysign, "DAA", floats},
    {"testp", O::testp, "PA", floats, {}, float_classes, {}, float_classes},

    // Approximations are correctly rounded here, so .approx and .full have no effect.
    {"rcp", O::rcp, "DA", singles, {}, {F::rz, F::rm, F::rp, F::ftz}, {F::rn, F::approx}, roundings | approximate},
    {"rcp", O::rcp, "DA", doubles, {}, directed, nearest, roundings},
    {"rcp", O::rcp, "DA", doubles, {}, flush, approximate, {}, {F::approx, F::ftz}},
    {"sqrt", O::sqrt, "DA", singles, {}, {F::rz, F::rm, F::rp, F::ftz}, {F::rn, F::approx}, roundings | approximate},
    {"sqrt", O::sqrt, "DA", doubles, {}, directed, nearest, roundings},
    {"rsqrt", O::rsqrt, "DA", floats, {}, flush, approximate, {}, approximate},
    {"sin", O::sin, "DA", singles, {}, flush, approximate, {}, approximate},
    {"cos", O::cos, "DA", singles, {}, flush, approximate, {}, approximate},
    {"lg2", O::lg2, "DA", singles, {}, flush, approximate, {}, approximate},
    {"ex2", O::ex2, "DA", singles, {}, flush, approximate, {}, approximate},
    {"ex2", O::ex2, "DA", half_types, {}, {}, approximate, {}, approximate},
    {"ex2", O::ex2, "DA", bf16_types, {}, flush, approximate, {}, {F::approx, F::ftz}},
    {"tanh", O::tanh, "DA", singles | halves, {}, {}, approximate, {}, approximate},

    {"setp", O::setp, "*", bits, {}, equality | combinations, {}, equality},
    {"setp", O::setp, "*", signed_integers, {}, ordered | combinations, {}, ordered},
    {"setp", O::setp, "*", unsigned_integers, {}, ordered | unsigned_order | combinations, {}, ordered | unsigned_order},
    {"setp", O::setp, "*", {f32, f16}, {}, ordered | unordered | combinations | flush, {}, ordered | unordered},
    {"setp", O::setp, "*", {f64, bf16}, {}, ordered | unordered | combinations, {}, ordered | unordered},
    {"setp", O::setp, "*", {f16x2}, {}, ordered | unordered | combinations | flush, {}, ordered | unordered},
    {"setp", O::setp, "*", {bf16x2}, {}, ordered | unordered | combinations, {}, ordered | unordered},
    {"set", O::set, "*", {u32, s32, f32, f16, bf16}, signed_integers, ordered | combinations, {}, ordered},
    {"set", O::set, "*", {u32, s32, f32, f16, bf16}, bits, equality | combinations, {}, equality},
    {"set", O::set, "*", {u32, s32, f32, f16, bf16}, unsigned_integers, ordered | unsigned_order | combinations, {}, ordered | unsigned_order},
    {"set", O::set, "*", {u32, s32, f32, f16}, singles, ordered | unordered | flush | combinations, {}, ordered | unordered},
    {"set", O::set, "*", {bf16}, singles, ordered | unordered | combinations, {}, ordered | unordered},
    {"set", O::set, "*", {u32, s32, f32, f16, bf16}, doubles, ordered | unordered | combinations, {}, ordered | unordered},
    {"set", O::set, "*", {f16, u16, s16, u32, s32}, {f16}, ordered | unordered | flush | combinations, {}, ordered | unordered},
    {"set", O::set, "*", {bf16, u16, s16, u32, s32}, {bf16}, ordered | unordered | combinations, {}, ordered | unordered},
    {"set", O::set, "*", {f16x2, u32, s32}, {f16x2}, ordered | unordered | flush | combinations, {}, ordered | unordered},
    {"set", O::set, "*", {bf16x2, u32, s32}, {bf16x2}, ordered | unordered | combinations, {}, ordered | unordered},
    {"selp", O::selp, "DAAQ", scalars},
    {"slct", O::slct, "DAAF", scalars, {s32}},
    {"slct", O::slct, "DAAF", scalars, {f32}, flush},
    {"mov", O::mov, "*", all_bits | integers | floats | TypeSet{b128}},
    {"cvt", O::convert_small, "*", {tf32}, singles, {F::rna, F::rn, F::rz, F::relu, F::satfinite}, {}, {F::rna, F::rn, F::rz}},
    {"cvt", O::convert_small, "*", fp8_pairs, {f32, f16x2}, {F::rn, F::relu, F::satfinite}, {}, {}, {F::rn, F::satfinite}},
    {"cvt", O::convert_small, "*", {f16x2}, fp8_pairs, {F::rn, F::relu}, {}, {}, {F::rn}},
    {"cvt", O::convert_small, "*", halves, singles, {F::rn, F::rz, F::relu, F::satfinite}, {}, {F::rn, F::rz}, {F::relu}},
    {"cvt", O::convert_small, "*", halves, singles, {F::rn, F::rz, F::satfinite}, {}, {F::rn, F::rz}, {F::satfinite}},
    {"cvt", O::convert_small, "*", {bf16}, {f16, f64}, {F::rn, F::rz, F::rm, F::rp}, {}, {F::rn, F::rz, F::rm, F::rp}},
    {"cvt", O::convert_small, "*", {f16}, {bf16}, {F::rn, F::rz, F::rm, F::rp}, {}, {F::rn, F::rz, F::rm, F::rp}},
    {"cvt", O::convert_pack, "uUU", {u16, s16}, {s32}, {}, {F::pack, F::sat}, {}, {F::pack, F::sat}},
    {"cvt", O::convert_pack, "uUUB", {u8, s8}, {s32}, {}, {F::pack, F::sat}, {}, {F::pack, F::sat}, {b32}},
    {"cvt", O::cvt, "*", convertible | TypeSet{f16x2, bf16x2}, convertible, conversions},
    {"cvta", O::cvta, "*", {u64, u32}, {}, spaces | FlagSet{F::to}, {}, spaces},
    {"isspacep", O::isspacep, "PW", untyped, {}, spaces, {}, spaces},

    {"ld", O::ld, "*", memory_types, {}, spaces | vectors, load_hints | load_order},
    {"ldu", O::ld, "*", memory_types, {}, FlagSet{F::global} | vectors},
    {"ld", O::ld, "*", {b128}, {}, spaces, load_hints | load_order},
    {"st", O::st, "*", {b128}, {}, stored_spaces.minus({F::param}), store_hints | store_order},
    {"st", O::st, "*", memory_types, {}, stored_spaces | vectors, store_hints | store_order},
    {"atom", O::atom, "*", {u32, u64, s32, f32, f64}, {}, FlagSet{F::add} | atomic_spaces, atom_order, {F::add}},
    {"atom", O::atom, "*", halves, {}, FlagSet{F::add} | atomic_spaces, atom_order | keeps_subnormals, {}, {F::add, F::noftz}},
    {"atom", O::atom, "*", integers_32_64, {}, extremes | atomic_spaces, atom_order, extremes},
    {"atom", O::atom, "*", sized_32_64, {}, combinations | atomic_spaces, atom_order, combinations},
    {"atom", O::atom, "*", {u32}, {}, FlagSet{F::inc, F::dec} | atomic_spaces, atom_order, {F::inc, F::dec}},
    {"red", O::red, "*", {u32, u64, s32, f32, f64}, {}, FlagSet{F::add} | atomic_spaces, red_order, {F::add}},
    {"red", O::red, "*", halves, {}, FlagSet{F::add} | atomic_spaces, red_order | keeps_subnormals, {}, {F::add, F::noftz}},
    {"red", O::red, "*", integers_32_64, {}, extremes | atomic_spaces, red_order, extremes},
    {"red", O::red, "*", sized_32_64, {}, combinations | atomic_spaces, red_order, combinations},
    {"red", O::red, "*", {u32}, {}, FlagSet{F::inc, F::dec} | atomic_spaces, red_order, {F::inc, F::dec}},
    {"atom", O::atom, "*", bits, {}, FlagSet{F::cas} | atomic_spaces, atom_order, {F::cas}},
    {"atom", O::atom, "*", sized_32_64, {}, FlagSet{F::exch} | atomic_spaces, atom_order, {F::exch}},
    {"atom", O::atom_wide, "*", {b128}, {}, FlagSet{F::exch, F::cas} | shared_or_global, atom_order.minus(policies), {F::exch, F::cas}},
    {"atom", O::atom_vector, "*", {f32}, {}, FlagSet{F::add} | vectors, atom_order | FlagSet{F::global}, vectors, {F::add}},
    {"atom", O::atom_vector, "*", halves, {}, extremes_and_sum | vectors | FlagSet{F::v8}, atom_order | FlagSet{F::global, F::noftz}, extremes_and_sum, {F::noftz}},
    {"red", O::red_vector, "*", {f32}, {}, FlagSet{F::add} | vectors, red_order | FlagSet{F::global}, vectors, {F::add}},
    {"red", O::red_vector, "*", halves, {}, extremes_and_sum | vectors | FlagSet{F::v8}, red_order | FlagSet{F::global, F::noftz}, extremes_and_sum, {F::noftz}},
    {"prefetch", O::fence, "M", untyped, {}, {}, {F::global, F::local, F::level}, {F::level}},
    {"prefetch", O::fence, "M", untyped, {}, {}, {F::global, F::keep}, {F::keep}, {F::global}},
    {"applypriority", O::fence, "MI", untyped, {}, {}, {F::global, F::keep}, {}, {F::keep}},
    {"discard", O::discard, "*", untyped, {}, {F::global}, {F::level}, {}, {F::level}},
    // A cache policy is an opaque number that affects only the L2 cache.
    {"createpolicy", O::create_policy, "*", {b64}, {}, {}, {F::fractional, F::keep, F::first}, {}, {F::fractional}},
    {"createpolicy", O::create_policy, "*", {b64}, {}, {}, {F::range, F::global, F::keep, F::first}, {}, {F::range}},
    {"createpolicy", O::create_policy, "*", {b64}, {}, {}, {F::cvt, F::level}, {}, {F::cvt, F::level}},
    {"prefetchu", O::fence, "M", untyped, {}, {}, {F::level}, {F::level}},

    {"shfl", O::shfl, "VAUUU", {b32}, {}, shuffles, {F::sync}, shuffles},
    {"vote", O::vote, "*", {pred, b32}, {}, votes, {F::sync}, votes},
    {"match", O::match, "vAU", sized_32_64, {}, {F::any, F::all}, synchronous, {F::any, F::all}, synchronous},
    {"redux", O::redux, "DAU", integers_32, {}, extremes_and_sum, synchronous, extremes_and_sum, synchronous},
    {"redux", O::redux, "DAU", {b32}, {}, combinations, synchronous, combinations, synchronous},
    {"activemask", O::activemask, "D", {b32}},
    {"bar", O::bar_warp, "U", untyped, {}, {}, {F::warp, F::sync}, {F::warp}, synchronous},
    {"bar", O::bar, "*", untyped, {}, {F::sync, F::arrive}, {F::cta}, {F::sync, F::arrive}},
    {"barrier", O::bar, "*", untyped, {}, {F::sync, F::arrive}, {F::cta, F::aligned}, {F::sync, F::arrive}},
    {"bar", O::bar_red, "*", {u32}, {}, {F::popc}, {F::red, F::cta}, {F::popc}, {F::red}},
    {"bar", O::bar_red, "*", any_pred, {}, {F::and_, F::or_}, {F::red, F::cta}, {F::and_, F::or_}, {F::red}},
    {"barrier", O::bar_red, "*", {u32}, {}, {F::popc}, {F::red, F::cta, F::aligned}, {F::popc}, {F::red}},
    {"barrier", O::bar_red, "*", any_pred, {}, {F::and_, F::or_}, {F::red, F::cta, F::aligned}, {F::and_, F::or_}, {F::red}},
    {"membar", O::fence, "", untyped, {}, {}, {F::cta, F::gl, F::sys}, {F::cta, F::gl, F::sys}},
    {"fence", O::fence, "", untyped, {}, {}, fence_order},
    {"nanosleep", O::nanosleep, "U", {u32}},

    // matrix instructions
    {"mma", O::mma, "*", sums, factors, mma_shapes | layouts | FlagSet{F::satfinite, F::sp, F::sp_ordered, F::xor_, F::and_, F::popc}, together, mma_shapes, {}, factors, sums},
    {"wmma", O::mma, "*", {f16, f32}, {f16, f32}, wmma_tiles | layouts | FlagSet{F::mma}, together, wmma_tiles, {F::mma}},
    {"wmma", O::mma, "*", {f32, f64, s32}, wmma_factors, wmma_shapes | layouts | FlagSet{F::mma, F::satfinite, F::xor_, F::and_, F::popc, F::rz, F::rm, F::rp}, together | nearest, wmma_shapes, {F::mma}, wmma_factors, {f32, f64, s32}},
    {"wmma", O::load_matrix, "*", wmma_factors | TypeSet{f16}, {}, wmma_shapes | layouts | shared_or_global | FlagSet{F::load, F::a, F::b}, together, {F::a, F::b}, {F::load}},
    {"wmma", O::load_matrix, "*", sums, {}, wmma_shapes | layouts | shared_or_global | FlagSet{F::load, F::c}, together, wmma_shapes, {F::load, F::c}},
    {"wmma", O::store_matrix, "*", sums, {}, wmma_shapes | layouts | shared_or_global | FlagSet{F::store, F::d}, together, wmma_shapes, {F::store, F::d}},
    {"ldmatrix", O::ldmatrix, "*", {b16}, {}, numbers_of_matrices | shared_or_generic | FlagSet{F::m8n8, F::trans}, together, numbers_of_matrices, {F::m8n8}},
    {"stmatrix", O::stmatrix, "*", {b16}, {}, numbers_of_matrices | shared_or_generic | FlagSet{F::m8n8, F::trans}, together, numbers_of_matrices, {F::m8n8}},
    {"movmatrix", O::movmatrix, "bB", {b16}, {}, {}, together | FlagSet{F::m8n8, F::trans}, {F::m8n8}, {F::m8n8, F::trans}},

    {"bra", O::bra, "*", untyped, {}, {}, {F::uni}},
    {"brx", O::brx, "*", untyped, {}, {F::idx}, {F::uni}, {F::idx}},
    {"call", O::call, "*", untyped, {}, {}, {F::uni}},
    {"ret", O::ret, "", untyped, {}, {}, {F::uni}},
    {"exit", O::exit, "", untyped},
    {"trap", O::trap, "", untyped},

    {"brkpt", O::fence, "", untyped},
    {"pmevent", O::fence, "I", untyped, {}, {}, {F::mask}},

    {"vadd", O::video_add, "*", integers_32, integers_32, saturates | extremes_and_sum, {}, {}, {}, integers_32},
    {"vsub", O::video_sub, "*", integers_32, integers_32, saturates | extremes_and_sum, {}, {}, {}, integers_32},
    {"vabsdiff", O::video_difference, "*", integers_32, integers_32, saturates | extremes_and_sum, {}, {}, {}, integers_32},
    {"vmin", O::video_min, "*", integers_32, integers_32, saturates | extremes_and_sum, {}, {}, {}, integers_32},
    {"vmax", O::video_max, "*", integers_32, integers_32, saturates | extremes_and_sum, {}, {}, {}, integers_32},
    {"vshl", O::video_shl, "*", integers_32, integers_32, saturates | extremes_and_sum | shift_modes, {}, shift_modes, {}, {u32}},
    {"vshr", O::video_shr, "*", integers_32, integers_32, saturates | extremes_and_sum | shift_modes, {}, shift_modes, {}, {u32}},
    {"vmad", O::video_mad, "*", integers_32, integers_32, {F::sat, F::po, F::shr7, F::shr15}, {}, {}, {}, integers_32},
    {"vset", O::video_set, "*", integers_32, integers_32, ordered | extremes_and_sum, {}, ordered},
    {"vadd2", O::video_vector_add, "*", integers_32, integers_32, {F::sat, F::add}, {}, {}, {}, integers_32},
    {"vadd4", O::video_vector_add, "*", integers_32, integers_32, {F::sat, F::add}, {}, {}, {}, integers_32},
    {"vsub2", O::video_vector_sub, "*", integers_32, integers_32, {F::sat, F::add}, {}, {}, {}, integers_32},
    {"vsub4", O::video_vector_sub, "*", integers_32, integers_32, {F::sat, F::add}, {}, {}, {}, integers_32},
    {"vavrg2", O::video_vector_average, "*", integers_32, integers_32, {F::sat, F::add}, {}, {}, {}, integers_32},
    {"vavrg4", O::video_vector_average, "*", integers_32, integers_32, {F::sat, F::add}, {}, {}, {}, integers_32},
    {"vabsdiff2", O::video_vector_difference, "*", integers_32, integers_32, {F::sat, F::add}, {}, {}, {}, integers_32},
    {"vabsdiff4", O::video_vector_difference, "*", integers_32, integers_32, {F::sat, F::add}, {}, {}, {}, integers_32},
    {"vmin2", O::video_vector_min, "*", integers_32, integers_32, {F::sat, F::add}, {}, {}, {}, integers_32},
    {"vmin4", O::video_vector_min, "*", integers_32, integers_32, {F::sat, F::add}, {}, {}, {}, integers_32},
    {"vmax2", O::video_vector_max, "*", integers_32, integers_32, {F::sat, F::add}, {}, {}, {}, integers_32},
    {"vmax4", O::video_vector_max, "*", integers_32, integers_32, {F::sat, F::add}, {}, {}, {}, integers_32},
    {"vset2", O::video_vector_set, "*", integers_32, integers_32, ordered | FlagSet{F::add}, {}, ordered},
    {"vset4", O::video_vector_set, "*", integers_32, integers_32, ordered | FlagSet{F::add}, {}, ordered},

    // alloca
    {"alloca", O::stack_allocate, "*", {u32, u64}},
    {"stacksave", O::stack_save, "*", {u32, u64}},
    {"stackrestore", O::stack_restore, "*", {u32, u64}},
    // asynchronous copies, barriers in shared memory, clusters
    {"cp", O::copy_async, "*", untyped, {}, {}, copies_async | FlagSet{F::ca, F::cg, F::evict, F::policy}, {F::ca, F::cg}, copies_async},
    {"cp", O::copy_group, "*", untyped, {}, {F::commit_group, F::wait_group, F::wait_all}, {F::async}, {F::commit_group, F::wait_group, F::wait_all}, {F::async}},
    {"cp", O::copy_arrive, "M", {b64}, {}, {F::noinc}, {F::async, F::mbarrier, F::arrive, F::shared}, {}, {F::async, F::mbarrier, F::arrive}},
    {"cp", O::bulk_copy, "*", untyped, {}, {}, counts_bytes | both_shared | FlagSet{F::global, F::multicast, F::policy}, {}, counts_bytes},
    {"cp", O::bulk_copy, "*", untyped, {}, {}, in_bulk_groups | FlagSet{F::policy}, {}, in_bulk_groups},
    {"cp", O::fence, "MU", untyped, {}, {}, {F::async, F::bulk, F::prefetch, F::level, F::global, F::policy}, {}, {F::async, F::bulk, F::prefetch, F::level, F::global}},
    {"cp", O::bulk_group, "*", untyped, {}, {F::commit_group, F::wait_group, F::read}, {F::async, F::bulk}, {F::commit_group, F::wait_group}, {F::async, F::bulk}},
    {"cp", O::bulk_reduce, "*", {u32, s32, u64}, {}, additions, reduces_to_shared, additions, reduces_to_shared},
    {"cp", O::bulk_reduce, "*", integers_32, {}, extremes, reduces_to_shared, extremes, reduces_to_shared},
    {"cp", O::bulk_reduce, "*", {b32}, {}, combinations, reduces_to_shared, combinations, reduces_to_shared},
    {"cp", O::bulk_reduce, "*", {u32}, {}, counts_up_or_down, reduces_to_shared, counts_up_or_down, reduces_to_shared},
    {"cp", O::bulk_reduce, "*", {u32, s32, u64, f32, f64}, {}, additions, reduces_to_global | policies, additions, reduces_to_global},
    {"cp", O::bulk_reduce, "*", {f16, bf16}, {}, additions, reduces_to_global | policies | keeps_subnormals, additions, reduces_to_global | keeps_subnormals},
    {"cp", O::bulk_reduce, "*", integers_32_64 | TypeSet{f16, bf16}, {}, extremes, reduces_to_global | policies, extremes, reduces_to_global},
    {"cp", O::bulk_reduce, "*", sized_32_64, {}, combinations, reduces_to_global | policies, combinations, reduces_to_global},
    {"cp", O::bulk_reduce, "*", {u32}, {}, counts_up_or_down, reduces_to_global | policies, counts_up_or_down, reduces_to_global},
    {"st", O::store_async, "*", {b32, b64, u32, u64, s32, s64, f32, f64}, {}, {}, remote_store | vectors | FlagSet{F::weak, F::shared_cluster}, {}, remote_store},
    {"red", O::reduce_async, "*", {u32, s32, u64}, {}, additions, remote_red | FlagSet{F::shared_cluster}, additions, remote_red},
    {"red", O::reduce_async, "*", integers_32, {}, extremes, remote_red | FlagSet{F::shared_cluster}, extremes, remote_red},
    {"red", O::reduce_async, "*", {b32}, {}, combinations, remote_red | FlagSet{F::shared_cluster}, combinations, remote_red},
    {"red", O::reduce_async, "*", {u32}, {}, counts_up_or_down, remote_red | FlagSet{F::shared_cluster}, counts_up_or_down, remote_red},
    {"mbarrier", O::mbarrier, "*", {b64}, {}, {F::init, F::inval}, {F::shared}, {F::init, F::inval}},
    {"mbarrier", O::mbarrier, "*", {b64}, {}, {F::expect_tx, F::complete_tx}, cluster_scopes | both_shared | FlagSet{F::relaxed}, {F::expect_tx, F::complete_tx}},
    {"mbarrier", O::mbarrier, "*", {b64}, {}, arrivals | FlagSet{F::noComplete, F::expect_tx}, cluster_scopes | both_shared | FlagSet{F::release, F::relaxed}, arrivals},
    {"mbarrier", O::mbarrier, "*", {b64}, {}, phase_tests | FlagSet{F::parity}, cluster_scopes | FlagSet{F::shared, F::acquire, F::relaxed}, phase_tests},
    {"mbarrier", O::mbarrier, "*", {b64}, {}, {F::pending_count}, {}, {F::pending_count}},
    {"barrier", O::cluster_bar, "*", untyped, {}, {F::arrive, F::wait}, {F::cluster, F::aligned, F::release, F::relaxed, F::acquire}, {F::arrive, F::wait}, {F::cluster}},
    {"mapa", O::mapa, "DAU", {u32, u64}, {}, {}, {F::shared_cluster}},
    {"getctarank", O::getctarank, "uA", {u32, u64}, {}, {}, {F::shared_cluster}},
    {"elect", O::elect, "*", untyped, {}, {}, synchronous, {}, synchronous},
    // These fences have no effect: one worker runs a block from start to end, and a grid starts after earlier grids have
    // ended.
    {"fence", O::fence, "", untyped, {}, {}, {F::proxy, F::alias, F::async, F::global, F::shared, F::shared_cluster}, {F::alias, F::async}, {F::proxy}},
    {"fence", O::fence, "", untyped, {}, {}, {F::mbarrier_init, F::release, F::cluster}, {}, {F::mbarrier_init, F::release, F::cluster}},
    {"fence", O::fence, "", untyped, {}, {}, {F::acquire, F::cluster, F::restricted_cluster, F::proxy, F::async_generic}, {}, {F::acquire, F::cluster, F::restricted_cluster}},
    {"fence", O::fence, "", untyped, {}, {}, {F::release, F::cluster, F::restricted_cta, F::proxy, F::async_generic}, {}, {F::release, F::cluster, F::restricted_cta}},
    {"griddepcontrol", O::fence, "", untyped, {}, {}, {F::wait, F::launch_dependents}, {F::wait, F::launch_dependents}},

    // textures and surfaces
    {"tex", O::tex, "*", {u32, s32, f32}, {f32}, geometries, {F::v4}, geometries, {F::v4}},
    {"tex", O::tex, "*", {u32, s32, f32}, {s32}, plain_geometries, {F::v4}, plain_geometries, {F::v4}},
    {"tex", O::tex, "*", {u32, s32, f32}, {f32}, geometries, {F::v4, F::lod}, geometries, {F::v4, F::lod}},
    {"tex", O::tex, "*", {u32, s32, f32}, {f32}, geometries, {F::v4, F::grad}, geometries, {F::v4, F::grad}},
    {"tex", O::tex, "*", {u32, s32, f32}, {f32}, geometries, {F::v4, F::base}, geometries, {F::v4, F::base}},
    {"tld4", O::tld4, "*", {u32, s32, f32}, {f32}, gathered | cubes | FlagSet{F::geometry_2d, F::a2d}, {F::v4}, gathered, {F::v4}},
    {"suld", O::suld, "*", {b8, b16, b32, b64}, {}, unformatted | vectors, {F::ca, F::cg, F::cs, F::cv}, plain_geometries, {F::b}},
    {"sust", O::sust, "*", {b8, b16, b32, b64}, {}, unformatted | vectors, {F::wb, F::cg, F::cs, F::wt}, plain_geometries, {F::b}},
    {"sust", O::sust, "*", {b32}, {}, FlagSet{F::p} | plain_geometries | outside | vectors, {F::wb, F::cg, F::cs, F::wt}, plain_geometries, {F::p}},
    {"sured", O::sured, "*", {u32, s32, u64}, {}, extremes_and_sum | reduced | FlagSet{F::b}, {}, extremes_and_sum, {F::b}},
    {"sured", O::sured, "*", {b32}, {}, FlagSet{F::and_, F::or_, F::b} | reduced, {}, {F::and_, F::or_}, {F::b}},
    {"sured", O::sured, "*", {b32}, {}, extremes_and_sum | FlagSet{F::and_, F::or_, F::p} | reduced, {}, extremes_and_sum | FlagSet{F::and_, F::or_}, {F::p}},
    {"txq", O::txq, "*", {b32}, {}, texture_queries, {}, texture_queries},
    {"suq", O::suq, "*", {b32}, {}, surface_queries, {}, surface_queries},
    {"istypep", O::istypep, "*", untyped, {}, {F::texref, F::samplerref, F::surfref}, {}, {F::texref, F::samplerref, F::surfref}},
};
// clang-format on

// An opcode has at most one flag of each group.
constexpr FlagSet exclusive[] = {
    {F::rn, F::rz, F::rm, F::rp, F::rna, F::approx, F::full},
    {F::rni, F::rzi, F::rmi, F::rpi},
    combinations,
    spaces,
    {F::v2, F::v4, F::v8},
    scopes,
    {F::ca, F::cg, F::cs, F::cv, F::lu, F::wb, F::wt, F::is_volatile, F::relaxed, F::acquire, F::release},
    geometries,
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
    const bool names_two_spaces = flags.has(F::async) && !flags.has(F::proxy);
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
    const FlagSet first =
        name.starts_with("set") ? FlagSet{} : FlagSet{F::lo, F::hi, F::wide, F::left, F::to, F::pack};
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
        } else if (const auto flag = flag_named(part)) {
            if (first.has(*flag) && part.data() != text.data() + dot + 1)
                return refuse(": ." + std::string(part) + " must follow the name");
            // Several cache hints are the same flag, and both matrices may have the same layout.
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
