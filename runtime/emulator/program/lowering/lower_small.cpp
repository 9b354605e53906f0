// Conversions into and from small floating-point formats, and packed saturation.
#include <algorithm>
#include <cstring>
#include <optional>

#include <fmt/format.h>

#include "program/lowering.hpp"
#include "program/small_formats.hpp"

namespace emulated::program {
namespace {

struct FormatName {
    Type type;
    SmallFormat format;
    bool pair;
};
constexpr FormatName formats[] = {
    {Type::f16, SmallFormat::f16, false},    {Type::f16x2, SmallFormat::f16, true},
    {Type::bf16, SmallFormat::bf16, false},  {Type::bf16x2, SmallFormat::bf16, true},
    {Type::e4m3x2, SmallFormat::e4m3, true}, {Type::e5m2x2, SmallFormat::e5m2, true},
    {Type::tf32, SmallFormat::tf32, false},  {Type::f32, SmallFormat::f32, false},
    {Type::f64, SmallFormat::f64, false},
};
const FormatName& format_of(Type type) { return *std::ranges::find(formats, type, &FormatName::type); }

struct RoundingName {
    Flag flag;
    SmallRounding rounding;
};
constexpr RoundingName roundings[] = {{Flag::rn, SmallRounding::rn},
                                      {Flag::rz, SmallRounding::rz},
                                      {Flag::rm, SmallRounding::rm},
                                      {Flag::rp, SmallRounding::rp},
                                      {Flag::rna, SmallRounding::rna}};

}  // namespace

// cvt.rn.satfinite.e4m3x2.f32 d, a, b: a becomes the upper half.
void Lowering::convert_small(const ptx::Instruction& instruction, const Opcode& opcode) {
    const FormatName &to = format_of(opcode.type), &from = format_of(opcode.second);
    const FlagSet& flags = opcode.flags;
    const bool single_rounding = flags.has(Flag::rna) + flags.has(Flag::rn) + flags.has(Flag::rz) +
                                     flags.has(Flag::rm) + flags.has(Flag::rp) ==
                                 1;
    // The rest of PTX's table is of sm_100.
    const bool of_tf32 = opcode.type == Type::tf32;
    if (!single_rounding || (of_tf32 && flags.has(flags.has(Flag::rna) ? Flag::relu : Flag::satfinite)))
        refuse(fmt::format("{} is not supported", instruction.opcode));
    SmallConversion how;
    how.to = to.format;
    how.from = from.format;
    for (const RoundingName& each : roundings) {
        if (flags.has(each.flag)) how.rounding = each.rounding;
    }
    how.relu = flags.has(Flag::relu);
    how.saturates = flags.has(Flag::satfinite);
    how.pair = to.pair;
    how.packed = from.pair;
    const unsigned bytes = ptx::bytes_of(opcode.second);
    how.source_bytes = static_cast<std::uint8_t>(bytes);
    const bool two = how.pair && !how.packed;
    if (instruction.operands.size() != (two ? 3u : 2u))
        refuse(fmt::format("{} takes {} operands, got {}", instruction.opcode, two ? 3 : 2,
                           instruction.operands.size()));
    std::vector<Ref> sources;
    for (std::size_t i = 1; i < instruction.operands.size(); ++i)
        sources.push_back(source(instruction.operands[i], bytes, opcode.second));
    Step& step = emit({Operation::convert_small},
                      {result(instruction.operands[0], ptx::bytes_of(opcode.type))}, std::move(sources));
    static_assert(sizeof how <= sizeof step.immediate);
    std::memcpy(&step.immediate, &how, sizeof how);
}

// cvt.pack.sat.u8.s32.b32 d, a, b, c: a and b clamped and side by side, b the lower one, below what c holds.
void Lowering::convert_pack(const ptx::Instruction& instruction, const Opcode& opcode) {
    const bool bytes = ptx::bytes_of(opcode.type) == 1;
    if (instruction.operands.size() != (bytes ? 4u : 3u))
        refuse(fmt::format("{} takes {} operands, got {}", instruction.opcode, bytes ? 4 : 3,
                           instruction.operands.size()));
    std::vector<Ref> sources;
    for (std::size_t i = 1; i < instruction.operands.size(); ++i)
        sources.push_back(source(instruction.operands[i], 4));
    emit({Operation::convert_pack, opcode.type}, {result(instruction.operands[0], 4)}, std::move(sources));
}

}  // namespace emulated::program
