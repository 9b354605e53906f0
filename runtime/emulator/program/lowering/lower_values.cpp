// Lowering of arithmetic, comparisons and conversions.
#include "program/lowering.hpp"

namespace emulated::program {

void Lowering::move(const ptx::Instruction& instruction, const Opcode& opcode) {
    expect_operands(instruction, 2);
    const ptx::Operand& to = operand(instruction, 0);
    const ptx::Operand& from = operand(instruction, 1);
    if (opcode.type == Type::pred) {
        if (from.kind == OperandKind::special && from.name == "%is_explicit_cluster") {
            const Ref word = special(from, 4);
            emit({Operation::setp, Type::u32, Type::none, {Flag::ne}}, {result(to, Type::pred)},
                 {word, functions_.layout().constant(0, 4)});
            return;
        }
        const Ref value = predicate(from);
        emit({Operation::mov, Type::pred}, {result(to, Type::pred)}, {value});
        return;
    }
    if (opcode.type == Type::b128) {
        const ptx::Operand target = is_wide(to) ? halves_of(to) : to;
        const ptx::Operand source_halves = is_wide(from) ? halves_of(from) : from;
        if (target.parts.size() != 2 || source_halves.parts.size() != 2 || (!is_wide(to) && !is_wide(from)))
            refuse("mov.b128 moves a register of 128 bits, or two of 64");
        const Ref low = temporary(8), high = temporary(8);  // sources and results may be the same registers
        emit({Operation::mov, Type::u64}, {low}, {source(source_halves.parts[0], Type::b64)});
        emit({Operation::mov, Type::u64}, {high}, {source(source_halves.parts[1], Type::b64)});
        emit({Operation::mov, Type::u64}, {result_or_sink(target.parts[0], Type::b64)}, {low});
        emit({Operation::mov, Type::u64}, {result_or_sink(target.parts[1], Type::b64)}, {high});
        return;
    }
    const unsigned bytes = ptx::bytes_of(opcode.type);
    if (to.kind == OperandKind::vector || from.kind == OperandKind::vector) {
        const bool packs = from.kind == OperandKind::vector;
        const ptx::Operand& parts = packs ? from : to;
        const unsigned part = bytes / static_cast<unsigned>(std::max<std::size_t>(1, parts.parts.size()));
        if (part < 2 || part * parts.parts.size() != bytes)
            refuse("only parts of 16 and 32 bits can be packed");
        if (opcode.type != register_type(bytes)) refuse("a vector is moved as .b32 or .b64");
        require_alike(parts.parts);
        std::vector<Ref> list;
        for (const ptx::Operand& each : parts.parts)
            list.push_back(packs ? source(each, register_type(part))
                                 : result_or_sink(each, register_type(part)));
        const Key key{
            packs ? Operation::pack : Operation::unpack, unsigned_of(bytes), register_type(part), {}};
        Step& step =
            packs ? emit(key, {result(to, opcode.type)}, {}) : emit(key, {}, {source(from, opcode.type)});
        step.listed_results = packs ? 0 : list.size();
        step.list = std::move(list);
        return;
    }
    const bool is_symbol = from.kind == OperandKind::symbol || from.kind == OperandKind::variable;
    const bool is_sum = from.kind == OperandKind::sum, converts = opcode.row->operation == Operation::cvta;
    if (converts &&
        (from.kind == OperandKind::special || ((is_symbol || is_sum) && opcode.flags.has(Flag::to))))
        refuse("an address to convert must be a register, or a variable that becomes generic");
    if (from.kind == OperandKind::special &&
        (from.name.starts_with("%clock") || from.name.starts_with("%globaltimer"))) {
        require_special(from, opcode.type);
        const bool timer = from.name.starts_with("%globaltimer");
        const bool high = from.name.ends_with("_hi");
        emit({timer ? Operation::global_timer : Operation::clock, unsigned_of(bytes), Type::none,
              high ? FlagSet{Flag::hi} : FlagSet{}},
             {result(to, opcode.type)}, {});
        return;
    }
    if ((is_symbol || is_sum) && bytes < 8) {
        const ptx::Space space = space_of(is_sum ? from.parts[0] : from);
        if (space != ptx::Space::shared && space != ptx::Space::local && space != ptx::Space::param)
            refuse("an address in global memory has 64 bits");
    }
    if ((is_symbol || is_sum) && ptx::is_float(opcode.type))
        refuse("an address is not a floating-point number");
    const Ref value = is_symbol ? symbol_address(from, bytes, 0)
                      : is_sum  ? symbol_address(from.parts[0], bytes, static_cast<std::int64_t>(from.bits))
                                : source_or_special(from, opcode.type);
    emit({Operation::mov, unsigned_of(bytes)}, {result(to, opcode.type)}, {value});
}

namespace {

// lo, ls, hi, hs are other names for lt, le, gt, ge.
FlagSet comparison_of(const FlagSet& flags) {
    FlagSet made = flags & FlagSet{Flag::eq,  Flag::ne,  Flag::lt,  Flag::le,     Flag::gt,
                                   Flag::ge,  Flag::equ, Flag::neu, Flag::ltu,    Flag::leu,
                                   Flag::gtu, Flag::geu, Flag::num, Flag::is_nan, Flag::ftz};
    if (flags.has(Flag::lo)) made.add(Flag::lt);
    if (flags.has(Flag::ls)) made.add(Flag::le);
    if (flags.has(Flag::hi)) made.add(Flag::gt);
    if (flags.has(Flag::hs)) made.add(Flag::ge);
    return made;
}

Operation combination_of(const FlagSet& flags) {
    return flags.has(Flag::and_) ? Operation::and_ : flags.has(Flag::or_) ? Operation::or_ : Operation::xor_;
}

const FlagSet integral_roundings{Flag::rni, Flag::rzi, Flag::rmi, Flag::rpi};
const FlagSet float_roundings{Flag::rn, Flag::rz, Flag::rm, Flag::rp};

// True if .sat has no effect, because the destination can hold every source value. PTX does not allow it then.
bool saturates_nothing(const Opcode& opcode) {
    const Type to = opcode.type, from = opcode.second;
    if (!opcode.flags.has(Flag::sat) || !ptx::is_integer(to) || !ptx::is_integer(from)) return false;
    if (ptx::bytes_of(to) > ptx::bytes_of(from)) return ptx::is_signed(to) || !ptx::is_signed(from);
    return to == from;
}

// True if PTX has this conversion with these modifiers.
bool valid_conversion(const Opcode& opcode) {
    const Type to = opcode.type, from = opcode.second;
    const FlagSet integral = opcode.flags & integral_roundings, directed = opcode.flags & float_roundings;
    if (ptx::is_integer(to) && ptx::is_integer(from))
        return integral.empty() && directed.empty() && !opcode.flags.has(Flag::ftz);
    if (ptx::is_integer(to)) return integral.single() && directed.empty();
    const bool flushes = opcode.flags.has(Flag::ftz);
    if (ptx::is_integer(from)) return directed.single() && integral.empty() && (!flushes || to == Type::f32);
    const bool brain = to == Type::bf16 || from == Type::bf16;
    if (brain && opcode.flags.has(Flag::sat)) return false;
    if (to == from) return directed.empty() && (integral.empty() || integral.single());
    const bool narrows = ptx::bytes_of(to) < ptx::bytes_of(from);
    return integral.empty() && (narrows ? directed.single() : directed.empty());
}

}  // namespace

// Both halves of a packed operand, the lower one first.
std::array<Ref, 2> Lowering::unpacked(const ptx::Operand& operand, Type type) {
    const std::array<Ref, 2> halves{temporary(2), temporary(2)};
    Step& step = emit({Operation::unpack, Type::u32, Type::b16}, {}, {source(operand, type)});
    step.list_results({halves[0], halves[1]});
    return halves;
}

// Compares a and b, and combines the result with the predicate operand if the opcode says so.
Ref Lowering::compared(const ptx::Instruction& instruction, const Opcode& opcode, Type type, Ref a, Ref b) {
    const Ref truth = temporary(0);
    emit({Operation::setp, canonical(Operation::setp, type, {}), Type::none, comparison_of(opcode.flags)},
         {truth}, {a, b});
    if ((opcode.flags & FlagSet{Flag::and_, Flag::or_, Flag::xor_}).empty()) return truth;
    const Ref combined = temporary(0);
    emit({combination_of(opcode.flags), Type::pred}, {combined}, {truth, predicate(instruction.operands[3])});
    return combined;
}

// setp.lt.and.f16x2 p|q, a, b, c: p for the lower halves, q for the upper ones.
void Lowering::compare_packed(const ptx::Instruction& instruction, const Opcode& opcode) {
    const ptx::Operand& to = operand(instruction, 0);
    if (to.kind != OperandKind::pair) refuse("{} needs two predicates, p|q", instruction.opcode);
    const Type half = opcode.type == Type::f16x2 ? Type::f16 : Type::bf16;
    const auto a = unpacked(operand(instruction, 1), opcode.type),
               b = unpacked(operand(instruction, 2), opcode.type);
    const Ref low = compared(instruction, opcode, half, a[0], b[0]);
    const Ref high = compared(instruction, opcode, half, a[1], b[1]);
    emit({Operation::mov, Type::pred}, {result_or_sink(to.parts[0], Type::pred)}, {low});
    emit({Operation::mov, Type::pred}, {result_or_sink(to.parts[1], Type::pred)}, {high});
}

// setp.lt.and.f32 p|q, a, b, c: p = (a < b) and c, q = !(a < b) and c.
void Lowering::compare(const ptx::Instruction& instruction, const Opcode& opcode) {
    const ptx::Operand& to = operand(instruction, 0);
    const bool pair = to.kind == OperandKind::pair;
    const bool combined = (opcode.flags & FlagSet{Flag::and_, Flag::or_, Flag::xor_}).single();
    expect_operands(instruction, combined ? 4 : 3);
    if (opcode.type == Type::f16x2 || opcode.type == Type::bf16x2) return compare_packed(instruction, opcode);
    const Ref a = source(operand(instruction, 1), opcode.type);
    const Ref b = source(operand(instruction, 2), opcode.type);
    const Key key{Operation::setp, canonical(Operation::setp, opcode.type, {}), Type::none,
                  comparison_of(opcode.flags)};
    if (!pair && !combined) {
        emit(key, {result_or_sink(to, Type::pred)}, {a, b});
        return;
    }
    const Ref plain = temporary(0);
    emit(key, {plain}, {a, b});
    Ref with = combined ? predicate(instruction.operands[3]) : Ref{};
    const Operation combination = combined ? combination_of(opcode.flags) : Operation::mov;
    const auto write = [&](const ptx::Operand& where, Ref value) {
        Step& step = emit({combination, Type::pred}, {result_or_sink(where, Type::pred)}, {value});
        if (combined) step.sources.push_back(with);
    };
    if (!pair) return write(to, plain);
    const Ref opposite = temporary(0);
    emit({Operation::not_, Type::pred}, {opposite}, {plain});
    // Copies the combining operand, because it may be one of the results.
    if (combined) {
        const Ref kept = temporary(0);
        emit({Operation::mov, Type::pred}, {kept}, {with});
        with = kept;
    }
    write(to.parts[0], plain);
    write(to.parts[1], opposite);
}

// set.lt.u32.f32 d, a, b: all ones or 1.0 if true, else 0. For packed halves, the same in each half of d.
void Lowering::compare_to_value(const ptx::Instruction& instruction, const Opcode& opcode) {
    const bool combined = !(opcode.flags & FlagSet{Flag::and_, Flag::or_, Flag::xor_}).empty();
    if (instruction.operands.size() != (combined ? 4u : 3u))
        refuse("{} needs {} operands", instruction.opcode, combined ? 4 : 3);
    const bool packed = opcode.second == Type::f16x2 || opcode.second == Type::bf16x2;
    const unsigned wide = packed ? 2 : ptx::bytes_of(opcode.type);
    std::uint64_t one = wide == 2 ? 0xffff : 0xffff'ffff;
    if (opcode.type == Type::f32) one = 0x3f80'0000;
    if (opcode.type == Type::f16 || opcode.type == Type::f16x2) one = 0x3c00;
    if (opcode.type == Type::bf16 || opcode.type == Type::bf16x2) one = 0x3f80;
    Layout& layout = functions_.layout();
    const Ref yes = layout.constant(one, wide), no = layout.constant(0, wide);
    const ptx::Operand &first = instruction.operands[1], &second = instruction.operands[2];
    if (!packed) {
        const Ref a = source(first, opcode.second), b = source(second, opcode.second);
        const Ref truth = compared(instruction, opcode, opcode.second, a, b);
        emit({Operation::selp, unsigned_of(wide)}, {result(instruction.operands[0], opcode.type)},
             {yes, no, truth});
        return;
    }
    const Type half = opcode.second == Type::f16x2 ? Type::f16 : Type::bf16;
    const auto a = unpacked(first, opcode.second), b = unpacked(second, opcode.second);
    std::vector<Ref> halves;
    for (std::size_t i = 0; i < 2; ++i) {
        const Ref truth = compared(instruction, opcode, half, a[i], b[i]);
        halves.push_back(temporary(2));
        emit({Operation::selp, Type::u16}, {halves.back()}, {yes, no, truth});
    }
    Step& step =
        emit({Operation::pack, Type::u32, Type::b16}, {result(instruction.operands[0], opcode.type)}, {});
    step.list = std::move(halves);
}

void Lowering::convert(const ptx::Instruction& instruction, const Opcode& opcode) {
    const ptx::Operand& to = operand(instruction, 0);
    if (opcode.type == Type::f16x2 || opcode.type == Type::bf16x2) {
        // cvt.rn.f16x2.f32 d, a, b: a becomes the upper half.
        if (opcode.second != Type::f32 || !(opcode.flags & float_roundings).single()) {
            unsupported(instruction);
        }
        expect_operands(instruction, 3);
        Opcode half = opcode;
        half.type = opcode.type == Type::f16x2 ? Type::f16 : Type::bf16;
        const Ref high = temporary(2), low = temporary(2);
        convert_scalar(high, 2, source(instruction.operands[1], Type::f32), 4, half);
        convert_scalar(low, 2, source(instruction.operands[2], Type::f32), 4, half);
        Step& step = emit({Operation::pack, Type::u32, Type::b16}, {result(to, opcode.type)}, {});
        step.list = {low, high};
        return;
    }
    if (saturates_nothing(opcode))
        refuse("{} is not supported: the destination holds every value of the source, so .sat is illegal",
               instruction.opcode);
    if (!valid_conversion(opcode)) unsupported(instruction);
    expect_operands(instruction, 2);
    const ptx::Operand& from = operand(instruction, 1);
    const unsigned natural = std::max(2u, ptx::bytes_of(opcode.second));
    const bool is_register = from.kind == OperandKind::reg;
    const unsigned given = is_register ? width(from) : natural;
    if (from.kind == OperandKind::special && ptx::is_float(opcode.type))
        refuse("a special register is converted to an integer");
    const unsigned wide = to.kind == OperandKind::reg ? width(to) : 0;
    convert_scalar(result(to, opcode.type, wide), wide, source_or_special(from, opcode.second, given), given,
                   opcode);
}

// Registers may be wider than the types: only the low bits of the source are used, and the result is extended.
void Lowering::convert_scalar(Ref to, unsigned to_bytes, Ref from, unsigned from_bytes,
                              const Opcode& opcode) {
    const unsigned natural_from = std::max(2u, ptx::bytes_of(opcode.second));
    const unsigned natural_to = std::max(2u, ptx::bytes_of(opcode.type));
    if (from_bytes < natural_from || to_bytes < natural_to)
        refuse("a register is too narrow for this conversion");
    if (from_bytes > natural_from) {
        const Ref narrow = temporary(natural_from);
        emit({Operation::cvt, unsigned_of(natural_from), unsigned_of(from_bytes)}, {narrow}, {from});
        from = narrow;
    }
    FlagSet flags = opcode.flags.minus({Flag::rn});
    if (ptx::is_integer(opcode.second)) flags = flags.minus({Flag::ftz});  // no integer is subnormal
    // Converts at the type's own width first, then extends the result to a wider register.
    const Ref direct = to_bytes > natural_to ? temporary(natural_to) : to;
    emit({Operation::cvt, opcode.type, opcode.second, flags}, {direct}, {from});
    if (to_bytes > natural_to) {
        const bool extends = ptx::is_signed(opcode.type);
        const Type narrow =
            natural_to == 2 ? (extends ? Type::s16 : Type::u16) : (extends ? Type::s32 : Type::u32);
        emit({Operation::cvt, unsigned_of(to_bytes), narrow}, {to}, {direct});
    }
}

void Lowering::carry(const ptx::Instruction& instruction, const Opcode& opcode) {
    const bool reads = opcode.row->name.ends_with("c") && opcode.row->name.size() == 4;
    const bool writes = opcode.flags.has(Flag::cc);
    if (carry_.kind == Ref::Kind::none) carry_ = temporary(0);
    const unsigned bytes = ptx::bytes_of(opcode.type);
    const std::size_t count = opcode.row->operation == Operation::mad_carry ? 3 : 2;
    expect_operands(instruction, count + 1);
    std::vector<Ref> sources;
    for (std::size_t i = 0; i < count; ++i)
        sources.push_back(source(operand(instruction, i + 1), opcode.type));
    sources.push_back(reads ? carry_ : functions_.layout().constant(0, 0));
    const FlagSet half = opcode.flags & FlagSet{Flag::lo, Flag::hi};
    const Type type = half.has(Flag::hi) ? opcode.type : unsigned_of(bytes);
    emit({opcode.row->operation, type, Type::none, half},
         {result(operand(instruction, 0), opcode.type), writes ? carry_ : temporary(0)}, std::move(sources));
}

// lop3.b32 d, a, b, c, table. With a predicate: lop3.or.b32 d|p, a, b, c, table, q, where p = (d != 0) or q.
void Lowering::lookup3(const ptx::Instruction& instruction, const Opcode& opcode) {
    const bool combines = !(opcode.flags & FlagSet{Flag::and_, Flag::or_}).empty();
    const ptx::Operand& to = operand(instruction, 0);
    if (instruction.operands.size() != (combines ? 6u : 5u) || (to.kind == OperandKind::pair) != combines)
        refuse("{} with these operands is not supported", instruction.opcode);
    std::vector<Ref> sources;
    for (std::size_t i = 1; i <= 3; ++i) sources.push_back(source(instruction.operands[i], Type::b32));
    const ptx::Operand& table = instruction.operands[4];
    if (table.kind != OperandKind::integer) refuse("lop3 needs a constant table");
    const Ref d = combines ? temporary(4) : result(to, Type::b32);
    emit({Operation::lop3, Type::u32}, {d}, std::move(sources)).immediate =
        static_cast<std::int64_t>(table.bits & 0xff);
    if (!combines) return;
    const Ref truth = temporary(0), other = predicate(instruction.operands[5]);
    emit({Operation::setp, Type::u32, Type::none, {Flag::ne}}, {truth},
         {d, functions_.layout().constant(0, 4)});
    emit({combination_of(opcode.flags), Type::pred}, {result_or_sink(to.parts[1], Type::pred)},
         {truth, other});
    emit({Operation::mov, Type::u32}, {result_or_sink(to.parts[0], Type::b32)}, {d});
}

}  // namespace emulated::program
