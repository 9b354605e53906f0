// Lowering of conversions to and from small floating-point formats.
#include <algorithm>

#include "program/lowering.hpp"

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

}  // namespace

// cvt.rn.satfinite.e4m3x2.f32 d, a, b: a becomes the upper half.
void Lowering::convert_small(const ptx::Instruction& instruction, const Opcode& opcode) {
    const FormatName &to = format_of(opcode.type), &from = format_of(opcode.second);
    const FlagSet& flags = opcode.flags;
    const FlagSet roundings{Flag::rna, Flag::rn, Flag::rz, Flag::rm, Flag::rp};
    // The other combinations in PTX's table need sm_100.
    const bool of_tf32 = opcode.type == Type::tf32;
    if (!(flags & roundings).single() ||
        (of_tf32 && flags.has(flags.has(Flag::rna) ? Flag::relu : Flag::satfinite)))
        unsupported(instruction);
    SmallConversion how;
    how.to = to.format;
    how.from = from.format;
    how.rounding = flags.first_of({Flag::rna, Flag::rz, Flag::rm, Flag::rp}, Flag::rn);
    how.relu = flags.has(Flag::relu);
    how.saturates = flags.has(Flag::satfinite);
    how.pair = to.pair;
    how.packed = from.pair;
    const unsigned bytes = ptx::bytes_of(opcode.second);
    how.source_bytes = static_cast<std::uint8_t>(bytes);
    const bool two = how.pair && !how.packed;
    expect_operands(instruction, two ? 3 : 2);
    std::vector<Ref> sources;
    for (std::size_t i = 1; i < instruction.operands.size(); ++i)
        sources.push_back(source(instruction.operands[i], opcode.second));
    emit({Operation::convert_small}, {result(instruction.operands[0], opcode.type)}, std::move(sources))
        .immediate = packed(how);
}

}  // namespace emulated::program
