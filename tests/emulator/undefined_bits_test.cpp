// The rules by which undefined bits propagate, compared with all values that the undefined bits can have.
#include "checks/undefined_bits.hpp"

#include <algorithm>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include <doctest/doctest.h>

namespace undefined_bits {
namespace {

using emulated::checks::values::LaneStep;
using emulated::checks::values::LaneValue;
using emulated::program::Flag;
using emulated::program::Instruction;
using emulated::program::Key;
using emulated::program::Operation;
using emulated::ptx::Type;
using Bits = std::uint64_t;
using Values = std::vector<Bits>;

struct Rule {
    const char* name;
    Key key;
    unsigned sources;
    unsigned result_bits;
    bool exact;  ///< no bit is undefined that always has the same value
    std::function<Bits(const Values&)> compute;
};

Bits low(unsigned bits) { return bits == 64 ? ~Bits{0} : (Bits{1} << bits) - 1; }
template <class T>
T as(Bits value) {
    return static_cast<T>(value);
}

const std::vector<Rule>& rules() {
    using enum Operation;
    using enum Type;
    static const std::vector<Rule> all{
        {"add", {add, u32}, 2, 32, false, [](auto& v) { return v[0] + v[1]; }},
        {"sub", {sub, u16}, 2, 16, false, [](auto& v) { return v[0] - v[1]; }},
        {"neg", {neg, s32}, 1, 32, false, [](auto& v) { return 0 - v[0]; }},
        {"mul.lo", {mul, u32, none, {Flag::lo}}, 2, 32, false, [](auto& v) { return v[0] * v[1]; }},
        {"mul.wide",
         {mul, s32, none, {Flag::wide}},
         2,
         64,
         false,
         [](auto& v) { return as<Bits>(std::int64_t{as<std::int32_t>(v[0])} * as<std::int32_t>(v[1])); }},
        {"mad.lo", {mad, u64, none, {Flag::lo}}, 3, 64, false, [](auto& v) { return v[0] * v[1] + v[2]; }},
        {"and", {and_, u32}, 2, 32, true, [](auto& v) { return v[0] & v[1]; }},
        {"or", {or_, u64}, 2, 64, true, [](auto& v) { return v[0] | v[1]; }},
        {"xor", {xor_, u16}, 2, 16, true, [](auto& v) { return v[0] ^ v[1]; }},
        {"not", {not_, u32}, 1, 32, true, [](auto& v) { return ~v[0]; }},
        {"and.pred", {and_, pred}, 2, 1, true, [](auto& v) { return v[0] & v[1]; }},
        {"selp", {selp, u32}, 3, 32, false, [](auto& v) { return v[2] & 1 ? v[0] : v[1]; }},
        {"shl", {shl, u32}, 2, 32, false, [](auto& v) { return v[1] > 31 ? 0 : v[0] << v[1]; }},
        {"shr.u64", {shr, u64}, 2, 64, false, [](auto& v) { return v[1] > 63 ? 0 : v[0] >> v[1]; }},
        {"shr.s32",
         {shr, s32},
         2,
         32,
         false,
         [](auto& v) { return as<Bits>(as<std::int32_t>(v[0]) >> std::min<Bits>(v[1], 31)); }},
        {"shf.l.wrap",
         {shf, u32, none, {Flag::left, Flag::wrap}},
         3,
         32,
         false,
         [](auto& v) { return (v[1] << 32 | v[0]) << (v[2] & 31) >> 32; }},
        {"shf.r.clamp",
         {shf, u32, none, {Flag::right, Flag::clamp}},
         3,
         32,
         false,
         [](auto& v) { return (v[1] << 32 | v[0]) >> std::min<Bits>(v[2], 32); }},
        {"prmt",
         {prmt, u32},
         3,
         32,
         false,
         [](auto& v) {
             Bits made = 0;
             for (unsigned k = 0; k < 4; ++k) {
                 const Bits which = v[2] >> (4 * k), byte = (v[1] << 32 | v[0]) >> (8 * (which & 7)) & 0xff;
                 made |= ((which & 8) == 0 ? byte : (byte & 0x80) != 0 ? 0xff : 0) << (8 * k);
             }
             return made;
         }},
        {"bfe.u32",
         {bfe, u32},
         3,
         32,
         false,
         [](auto& v) {
             const Bits at = v[1] & 0xff, count = v[2] & 0xff;
             return at > 31 ? 0 : v[0] >> at & low(as<unsigned>(std::min<Bits>(count, 63)));
         }},
        {"bfe.s32",
         {bfe, s32},
         3,
         32,
         false,
         [](auto& v) -> Bits {
             const Bits at = v[1] & 0xff, count = v[2] & 0xff;
             if (count == 0) return 0;
             const Bits top = std::min<Bits>(at + count - 1, 31);
             Bits made = 0;
             for (Bits k = 0; k < 32; ++k)
                 made |= (v[0] >> (k < count && at + k < 32 ? at + k : top) & 1) << k;
             return made;
         }},
        {"bfi",
         {bfi, u32},
         4,
         32,
         false,
         [](auto& v) {
             const Bits at = v[2] & 0xff, count = v[3] & 0xff;
             Bits made = v[1];
             for (Bits k = 0; k < count && at + k < 32; ++k)
                 made = (made & ~(Bits{1} << (at + k))) | (k < 32 ? v[0] >> k & 1 : 0) << (at + k);
             return made;
         }},
        {"pack", {pack, u64, b32}, 2, 64, true, [](auto& v) { return v[1] << 32 | v[0]; }},
        {"cvt.u32.s16",
         {cvt, u32, s16},
         1,
         32,
         true,
         [](auto& v) { return as<Bits>(as<std::int16_t>(v[0])); }},
        {"cvt.s64.s32",
         {cvt, s64, s32},
         1,
         64,
         true,
         [](auto& v) { return as<Bits>(as<std::int32_t>(v[0])); }},
        {"cvt.u16.u64", {cvt, u16, u64}, 1, 16, true, [](auto& v) { return v[0]; }},
        {"cvt.s8.u32", {cvt, s8, u32}, 1, 16, true, [](auto& v) { return as<Bits>(as<std::int8_t>(v[0])); }},
        {"setp.eq", {setp, u32, none, {Flag::eq}}, 2, 1, true, [](auto& v) { return Bits{v[0] == v[1]}; }},
        {"setp.lt.u32", {setp, u32, none, {Flag::lt}}, 2, 1, true, [](auto& v) { return Bits{v[0] < v[1]}; }},
        {"setp.ge.s32",
         {setp, s32, none, {Flag::ge}},
         2,
         1,
         true,
         [](auto& v) { return Bits{as<std::int32_t>(v[0]) >= as<std::int32_t>(v[1])}; }},
        {"setp.le.s64",
         {setp, s64, none, {Flag::le}},
         2,
         1,
         true,
         [](auto& v) { return Bits{as<std::int64_t>(v[0]) <= as<std::int64_t>(v[1])}; }},
        {"setp.gt.u16", {setp, u16, none, {Flag::gt}}, 2, 1, true, [](auto& v) { return Bits{v[0] > v[1]}; }},
        {"add.s16x2",
         {add, s16x2},
         2,
         32,
         false,
         [](auto& v) { return ((v[0] + v[1]) & 0xffff) | (((v[0] >> 16) + (v[1] >> 16)) << 16); }},
    };
    return all;
}

/// The widths of the sources: of the type, except counts, selectors and predicates.
unsigned bits_of_source(const Rule& rule, unsigned k) {
    const Operation operation = rule.key.operation;
    if (rule.key.type == Type::pred || (operation == Operation::selp && k == 2)) return 1;
    if ((operation == Operation::shl || operation == Operation::shr) && k == 1) return 32;
    const bool packs = operation == Operation::pack || operation == Operation::cvt;
    return 8 * emulated::ptx::bytes_of(packs ? rule.key.second : rule.key.type);
}

}  // namespace

TEST_CASE("undefined bits of a result are those that depend on undefined bits of the sources") {
    std::mt19937_64 random(45);
    for (const Rule& rule : rules()) {
        CAPTURE(rule.name);
        const auto how = emulated::checks::values::propagation_of(rule.key);
        REQUIRE((how.undefined != nullptr));
        for (int round = 0; round < 400; ++round) {
            std::vector<LaneValue> sources(rule.sources);
            std::vector<std::pair<unsigned, unsigned>> open;  // (source, bit)
            for (unsigned k = 0; k < rule.sources; ++k) {
                const unsigned bits = bits_of_source(rule, k);
                sources[k].bits = random() & low(bits);
                if (round % 4 != 0 && bits > 1)
                    sources[k].bits &= random() % 128 * (round % 3 == 0 ? 257 : 1) & low(bits);
                if (round % 5 == 4 && k == 1 && bits == bits_of_source(rule, 0))
                    sources[k].bits = sources[0].bits;
                for (unsigned left = static_cast<unsigned>(random() % 4); left > 0; --left) {
                    const auto bit = static_cast<unsigned>(random() % bits);
                    if ((sources[k].undefined >> bit & 1) == 0) open.emplace_back(k, bit);
                    sources[k].undefined |= Bits{1} << bit;
                }
            }
            if (open.empty()) continue;
            const Instruction instruction;
            const Bits said = how.undefined(LaneStep{rule.key, instruction, sources}) & low(rule.result_bits);
            Bits differs = 0, first = 0;
            for (Bits choice = 0; choice < Bits{1} << open.size(); ++choice) {
                Values values;
                for (const LaneValue& each : sources) values.push_back(each.bits & ~each.undefined);
                for (std::size_t k = 0; k < open.size(); ++k)
                    values[open[k].first] |= (choice >> k & 1) << open[k].second;
                const Bits made = rule.compute(values) & low(rule.result_bits);
                if (choice == 0) first = made;
                differs |= made ^ first;
            }
            CHECK((differs & ~said) == 0);
            if (rule.exact) CHECK(said == differs);
            bool counts_are_known = true;  // counts, selectors and predicates
            for (unsigned k = 1; k < rule.sources; ++k)
                counts_are_known = counts_are_known && sources[k].undefined == 0;
            const bool is_shift = rule.key.operation == Operation::shl ||
                                  rule.key.operation == Operation::shr ||
                                  rule.key.operation == Operation::bfe;
            if (is_shift && counts_are_known) CHECK(said == differs);
        }
    }
}

}  // namespace undefined_bits
