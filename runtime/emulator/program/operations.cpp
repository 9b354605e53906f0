#include "program/operations.hpp"

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

constexpr TypeSet untyped{Type::none};

constexpr FlagSet no_flags{};
constexpr FlagSet nearest{F::rn};
constexpr FlagSet directed{F::rz, F::rm, F::rp};
constexpr FlagSet flush{F::ftz};
constexpr FlagSet single_flags{F::rz, F::rm, F::rp, F::ftz, F::sat};
constexpr FlagSet saturates{F::sat};
constexpr FlagSet equality{F::eq, F::ne};
constexpr FlagSet ordered{F::eq, F::ne, F::lt, F::le, F::gt, F::ge};
constexpr FlagSet unsigned_order{F::lo, F::ls, F::hi, F::hs};
constexpr FlagSet unordered{F::equ, F::neu, F::ltu, F::leu, F::gtu, F::geu, F::num, F::is_nan};
constexpr FlagSet combinations{F::and_, F::or_, F::xor_};
constexpr FlagSet spaces{F::global, F::constant, F::shared, F::local, F::param};
constexpr FlagSet stored_spaces{F::global, F::shared, F::local, F::param};
constexpr FlagSet vectors{F::v2, F::v4};
constexpr FlagSet scopes{F::cta, F::gpu, F::sys, F::cluster};
constexpr FlagSet load_hints{F::ca, F::cg, F::cs, F::cv, F::lu, F::evict, F::nc, F::weak};
constexpr FlagSet store_hints{F::wb, F::cg, F::cs, F::wt, F::evict, F::weak};
constexpr FlagSet load_order = scopes | FlagSet{F::is_volatile, F::relaxed, F::acquire, F::mmio};
constexpr FlagSet store_order = scopes | FlagSet{F::is_volatile, F::relaxed, F::release, F::mmio};
constexpr FlagSet fence_order = scopes | FlagSet{F::acquire, F::release, F::acq_rel, F::sc};
constexpr FlagSet atomic_spaces{F::global, F::shared};
constexpr FlagSet atom_order = scopes | FlagSet{F::relaxed, F::acquire, F::release, F::acq_rel};
constexpr FlagSet red_order = scopes | FlagSet{F::relaxed, F::release};
constexpr FlagSet keeps_subnormals{F::noftz};
constexpr FlagSet synchronous{F::sync};
constexpr FlagSet extremes_and_sum{F::add, F::min, F::max};
constexpr FlagSet prmt_modes{F::f4e, F::b4e, F::rc8, F::ecl, F::ecr, F::rc16};

// --- the table
// ---------------------------------------------------------------------------------------------------- Loads
// and stores carry spaces as selecting flags and are generic without one.
constexpr Row table[] = {
    // name, operation, operands, types, second, selecting, neutral, one_of
    {"add", O::add, "DAA", integers, {}, no_flags, no_flags, no_flags},
    {"add", O::add, "DAA", {s32}, {}, saturates, no_flags, saturates},
    {"add", O::add, "DAA", singles, {}, single_flags, nearest, no_flags},
    {"add", O::add, "DAA", doubles, {}, directed, nearest, no_flags},
    {"add", O::add, "DAA", half_types, {}, saturates, nearest, no_flags},
    {"add", O::add, "DAA", bf16_types, {}, no_flags, nearest, no_flags},
    {"sub", O::sub, "DAA", integers, {}, no_flags, no_flags, no_flags},
    {"sub", O::sub, "DAA", {s32}, {}, saturates, no_flags, saturates},
    {"sub", O::sub, "DAA", singles, {}, single_flags, nearest, no_flags},
    {"sub", O::sub, "DAA", doubles, {}, directed, nearest, no_flags},
    {"sub", O::sub, "DAA", half_types, {}, saturates, nearest, no_flags},
    {"sub", O::sub, "DAA", bf16_types, {}, no_flags, nearest, no_flags},
    {"mul", O::mul, "DAA", integers, {}, {F::lo, F::hi}, no_flags, {F::lo, F::hi}},
    {"mul", O::mul, "dAA", narrow_integers, {}, {F::wide}, no_flags, {F::wide}},
    {"mul", O::mul, "DAA", singles, {}, single_flags, nearest, no_flags},
    {"mul", O::mul, "DAA", doubles, {}, directed, nearest, no_flags},
    {"mul", O::mul, "DAA", half_types, {}, saturates, nearest, no_flags},
    {"mul", O::mul, "DAA", bf16_types, {}, no_flags, nearest, no_flags},
    {"mad", O::mad, "DAAA", integers, {}, {F::lo, F::hi}, no_flags, {F::lo, F::hi}},
    {"mad", O::mad, "dAAa", narrow_integers, {}, {F::wide}, no_flags, {F::wide}},
    {"mad", O::fma, "DAAA", singles, {}, single_flags, nearest, no_flags},
    {"mad", O::fma, "DAAA", doubles, {}, directed, nearest, no_flags},
    {"fma", O::fma, "DAAA", singles, {}, single_flags, nearest, no_flags},
    {"fma", O::fma, "DAAA", doubles, {}, directed, nearest, no_flags},
    {"fma", O::fma, "DAAA", half_types, {}, saturates, nearest, no_flags},
    {"fma", O::fma, "DAAA", bf16_types, {}, no_flags, nearest, no_flags},
    {"fma", O::fma, "DAAA", halves, {}, {F::relu}, nearest, {F::relu}},
    {"mul24", O::mul24, "DAA", integers_32, {}, {F::lo, F::hi}, no_flags, {F::lo, F::hi}},
    {"mad24", O::mad24, "DAAA", integers_32, {}, {F::lo, F::hi}, no_flags, {F::lo, F::hi}},
    {"sad", O::sad, "DAAA", integers, {}, no_flags, no_flags, no_flags},
    {"div", O::div, "DAA", integers, {}, no_flags, no_flags, no_flags},
    {"div", O::div, "DAA", singles, {}, {F::rz, F::rm, F::rp, F::ftz}, {F::rn, F::approx, F::full}, no_flags},
    {"div", O::div, "DAA", doubles, {}, directed, nearest, no_flags},
    {"rem", O::rem, "DAA", integers, {}, no_flags, no_flags, no_flags},
    {"abs", O::abs, "DA", signed_integers, {}, no_flags, no_flags, no_flags},
    {"abs", O::abs, "DA", singles, {}, flush, no_flags, no_flags},
    {"abs", O::abs, "DA", halves, {}, no_flags, no_flags, no_flags},
    {"abs", O::abs, "DA", doubles, {}, no_flags, no_flags, no_flags},
    {"neg", O::neg, "DA", signed_integers, {}, no_flags, no_flags, no_flags},
    {"neg", O::neg, "DA", singles, {}, flush, no_flags, no_flags},
    {"neg", O::neg, "DA", halves, {}, no_flags, no_flags, no_flags},
    {"neg", O::neg, "DA", doubles, {}, no_flags, no_flags, no_flags},
    {"min", O::min, "DAA", integers, {}, no_flags, no_flags, no_flags},
    {"min", O::min, "DAA", singles, {}, {F::ftz, F::nan_wins}, no_flags, no_flags},
    {"min", O::min, "DAA", halves, {}, {F::nan_wins}, no_flags, no_flags},
    {"min", O::min, "DAA", doubles, {}, no_flags, no_flags, no_flags},
    {"max", O::max, "DAA", integers, {}, no_flags, no_flags, no_flags},
    {"max", O::max, "DAA", singles, {}, {F::ftz, F::nan_wins}, no_flags, no_flags},
    {"max", O::max, "DAA", halves, {}, {F::nan_wins}, no_flags, no_flags},
    {"max", O::max, "DAA", doubles, {}, no_flags, no_flags, no_flags},
    // .cc forms; the translator adds the carry operands
    {"add", O::add_carry, "*", integers_32_64, {}, {F::cc}, no_flags, {F::cc}},
    {"addc", O::add_carry, "*", integers_32_64, {}, {F::cc}, no_flags, no_flags},
    {"sub", O::sub_borrow, "*", integers_32_64, {}, {F::cc}, no_flags, {F::cc}},
    {"subc", O::sub_borrow, "*", integers_32_64, {}, {F::cc}, no_flags, no_flags},
    {"mad", O::mad_carry, "*", integers_32_64, {}, {F::cc, F::lo, F::hi}, no_flags, {F::lo, F::hi}},
    {"madc", O::mad_carry, "*", integers_32_64, {}, {F::cc, F::lo, F::hi}, no_flags, {F::lo, F::hi}},

    {"popc", O::popc, "uA", sized_32_64, {}, no_flags, no_flags, no_flags},
    {"clz", O::clz, "uA", sized_32_64, {}, no_flags, no_flags, no_flags},
    {"bfind", O::bfind, "uA", integers_32_64, {}, {F::shiftamt}, no_flags, no_flags},
    {"brev", O::brev, "DA", sized_32_64, {}, no_flags, no_flags, no_flags},
    {"bfe", O::bfe, "DAUU", integers_32_64, {}, no_flags, no_flags, no_flags},
    {"bfi", O::bfi, "DAAUU", sized_32_64, {}, no_flags, no_flags, no_flags},
    {"bmsk", O::bmsk, "DAA", {b32}, {}, {F::wrap, F::clamp}, no_flags, {F::wrap, F::clamp}},
    {"szext", O::szext, "DAU", integers_32, {}, {F::wrap, F::clamp}, no_flags, {F::wrap, F::clamp}},
    {"fns", O::fns, "DAAA", {b32}, {}, no_flags, no_flags, no_flags},
    {"prmt", O::prmt, "DAAA", {b32}, {}, no_flags, no_flags, no_flags},
    {"prmt", O::prmt, "DAAA", {b32}, {}, prmt_modes, no_flags, prmt_modes},
    {"lop3", O::lop3, "DAAA*", {b32}, {}, no_flags, no_flags, no_flags},
    {"shf",
     O::shf,
     "DAAU",
     {b32},
     {},
     {F::left, F::wrap, F::clamp},
     no_flags,
     {F::wrap, F::clamp},
     {F::left}},
    {"shf",
     O::shf,
     "DAAU",
     {b32},
     {},
     {F::right, F::wrap, F::clamp},
     no_flags,
     {F::wrap, F::clamp},
     {F::right}},
    {"shl", O::shl, "DAU", bits, {}, no_flags, no_flags, no_flags},
    {"shr", O::shr, "DAU", bits | integers, {}, no_flags, no_flags, no_flags},
    {"dp4a", O::dp4a, "*", integers_32, integers_32, no_flags, no_flags, no_flags},
    {"dp2a", O::dp2a, "*", integers_32, integers_32, {F::lo, F::hi}, no_flags, {F::lo, F::hi}},
    {"and", O::and_, "DAA", all_bits, {}, no_flags, no_flags, no_flags},
    {"or", O::or_, "DAA", all_bits, {}, no_flags, no_flags, no_flags},
    {"xor", O::xor_, "DAA", all_bits, {}, no_flags, no_flags, no_flags},
    {"not", O::not_, "DA", all_bits, {}, no_flags, no_flags, no_flags},
    {"cnot", O::cnot, "DA", bits, {}, no_flags, no_flags, no_flags},
    {"copysign", O::copysign, "DAA", floats, {}, no_flags, no_flags, no_flags},
    {"testp",
     O::testp,
     "PA",
     floats,
     {},
     {F::finite, F::infinite, F::number, F::notanumber, F::normal, F::subnormal},
     no_flags,
     {F::finite, F::infinite, F::number, F::notanumber, F::normal, F::subnormal}},

    // Approximations are correctly rounded here, so .approx and .full say nothing new.
    {"rcp", O::rcp, "DA", singles, {}, {F::rz, F::rm, F::rp, F::ftz}, {F::rn, F::approx}, no_flags},
    {"rcp", O::rcp, "DA", doubles, {}, {F::rz, F::rm, F::rp, F::ftz}, {F::rn, F::approx}, no_flags},
    {"sqrt", O::sqrt, "DA", singles, {}, {F::rz, F::rm, F::rp, F::ftz}, {F::rn, F::approx}, no_flags},
    {"sqrt", O::sqrt, "DA", doubles, {}, directed, nearest, no_flags},
    {"rsqrt", O::rsqrt, "DA", floats, {}, flush, {F::approx}, no_flags},
    {"sin", O::sin, "DA", singles, {}, flush, {F::approx}, no_flags},
    {"cos", O::cos, "DA", singles, {}, flush, {F::approx}, no_flags},
    {"lg2", O::lg2, "DA", singles, {}, flush, {F::approx}, no_flags},
    {"ex2", O::ex2, "DA", singles, {}, flush, {F::approx}, no_flags},
    {"ex2", O::ex2, "DA", half_types, {}, no_flags, {F::approx}, no_flags},
    {"ex2", O::ex2, "DA", bf16_types, {}, flush, {F::approx}, flush},
    {"tanh", O::tanh, "DA", singles | halves, {}, no_flags, {F::approx}, no_flags},

    {"setp", O::setp, "*", bits, {}, equality | combinations, no_flags, equality},
    {"setp", O::setp, "*", signed_integers, {}, ordered | combinations, no_flags, ordered},
    {"setp",
     O::setp,
     "*",
     unsigned_integers,
     {},
     ordered | unsigned_order | combinations,
     no_flags,
     ordered | unsigned_order},
    {"setp",
     O::setp,
     "*",
     {f32, f16},
     {},
     ordered | unordered | combinations | flush,
     no_flags,
     ordered | unordered},
    {"setp",
     O::setp,
     "*",
     {f64, bf16},
     {},
     ordered | unordered | combinations,
     no_flags,
     ordered | unordered},
    {"set", O::set, "*", {u32, s32, f32}, signed_integers, ordered, no_flags, ordered},
    {"set", O::set, "*", {u32, s32, f32}, bits, equality, no_flags, equality},
    {"set",
     O::set,
     "*",
     {u32, s32, f32},
     unsigned_integers,
     ordered | unsigned_order,
     no_flags,
     ordered | unsigned_order},
    {"set",
     O::set,
     "*",
     {u32, s32, f32},
     singles,
     ordered | unordered | flush,
     no_flags,
     ordered | unordered},
    {"set", O::set, "*", {u32, s32, f32}, doubles, ordered | unordered, no_flags, ordered | unordered},
    {"set",
     O::set,
     "*",
     {f16, u16, u32, s32},
     {f16},
     ordered | unordered | flush,
     no_flags,
     ordered | unordered},
    {"set", O::set, "*", {bf16, u16, u32, s32}, {bf16}, ordered | unordered, no_flags, ordered | unordered},
    {"set", O::set, "DAA", {f16x2}, {f16x2}, ordered | unordered | flush, no_flags, ordered | unordered},
    {"set", O::set, "DAA", {bf16x2}, {bf16x2}, ordered | unordered, no_flags, ordered | unordered},
    {"selp", O::selp, "DAAQ", scalars, {}, no_flags, no_flags, no_flags},
    {"slct", O::slct, "DAAF", scalars, {s32}, no_flags, no_flags, no_flags},
    {"slct", O::slct, "DAAF", scalars, {f32}, flush, no_flags, no_flags},
    {"mov", O::mov, "*", all_bits | integers | floats, {}, no_flags, no_flags, no_flags},
    {"cvt",
     O::cvt,
     "*",
     convertible | TypeSet{f16x2, bf16x2},
     convertible,
     {F::rni, F::rzi, F::rmi, F::rpi, F::rn, F::rz, F::rm, F::rp, F::ftz, F::sat},
     no_flags,
     no_flags},
    {"cvta", O::cvta, "*", {u64, u32}, {}, spaces | FlagSet{F::to}, no_flags, spaces},
    {"isspacep", O::isspacep, "*", untyped, {}, spaces, no_flags, spaces},

    {"ld", O::ld, "*", memory_types, {}, spaces | vectors, load_hints | load_order, no_flags},
    {"ldu", O::ld, "*", memory_types, {}, FlagSet{F::global} | vectors, no_flags, no_flags},
    {"st", O::st, "*", memory_types, {}, stored_spaces | vectors, store_hints | store_order, no_flags},
    {"atom",
     O::atom,
     "*",
     integers_32_64 | floats | halves,
     {},
     FlagSet{F::add} | atomic_spaces,
     atom_order | keeps_subnormals,
     {F::add}},
    {"atom",
     O::atom,
     "*",
     integers_32_64,
     {},
     FlagSet{F::min, F::max} | atomic_spaces,
     atom_order,
     {F::min, F::max}},
    {"atom",
     O::atom,
     "*",
     sized_32_64,
     {},
     FlagSet{F::and_, F::or_, F::xor_} | atomic_spaces,
     atom_order,
     {F::and_, F::or_, F::xor_}},
    {"atom", O::atom, "*", {u32}, {}, FlagSet{F::inc, F::dec} | atomic_spaces, atom_order, {F::inc, F::dec}},
    {"red",
     O::red,
     "*",
     integers_32_64 | floats | halves,
     {},
     FlagSet{F::add} | atomic_spaces,
     red_order | keeps_subnormals,
     {F::add}},
    {"red",
     O::red,
     "*",
     integers_32_64,
     {},
     FlagSet{F::min, F::max} | atomic_spaces,
     red_order,
     {F::min, F::max}},
    {"red",
     O::red,
     "*",
     sized_32_64,
     {},
     FlagSet{F::and_, F::or_, F::xor_} | atomic_spaces,
     red_order,
     {F::and_, F::or_, F::xor_}},
    {"red", O::red, "*", {u32}, {}, FlagSet{F::inc, F::dec} | atomic_spaces, red_order, {F::inc, F::dec}},
    {"atom", O::atom, "*", bits, {}, FlagSet{F::cas} | atomic_spaces, atom_order, {F::cas}},
    {"atom", O::atom, "*", sized_32_64, {}, FlagSet{F::exch} | atomic_spaces, atom_order, {F::exch}},
    {"prefetch", O::prefetch, "*", untyped, {}, no_flags, {F::global, F::local, F::level}, {F::level}},
    {"prefetch", O::prefetch, "*", untyped, {}, no_flags, {F::global, F::keep}, {F::keep}, {F::global}},
    {"prefetchu", O::prefetch, "*", untyped, {}, no_flags, {F::level}, {F::level}},

    {"shfl",
     O::shfl,
     "*",
     {b32},
     {},
     {F::up, F::down, F::bfly, F::idx},
     {F::sync},
     {F::up, F::down, F::bfly, F::idx}},
    {"vote",
     O::vote,
     "*",
     {pred, b32},
     {},
     {F::all, F::any, F::uni, F::ballot},
     {F::sync},
     {F::all, F::any, F::uni, F::ballot}},
    {"match", O::match, "*", sized_32_64, {}, {F::any, F::all}, synchronous, {F::any, F::all}, synchronous},
    {"redux", O::redux, "DA*", integers_32, {}, extremes_and_sum, synchronous, extremes_and_sum, synchronous},
    {"redux", O::redux, "DA*", {b32}, {}, combinations, synchronous, combinations, synchronous},
    {"activemask", O::activemask, "u", {b32}, {}, no_flags, no_flags, no_flags},
    {"bar", O::bar_warp, "*", untyped, {}, {F::warp}, synchronous, {F::warp}, synchronous},
    {"bar", O::bar, "*", untyped, {}, {F::sync, F::arrive}, {F::cta}, {F::sync, F::arrive}},
    {"barrier", O::bar, "*", untyped, {}, {F::sync, F::arrive}, {F::cta, F::aligned}, {F::sync, F::arrive}},
    {"bar", O::bar_red, "*", {u32}, {}, {F::popc}, {F::red, F::cta}, {F::popc}, {F::red}},
    {"bar", O::bar_red, "*", any_pred, {}, {F::and_, F::or_}, {F::red, F::cta}, {F::and_, F::or_}, {F::red}},
    {"barrier", O::bar_red, "*", {u32}, {}, {F::popc}, {F::red, F::cta, F::aligned}, {F::popc}, {F::red}},
    {"barrier",
     O::bar_red,
     "*",
     any_pred,
     {},
     {F::and_, F::or_},
     {F::red, F::cta, F::aligned},
     {F::and_, F::or_},
     {F::red}},
    {"membar", O::fence, "*", untyped, {}, no_flags, {F::cta, F::gl, F::sys}, no_flags},
    {"fence", O::fence, "*", untyped, {}, no_flags, fence_order, no_flags},
    {"nanosleep", O::nanosleep, "U", {u32}, {}, no_flags, no_flags, no_flags},

    {"bra", O::bra, "*", untyped, {}, no_flags, {F::uni}, no_flags},
    {"brx", O::brx, "*", untyped, {}, {F::idx}, {F::uni}, {F::idx}},
    {"call", O::call, "*", untyped, {}, no_flags, {F::uni}, no_flags},
    {"ret", O::ret, "", untyped, {}, no_flags, {F::uni}, no_flags},
    {"exit", O::exit, "", untyped, {}, no_flags, no_flags, no_flags},
    {"trap", O::trap, "", untyped, {}, no_flags, no_flags, no_flags},
};

// Of each group an opcode has one at most.
constexpr FlagSet exclusive[] = {
    {F::rn, F::rz, F::rm, F::rp, F::approx, F::full},
    {F::rni, F::rzi, F::rmi, F::rpi},
    combinations,
    spaces,
    vectors,
    scopes,
    {F::ca, F::cg, F::cs, F::cv, F::lu, F::wb, F::wt},
    {F::weak, F::is_volatile, F::relaxed, F::acquire, F::release, F::acq_rel, F::sc},
};

bool contradicts_itself(const FlagSet& flags) {
    for (const FlagSet& group : exclusive) {
        const FlagSet chosen = flags & group;
        if (!chosen.empty() && !chosen.single()) return true;
    }
    return false;
}

bool matches(const Row& row, const Opcode& opcode, std::string_view name) {
    if (row.name != name || !row.types.has(opcode.type)) return false;
    if (row.second.empty() ? opcode.second != Type::none : !row.second.has(opcode.second)) return false;
    if (!opcode.flags.minus(row.selecting | row.neutral).empty()) return false;
    if ((opcode.flags & row.all_of) != row.all_of) return false;
    return row.one_of.empty() || (opcode.flags & row.one_of).single();
}

bool known(std::string_view name) {
    for (const Row& row : table) {
        if (row.name == name) return true;
    }
    return false;
}

}  // namespace

std::span<const Row> operation_table() noexcept { return table; }

std::variant<Opcode, Refusal> find_operation(std::string_view text) {
    Opcode opcode;
    const std::size_t dot = text.find('.');
    const std::string_view name = text.substr(0, dot);
    const auto refuse = [&](const std::string& why) {
        return Refusal{std::string(text) + " is not supported" + why};
    };
    if (!known(name)) return refuse("");

    int types = 0;
    for (std::size_t at = dot; at != std::string_view::npos;) {
        const std::size_t next = text.find('.', at + 1);
        const std::string_view part =
            text.substr(at + 1, next == std::string_view::npos ? next : next - at - 1);
        at = next;
        if (const auto type = ptx::type_named(part)) {
            if (types == 0) opcode.type = *type;
            if (types == 1) opcode.second = *type;
            if (++types > 2) return refuse("");
        } else if (const auto flag = flag_named(part)) {
            opcode.flags.add(*flag == Flag::shared_cta ? Flag::shared : *flag);
        } else {
            return refuse(": the modifier ." + std::string(part) + " is unknown here");
        }
    }
    if (contradicts_itself(opcode.flags)) return refuse(": two of its modifiers exclude each other");
    for (const Row& row : table) {
        if (matches(row, opcode, name)) {
            opcode.row = &row;
            return opcode;
        }
    }
    return refuse("");
}

}  // namespace emulated::program
