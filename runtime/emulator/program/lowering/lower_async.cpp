// Lowering of asynchronous copies, mbarriers and cluster instructions.
#include "program/lowering.hpp"

namespace emulated::program {

// The address as one 64-bit value.
Ref Lowering::whole_address(const ptx::Operand& given, const FlagSet& spaces) {
    Address where = address(given, spaces);
    if (where.narrow) {
        const Ref wide = temporary(8);
        emit({Operation::cvt, Type::u64, Type::u32}, {wide}, {where.base});
        where.base = wide;
    }
    if (where.offset == 0) return where.base;
    const Ref sum = temporary(8);
    const auto offset = static_cast<std::uint64_t>(where.offset);
    emit({Operation::add, Type::u64}, {sum}, {where.base, functions_.layout().constant(offset, 8)});
    return sum;
}

// The number of operands without the cache policy, which has no effect here.
std::size_t Lowering::count_without_policy(const ptx::Instruction& instruction, const Opcode& opcode) {
    const std::size_t count = instruction.operands.size();
    if (!opcode.flags.has(Flag::policy)) return count;
    if (count < 2) refuse("{} needs a cache policy", instruction.opcode);
    source(instruction.operands.back(), Type::b64);
    return count - 1;
}

// cp.async [to], [from], bytes {, bytes of the source | whether to ignore the source} {, policy}
void Lowering::copy_async(const ptx::Instruction& instruction, const Opcode& opcode) {
    const std::size_t count = count_without_policy(instruction, opcode);
    expect_operands(instruction, count, 3, 4);
    const ptx::Operand& size = operand(instruction, 2);
    const std::uint64_t bytes = size.kind == OperandKind::integer ? size.bits : 0;
    const bool fits = opcode.flags.has(Flag::cg) ? bytes == 16 : bytes == 4 || bytes == 8 || bytes == 16;
    if (!fits) refuse("{} copies 4, 8 or 16 bytes, and 16 alone with .cg", instruction.opcode);
    Layout& layout = functions_.layout();
    Ref valid = layout.constant(bytes, 4);
    if (count == 4) {
        const ptx::Operand& part = instruction.operands[3];
        if (part.kind == OperandKind::reg && width(part) == 0) {
            const Ref all = valid;
            valid = temporary(4);
            emit({Operation::selp, Type::u32}, {valid}, {layout.constant(0, 4), all, predicate(part)});
        } else {
            valid = source(part, Type::u32);
        }
    }
    const Ref to = whole_address(operand(instruction, 0), {Flag::shared});
    const Ref from = whole_address(operand(instruction, 1), {Flag::global});
    Step& step = emit({Operation::copy_async}, {}, {to, from, valid});
    step.immediate = static_cast<std::int64_t>(bytes);
    step.memory = true;
}

// Commits a group, or waits for all groups except the last ones.
void Lowering::copy_group(const ptx::Instruction& instruction, const Opcode& opcode) {
    const bool counts = opcode.flags.has(Flag::wait_group);
    expect_operands(instruction, counts ? 1 : 0);
    Step& step = emit(untyped_key(opcode), {}, {});
    if (!counts) return;
    const ptx::Operand& recent = instruction.operands[0];
    if (recent.kind != OperandKind::integer)
        refuse("{} needs a constant number of groups", instruction.opcode);
    step.immediate = static_cast<std::int64_t>(recent.bits);
}

// st.async [to], value, [mbarrier], and red.async: write to the shared memory of a block in the cluster.
void Lowering::write_remotely(const ptx::Instruction& instruction, const Opcode& opcode) {
    expect_operands(instruction, 3);
    const bool stores = opcode.row->operation == Operation::store_async;
    const unsigned bytes = ptx::bytes_of(opcode.type);
    if (opcode.flags.has(Flag::v4) && bytes == 8) unsupported(instruction);
    const Parts parts = parts_of(instruction.operands[1], instruction, opcode, "source");
    std::vector<Ref> values;
    for (const ptx::Operand& part : parts.operands) values.push_back(source(part, opcode.type));
    const Ref to = whole_address(instruction.operands[0], every_space),
              barrier = whole_address(instruction.operands[2], every_space);
    Step& step = emit(stores ? Key{Operation::store_async} : key_of(opcode), {}, {to, barrier});
    step.immediate = bytes;
    step.list = std::move(values);
}

// cp.async.bulk [to], [from], bytes {, [mbarrier] {, mask of blocks}} {, policy}
void Lowering::bulk_copy(const ptx::Instruction& instruction, const Opcode& opcode) {
    const bool to_shared = opcode.flags.has(Flag::complete_tx_bytes);
    const bool from_global = to_shared && opcode.flags.has(Flag::global);
    const bool multicast = opcode.flags.has(Flag::multicast);
    const bool to_cluster = opcode.flags.has(Flag::shared_cluster);
    if (to_shared && from_global == (to_cluster && opcode.flags.has(Flag::shared))) unsupported(instruction);
    if (multicast && !(from_global && to_cluster)) unsupported(instruction);
    const std::size_t count = count_without_policy(instruction, opcode);
    const std::size_t wanted = !to_shared ? 3 : multicast ? 5 : 4;
    expect_operands(instruction, count, wanted, wanted);
    std::vector<Ref> sources{whole_address(instruction.operands[0], every_space),
                             whole_address(instruction.operands[1], every_space),
                             source(instruction.operands[2], Type::u32)};
    std::uint16_t bits = 0;
    if (to_shared) {
        sources.push_back(whole_address(instruction.operands[3], every_space));
        bits |= Instruction::to_shared;
        if (to_cluster) bits |= Instruction::in_cluster;
    }
    if (!from_global) {
        functions_.layout().reads_shared_async();
        bits |= Instruction::from_shared;
    }
    if (multicast) {
        const Ref mask = temporary(4);
        emit({Operation::cvt, Type::u32, Type::u16}, {mask}, {source(instruction.operands[4], Type::u16)});
        sources.push_back(mask);
        bits |= Instruction::multicast;
    }
    emit(key_of(opcode), {}, std::move(sources)).bits = bits;
}

void Lowering::mbarrier(const ptx::Instruction& instruction, const Opcode& opcode) {
    const FlagSet& flags = opcode.flags;
    const std::size_t count = instruction.operands.size();
    if (flags.has(Flag::arrive) || flags.has(Flag::arrive_drop)) {
        const bool expects = flags.has(Flag::expect_tx), stays = flags.has(Flag::noComplete);
        if (expects && stays) unsupported(instruction);
        expect_operands(instruction, count, expects || stays ? 3 : 2, 3);
        const ptx::Operand& state = instruction.operands[0];
        if (flags.has(Flag::shared_cluster) && state.kind != OperandKind::sink)
            refuse("{} returns no state: its result must be _", instruction.opcode);
        Step& step = by_letters(instruction, opcode, count == 3 ? "SMU" : "SM");
        if (count == 2) step.sources.push_back(functions_.layout().constant(1, 4));
    } else if (flags.has(Flag::test_wait) || flags.has(Flag::try_wait)) {
        functions_.layout().may_spin();
        expect_operands(instruction, count, 3, flags.has(Flag::try_wait) ? 4 : 3);
        if (count == 4) source(instruction.operands[3], Type::u32);  // the time limit, which is ignored
        const Ref where = whole_address(instruction.operands[1], opcode.flags & every_space);
        const bool parity = flags.has(Flag::parity);
        const Ref phase = source(instruction.operands[2], parity ? Type::u32 : Type::u64);
        emit({Operation::mbarrier, Type::u64, Type::none, flags & FlagSet{Flag::parity}},
             {result(instruction.operands[0], Type::pred)}, {where, phase});
    } else {
        const bool counts = !flags.has(Flag::inval);
        by_letters(instruction, opcode, flags.has(Flag::pending_count) ? "uA" : counts ? "MU" : "M");
    }
}

void Lowering::cluster_barrier(const ptx::Instruction& instruction, const Opcode& opcode) {
    const bool waits = opcode.flags.has(Flag::wait);
    const FlagSet wrong = waits ? FlagSet{Flag::release, Flag::relaxed} : FlagSet{Flag::acquire};
    if (!(opcode.flags & wrong).empty()) unsupported(instruction);
    functions_.layout().has_barrier();
    const bool releases = !waits && !opcode.flags.has(Flag::relaxed);
    emit(untyped_key(opcode), {}, {}).bits = releases ? Instruction::releases : std::uint16_t{0};
}

void Lowering::elect(const ptx::Instruction& instruction, const Opcode&) {
    const ptx::Operand& to = operand(instruction, 0);
    if (to.kind != OperandKind::pair) refuse("elect.sync needs a register and a predicate: d|p");
    const Ref members = source(operand(instruction, 1), Type::u32);
    emit({Operation::elect}, {result_or_sink(to.parts[0], Type::u32), result(to.parts[1], Type::pred)},
         {members});
}

// For .shared::cluster: adds a step that faults if the address is not in the cluster's shared memory.
void Lowering::require_cluster_address(const ptx::Operand& given, const Opcode& opcode, unsigned bytes) {
    if (!opcode.flags.has(Flag::shared_cluster)) return;
    const Ref where = whole_address(given, every_space);
    emit({Operation::in_cluster}, {}, {where}).immediate = bytes;
}

}  // namespace emulated::program
