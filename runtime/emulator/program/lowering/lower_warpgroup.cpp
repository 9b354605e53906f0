// Lowering of wgmma and setmaxnreg.
#include <algorithm>

#include "program/lowering.hpp"
#include "program/table/matrices.hpp"

namespace emulated::program {

// wgmma.mma_async d, a-desc | a, b-desc {, metadata, selector}, scale-d {, scale-a, scale-b {, transpose-a, transpose-b}}
void Lowering::multiply_warpgroup(const ptx::Instruction& instruction, const Opcode& opcode) {
    const auto product = warpgroup_product_of(opcode);
    if (!product) unsupported(instruction);
    const FlagSet &flags = opcode.flags, logic{Flag::and_, Flag::popc};
    const bool floats = product->d != Type::s32, halves = product->a == Type::f16 || product->a == Type::bf16;
    const bool single_bits = product->a == Type::b1, sparse = flags.has(Flag::sp);
    if ((flags & logic) != (single_bits ? logic : FlagSet{})) unsupported(instruction);
    if (flags.has(Flag::satfinite) && (floats || single_bits)) unsupported(instruction);

    const bool in_registers = operand(instruction, 1).kind == OperandKind::vector;
    const std::size_t transposes = !halves ? 0 : in_registers ? 1 : 2;
    expect_operands(instruction, 4 + (sparse ? 2 : 0) + (floats ? 2 : 0) + transposes);
    std::vector<Ref> list;
    const auto add = [&](const ptx::Operand& given, std::size_t count, Type type, const char* which, bool d) {
        for (const ptx::Operand& part : registers_of_matrix(given, count, which))
            list.push_back(d ? result(part, type) : source(part, type));
    };
    const std::size_t sums = registers_of(fragment_c(*product, product->d));
    add(instruction.operands[0], sums, register_of_matrix(product->d), "D", true);
    constexpr std::size_t registers_of_a = 4;
    if (in_registers)
        add(instruction.operands[1], registers_of_a, register_of_matrix(product->a), "A", false);
    list.insert(list.end(), list.begin(), list.begin() + static_cast<std::ptrdiff_t>(sums));

    Layout& layout = functions_.layout();
    layout.reads_shared_async();
    const Ref zero = layout.constant(0, 8);
    const Ref a = in_registers ? zero : source(instruction.operands[1], Type::u64);
    const Ref b = source(instruction.operands[2], Type::u64);
    std::size_t at = 3;
    const auto constant = [&](std::int64_t least, std::int64_t most) {
        const ptx::Operand& given = instruction.operands[at++];
        const auto value = static_cast<std::int64_t>(given.bits);
        if (given.kind != OperandKind::integer || value < least || value > most || (least < 0 && value == 0))
            refuse("operand {} of {} is {}", at, instruction.opcode,
                   least < 0   ? "1 or -1"
                   : most == 0 ? "0"
                               : "0 or 1");
        return value;
    };
    Ref metadata = zero;
    std::int64_t selector = 0;
    if (sparse) {
        metadata = source(instruction.operands[at++], Type::b32);
        if (metadata.kind == Ref::Kind::fixed) refuse("the sparsity metadata is a register");
        selector = constant(0, bits_of(product->a) == 8 ? 0 : 1);
    }
    if (instruction.operands[at].kind == OperandKind::integer && instruction.operands[at].bits > 1)
        refuse("scale-d is a predicate, 0 or 1");
    const Ref adds = predicate(instruction.operands[at++]);
    std::uint16_t bits = 0;
    if (floats && constant(-1, 1) * constant(-1, 1) < 0) bits |= WarpgroupBits::negates;
    if (transposes == 2 && constant(0, 1) != 0) bits |= WarpgroupBits::a_by_columns;
    if (transposes != 0 && constant(0, 1) != 0) bits |= WarpgroupBits::b_by_rows;
    if (in_registers) bits |= WarpgroupBits::a_in_registers;
    if (sparse) bits |= WarpgroupBits::sparse;
    if (flags.has(Flag::satfinite)) bits |= ProductBits::saturates;
    if (functions_.symbols().debug) bits |= WarpgroupBits::at_once;

    Key key{Operation::warpgroup_mma, arithmetic_of(*product)};
    if (sparse) key.flags.add(Flag::sp);
    Step& step = emit(key, {}, {a, b, adds, metadata});
    step.immediate = packed(*product);
    step.extra = static_cast<std::uint32_t>(selector);
    step.bits = bits;
    step.listed_results = sums;
    step.list = std::move(list);
}

// wgmma.fence, wgmma.commit_group, wgmma.wait_group N
void Lowering::order_warpgroup(const ptx::Instruction& instruction, const Opcode& opcode) {
    const bool counts = opcode.flags.has(Flag::wait_group);
    expect_operands(instruction, counts ? 1 : 0);
    Step& step = emit(untyped_key(opcode), {}, {});
    if (!counts) return;
    const ptx::Operand& recent = instruction.operands[0];
    if (recent.kind != OperandKind::integer || static_cast<std::int64_t>(recent.bits) < 0)
        refuse("{} needs a constant number of groups", instruction.opcode);
    step.immediate = static_cast<std::int64_t>(std::min<std::uint64_t>(recent.bits, 0xffff'ffffu));
}

// setmaxnreg: as in ptxas it has no effect unless the kernel says how many registers its threads have at the start.
void Lowering::set_registers(const ptx::Instruction& instruction, const Opcode& opcode) {
    expect_operands(instruction, 1);
    const ptx::Operand& count = instruction.operands[0];
    if (count.kind != OperandKind::integer || count.bits % 8 != 0 || count.bits < 24 || count.bits > 256)
        refuse("{} needs a multiple of 8 from 24 to 256", instruction.opcode);
    const std::uint32_t at_start = functions_.registers_at_start();
    if (at_start != 0) functions_.layout().has_barrier();  // a warp may wait for others
    Step& step = emit(untyped_key(opcode), {}, {});
    step.immediate = static_cast<std::int64_t>(count.bits);
    step.extra = at_start;
}

}  // namespace emulated::program
