// Operations among the threads of a warp: shuffles, votes, matches, reductions. Whole warps, warps of which some lanes
// take part, and warps that run the operation separately on each side of a branch.
#include <bit>
#include <stdexcept>

#include "reference/grammar.hpp"
#include "vectors.hpp"

namespace vectors {
namespace {

constexpr unsigned warps = 3, threads = 32 * warps;
constexpr std::uint32_t marker = 0x5c5c'5c5c;

enum class Form { whole, some, apart };

struct Lane {
    std::uint64_t a;
    std::uint32_t b, c, members, group;  ///< group: the lanes on the same side of the branch
};
using Warp = std::array<Lane, 32>;

struct Result {
    Bits value;
    bool truth;
};

// --- results in PTX ----------------------------------------------------------------------------------------

Result shuffled(const Opcode& opcode, const Warp& warp, unsigned lane) {
    const Lane& own = warp[lane];
    const int self = static_cast<int>(lane), distance = static_cast<int>(own.b & 31);
    const int clamp = static_cast<int>(own.c & 31), segment = static_cast<int>(own.c >> 8 & 31);
    const int most = (self & segment) | (clamp & ~segment & 31), least = self & segment;
    int from = 0;
    bool inside = false;
    if (opcode.flags.has(Flag::up)) {
        from = self - distance;
        inside = from >= most;
    } else if (opcode.flags.has(Flag::down)) {
        from = self + distance;
        inside = from <= most;
    } else if (opcode.flags.has(Flag::bfly)) {
        from = self ^ distance;
        inside = from <= most;
    } else {
        from = least | (distance & ~segment & 31);
        inside = from <= most;
    }
    if (!inside) from = self;
    // PTX leaves open which value comes from a lane outside of the mask; the emulated device gives all ones.
    const bool there = own.members >> from & 1;
    return {there ? warp[static_cast<std::size_t>(from)].a & 0xffff'ffff : 0xffff'ffff, inside};
}

Result voted(const Opcode& opcode, const Warp& warp, unsigned lane) {
    std::uint32_t yes = 0;
    const std::uint32_t members = warp[lane].members;
    for (unsigned k = 0; k < 32; ++k)
        yes |= static_cast<std::uint32_t>((members >> k & 1) && (warp[k].b & 1)) << k;
    if (opcode.flags.has(Flag::all)) return {0, yes == members};
    if (opcode.flags.has(Flag::any)) return {0, yes != 0};
    if (opcode.flags.has(Flag::uni)) return {0, yes == members || yes == 0};
    return {yes, false};
}

Result matched(const Opcode& opcode, const Warp& warp, unsigned lane) {
    std::uint32_t equal = 0;
    const std::uint32_t members = warp[lane].members;
    const Bits mask = reference::mask_of(opcode.type);
    for (unsigned k = 0; k < 32; ++k) {
        const bool same = ((warp[k].a ^ warp[lane].a) & mask) == 0;
        equal |= static_cast<std::uint32_t>((members >> k & 1) && same) << k;
    }
    if (opcode.flags.has(Flag::any)) return {equal, false};
    return {equal == members ? members : 0, equal == members};
}

Result reduced(const Opcode& opcode, const Warp& warp, unsigned lane) {
    std::optional<reference::Wide> sum;
    for (unsigned k = 0; k < 32; ++k) {
        if (!(warp[lane].members >> k & 1)) continue;
        const reference::Wide value = reference::integer_of(opcode.type, warp[k].a);
        if (!sum)
            sum = value;
        else if (opcode.flags.has(Flag::add))
            *sum += value;
        else if (opcode.flags.has(Flag::min))
            *sum = value < *sum ? value : *sum;
        else if (opcode.flags.has(Flag::max))
            *sum = value > *sum ? value : *sum;
        else if (opcode.flags.has(Flag::and_))
            *sum &= value;
        else if (opcode.flags.has(Flag::or_))
            *sum |= value;
        else
            *sum ^= value;
    }
    return {reference::wrapped(opcode.type, *sum), false};
}

// --- the machine -------------------------------------------------------------------------------------------

struct Spelled {
    const std::string& spelling;
    const Opcode& opcode;
    bool gives_value, gives_truth, pair;
};

std::string instruction_of(const Spelled& s) {
    const std::string_view name = s.opcode.row->name;
    const std::string wide = s.opcode.type == Type::b64 ? "%wide" : "%a";
    std::string result = s.gives_value ? "%d" : "";
    if (s.gives_truth) result += result.empty() ? "%q" : "|%q";
    std::string sources;
    if (name == "shfl") sources = ", %a, %b, %c, %m";
    if (name == "vote") sources = ", %v, %m";
    if (name == "match") sources = ", " + wide + ", %m";
    if (name == "redux") sources = ", %a, %m";
    return s.spelling + " " + result + sources + ";\n";
}

std::string kernel_of(const Spelled& s, Form form) {
    std::string text =
        header +
        ".visible .entry k(.param .u64 pin, .param .u64 pout) {\n.reg .b64 %in, %out, %at, %wide;\n"
        ".reg .b32 %t, %a, %b, %c, %m, %g, %d, %n;\n.reg .pred %p, %q, %v;\n"
        "ld.param.u64 %in, [pin];\nld.param.u64 %out, [pout];\nmov.u32 %t, %tid.x;\n"
        "mul.wide.u32 %at, %t, 24;\nadd.u64 %in, %in, %at;\nmul.wide.u32 %at, %t, 8;\n"
        "add.u64 %out, %out, %at;\nld.global.b64 %wide, [%in];\nld.global.b32 %a, [%in];\n"
        "ld.global.b32 %b, [%in+8];\nld.global.b32 %c, [%in+12];\nld.global.b32 %m, [%in+16];\n"
        "ld.global.b32 %g, [%in+20];\nand.b32 %n, %b, 1;\nsetp.ne.u32 %v, %n, 0;\n"
        "setp.ne.u32 %p, %g, 0;\nmov.b32 %d, 0x5c5c5c5c;\nsetp.ne.u32 %q, %t, %t;\n";
    if (form != Form::whole) text += "@!%p bra OTHER;\n";
    text += instruction_of(s);
    if (form == Form::apart) text += "bra DONE;\nOTHER:\n" + instruction_of(s) + "DONE:\n";
    if (form == Form::some) text += "OTHER:\n";
    return text + "st.global.b32 [%out], %d;\nselp.u32 %n, 1, 0, %q;\nst.global.b32 [%out+4], %n;\nret;\n}\n";
}

Warp some_warp(const Opcode& opcode, Form form, Random& random) {
    Warp warp;
    std::uint32_t group = ~0u;
    if (form != Form::whole) group = static_cast<std::uint32_t>(random()) | 1u << random() % 32;
    if (form == Form::apart && group == ~0u) group = 0x0f0f'00ff;
    const bool alike = random() % 3 == 0;
    const std::uint64_t common = random();
    for (unsigned k = 0; k < 32; ++k) {
        Lane& lane = warp[k];
        const bool first = group >> k & 1;
        lane.group = first;
        lane.members = first ? group : ~group;
        lane.a = opcode.row->name == "match"
                     ? (alike ? common : common + ((random() % 3) << (random() % 2 * 32)))
                     : some_integer(64, random);
        lane.b = static_cast<std::uint32_t>(random() % 4 ? random() % 33 : random());
        if (opcode.row->name == "vote") lane.b = alike ? common & 1 : random() & 1;
        // The whole warp, segments of a power of two, or any bits.
        const unsigned width = 1u << random() % 6;
        lane.c = random() % 4 == 0 ? static_cast<std::uint32_t>(random())
                                   : (32 - width) << 8 | (opcode.flags.has(Flag::up) ? 0u : 31u);
    }
    return warp;
}

void run(Tally& tally, const Spelled& s, Form form, Random& random) {
    struct Slot {
        std::uint64_t a;
        std::uint32_t b, c, members, group;
    };
    std::vector<Slot> in;
    std::vector<Warp> all;
    for (unsigned w = 0; w < warps; ++w) {
        all.push_back(some_warp(s.opcode, form, random));
        for (const Lane& lane : all.back()) in.push_back({lane.a, lane.b, lane.c, lane.members, lane.group});
    }
    std::vector<std::uint64_t> out(threads, ~0ull);
    testing::Device device(kernel_of(s, form));
    const std::string& refusal = device.module().find_kernel("k")->refusal;
    if (!refusal.empty()) return tally.refused(s.spelling, refusal);
    if (lacks_a_handler(device)) return tally.fault(s.opcode, s.spelling, "is accepted, but nothing runs it");
    if (const auto fault = device.launch("k", {1}, {threads}, device.array(in), device.array(out))) {
        return tally.fault(s.opcode, s.spelling, fault->message);
    }
    for (unsigned t = 0; t < threads; ++t) {
        const Warp& warp = all[t / 32];
        const unsigned lane = t % 32;
        const std::string_view name = s.opcode.row->name;
        const std::uint32_t value = static_cast<std::uint32_t>(out[t]), truth = out[t] >> 32 & 1;
        const auto where = [&] {
            return "thread " + std::to_string(t) + ", form " + std::to_string(int(form));
        };
        if (form == Form::some && !warp[lane].group) {
            tally.compare(s.opcode, s.spelling, {Type::b32, marker}, value, where);
            continue;
        }
        if (name == "activemask") {  // the lane itself, and no lane of the other side of the branch
            const bool right = (value >> lane & 1) && (value & ~warp[lane].members) == 0;
            tally.compare(s.opcode, s.spelling, {Type::pred, 1}, right, where);
            continue;
        }
        const Result expected = name == "shfl"    ? shuffled(s.opcode, warp, lane)
                                : name == "vote"  ? voted(s.opcode, warp, lane)
                                : name == "match" ? matched(s.opcode, warp, lane)
                                                  : reduced(s.opcode, warp, lane);
        if (s.gives_value) {
            tally.compare(s.opcode, s.spelling, {Type::b32, expected.value}, value, where);
        }
        if (s.gives_truth) tally.compare(s.opcode, s.spelling, {Type::pred, expected.truth}, truth, where);
    }
}

}  // namespace

void exchange_vectors(Tally& tally) {
    Random random(4711);
    for (const reference::Syntax& syntax : reference::exchange_syntax()) {
        for (const std::string& spelling : reference::spellings_of(syntax)) {
            const auto opcode = known(spelling);
            if (!opcode) {
                tally.refused(spelling, "not in the table");
                continue;
            }
            const std::string_view name = opcode->row->name;
            const bool truth_only = name == "vote" && opcode->type == Type::pred;
            const bool may_pair = name == "shfl" || (name == "match" && opcode->flags.has(Flag::all));
            for (const Form form : {Form::whole, Form::some, Form::apart}) {
                for (unsigned round = 0; round < 20; ++round) {
                    const bool pair = may_pair && round % 2;
                    run(tally, {spelling, *opcode, !truth_only, truth_only || pair, pair}, form, random);
                }
            }
        }
    }
}

}  // namespace vectors
