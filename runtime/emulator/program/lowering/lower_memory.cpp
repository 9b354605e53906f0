// Lowering of loads, stores, atomics, votes and barriers.
#include <algorithm>
#include <bit>

#include "program/lowering.hpp"

namespace emulated::program {
namespace {

// Only the space selects the handler. Constants are in global memory. Without a flag the address is generic.
FlagSet handled_space(const FlagSet& flags) {
    if (flags.has(Flag::global) || flags.has(Flag::constant)) return {Flag::global};
    return flags & FlagSet{Flag::shared, Flag::local, Flag::param};
}

Type memory_type(Type type, unsigned register_bytes) {
    const unsigned bytes = ptx::bytes_of(type);
    if (!ptx::is_signed(type) || bytes == register_bytes) return unsigned_of(bytes);
    return type;
}

/// .volatile is not strong here: it restricts the compiler and says nothing about other threads.
std::uint16_t strength_of(const Opcode& opcode) {
    const FlagSet strong{Flag::relaxed, Flag::acquire, Flag::release, Flag::mmio};
    const unsigned bits = ((opcode.flags & strong).empty() ? 0 : Instruction::strong) |
                          (opcode.flags.has(Flag::nc) ? Instruction::is_constant : 0) |
                          (opcode.flags.has(Flag::is_volatile) ? Instruction::is_volatile : 0) |
                          order_of(opcode);
    return static_cast<std::uint16_t>(bits);
}

/// bar is barrier.aligned.
std::uint16_t alignment_of(const Opcode& opcode) {
    return opcode.row->name == "bar" || opcode.flags.has(Flag::aligned) ? Instruction::is_aligned
                                                                        : std::uint16_t{0};
}

}  // namespace

std::uint16_t order_of(const Opcode& opcode) {
    const auto has = [&](FlagSet any) { return !(opcode.flags & any).empty(); };
    const bool both = opcode.row->name == "membar" || has({Flag::acq_rel, Flag::sc});
    const unsigned bits = (both || has({Flag::acquire}) ? Instruction::acquires : 0) |
                          (both || has({Flag::release}) ? Instruction::releases : 0) |
                          (has({Flag::cta}) ? Instruction::in_block : 0);
    return static_cast<std::uint16_t>(bits);
}

// The space of a variable that an operand names.
ptx::Space Lowering::space_of(const ptx::Operand& operand) const {
    if (operand.kind == OperandKind::variable) return function_.variable(operand.index).space;
    const auto& globals = functions_.symbols().variables;
    const auto found = operand.kind == OperandKind::symbol ? globals.find(operand.name) : globals.end();
    return found == globals.end() ? ptx::Space::generic : found->second->space;
}

// A variable in an address must be in the space that the instruction names, if it names one.
void Lowering::require_space(const ptx::Operand& base, const FlagSet& spaces) const {
    static constexpr std::pair<ptx::Space, Flag> pairs[] = {{ptx::Space::global, Flag::global},
                                                            {ptx::Space::constant, Flag::constant},
                                                            {ptx::Space::shared, Flag::shared},
                                                            {ptx::Space::local, Flag::local},
                                                            {ptx::Space::param, Flag::param}};
    const ptx::Space space = space_of(base);
    const auto* own = std::ranges::find(pairs, space, [](const auto& each) { return each.first; });
    const bool shared = space == ptx::Space::shared && spaces.has(Flag::shared_cluster);
    if (own == std::end(pairs) ||
        (spaces.empty() ? own->second == Flag::param || own->second == Flag::constant
                        : !spaces.has(own->second) && !shared))
        refuse("the variable of an address does not lie in the memory that the instruction accesses");
}

Lowering::Address Lowering::address(const ptx::Operand& given, const FlagSet& spaces) {
    if (given.kind != OperandKind::address || given.parts.size() > 1)
        refuse("this kind of address is not supported");
    const auto offset = static_cast<std::int64_t>(given.bits);
    if (given.parts.empty() && !spaces.has(Flag::local)) refuse("a constant address is one of local memory");
    if (given.parts.empty()) return {functions_.layout().constant(0, 8), offset, false};
    const ptx::Operand& base = given.parts[0];
    if (base.kind != OperandKind::reg) {
        require_space(base, spaces);
        return {symbol_address(base, 8, 0), offset, false};
    }
    const unsigned bytes = width(base);
    if (bytes != 4 && bytes != 8) refuse("an address register has 32 or 64 bits");
    require_register_of(base, bytes == 4 ? Type::u32 : Type::u64, bytes);
    if (bytes == 4 && (spaces.empty() || spaces == FlagSet{Flag::global}))
        refuse("addresses of global memory have 64 bits");
    return {register_of(base), offset, bytes == 4};
}

Step& Lowering::access(Step& step, const Address& where) {
    step.immediate = where.offset;
    step.bits = where.narrow ? Instruction::narrow : std::uint16_t{0};
    step.memory = true;
    return step;
}

Lowering::Parts Lowering::parts_of(const ptx::Operand& given, const ptx::Instruction& instruction,
                                   const Opcode& opcode, const char* role) {
    Parts made;
    // A 128-bit register is a pair of 64-bit registers.
    const bool halves = opcode.type == Type::b128;
    made.operands = elements_of(halves ? halves_of(given) : given);
    made.lanes = opcode.flags.has(Flag::v4) ? 4 : halves || opcode.flags.has(Flag::v2) ? 2 : 1;
    if (made.operands.size() != made.lanes)
        refuse("{} needs {} {} registers", instruction.opcode, made.lanes, role);
    made.bytes = halves ? 8 : ptx::bytes_of(opcode.type);
    made.wide = std::max(2u, made.bytes);
    for (const ptx::Operand& part : made.operands) {
        if (part.kind != OperandKind::reg) continue;
        made.wide = width(part);
        // An 8-bit register takes 16 bits here, so its declared type is compared and not `width`.
        if (!halves && ptx::bytes_of(function_.registers[static_cast<std::size_t>(part.index)]) < made.bytes)
            refuse("the {} register is narrower than the value", role);
    }
    require_alike(made.operands);
    return made;
}

// Expects `operands` operands, and then an L2 policy if the opcode has one. The policy must be a register or constant,
// and has no effect.
void Lowering::take_policy(const ptx::Instruction& instruction, const Opcode& opcode, std::size_t operands) {
    const bool has_policy = opcode.flags.has(Flag::policy);
    expect_operands(instruction, operands + (has_policy ? 1 : 0));
    if (has_policy) source(instruction.operands[operands], Type::b64);
}

void Lowering::load(const ptx::Instruction& instruction, const Opcode& opcode) {
    take_policy(instruction, opcode, 2);
    const ptx::Operand& to = operand(instruction, 0);
    const ptx::Operand& from = operand(instruction, 1);
    const bool shared_with_others =
        !(opcode.flags & FlagSet{Flag::is_volatile, Flag::relaxed, Flag::acquire, Flag::mmio}).empty();
    if (shared_with_others && (opcode.flags.has(Flag::param) || opcode.flags.has(Flag::constant)))
        refuse("{} is not supported: nobody writes that memory meanwhile", instruction.opcode);
    const auto [parts, lanes, bytes, wide] = parts_of(to, instruction, opcode, "destination");
    // .pragma "used_bytes_mask N": unused bytes may be outside any allocation.
    const std::uint32_t all = static_cast<std::uint32_t>((std::uint64_t{1} << (bytes * lanes)) - 1);
    const std::uint32_t used = instruction.used_bytes & all;
    std::vector<Ref> results;
    results.reserve(parts.size());
    for (const ptx::Operand& part : parts)
        results.push_back(lanes > 1 ? result_or_sink(part, opcode.type, wide)
                                    : result(part, opcode.type, wide));
    Key key{Operation::ld, memory_type(opcode.type, wide), register_type(wide), handled_space(opcode.flags)};

    // Parameters by name: those of a kernel are equal for all lanes, those of a call are in the register file.
    if (const ptx::Variable* variable = argument_variable(from)) {
        require_space(from.parts[0], opcode.flags & every_space);
        const std::int32_t index = from.parts[0].index;
        if (is_returned(index))
            refuse("'{}' is what this function returns and cannot be loaded", variable->name);
        require_inside(*variable, from.bits, static_cast<unsigned>(std::bit_width(used)), bytes);
        bool of_kernel = false;
        std::int64_t offset = static_cast<std::int64_t>(from.bits);
        for (std::size_t i = 0; function_.is_entry && i < function_.parameters.size(); ++i) {
            if (function_.parameters[i] != index) continue;
            of_kernel = true;
            offset += parameters_[i].offset;
        }
        key.operation = of_kernel ? Operation::load_parameter : Operation::load_argument;
        key.flags = {};
        for (std::size_t i = 0; i < results.size(); ++i) {
            if (from.bits + (i + 1) * bytes > variable->bytes &&
                (used >> (i * bytes) & ((1u << bytes) - 1)) == 0)
                continue;
            Step& step = emit(key, {results[i]}, {});
            step.immediate = offset + static_cast<std::int64_t>(i * bytes);
            if (of_kernel) continue;
            step.sources = {{Ref::Kind::fixed, argument_place(index)}};
            step.extra = Functions::stride(*variable);
        }
        return;
    }
    if (shared_with_others) functions_.layout().may_spin();
    require_cluster_address(from, opcode, bytes);
    const Address where = address(from, opcode.flags & every_space);
    if (used != all) key.operation = Operation::ld_used;
    Step& step = access(lanes == 1 ? emit(key, results, {where.base}) : emit(key, {}, {where.base}), where);
    step.bits |= strength_of(opcode);
    step.memory = used == all;
    step.used_bytes = used;
    if (lanes > 1) step.list_results(std::move(results));
}

void Lowering::store(const ptx::Instruction& instruction, const Opcode& opcode) {
    take_policy(instruction, opcode, 2);
    const ptx::Operand& to = operand(instruction, 0);
    const ptx::Operand& from = operand(instruction, 1);
    if (opcode.flags.has(Flag::constant)) refuse("constant memory cannot be stored to");
    const auto [parts, lanes, bytes, wide] = parts_of(from, instruction, opcode, "source");
    std::vector<Ref> values;
    values.reserve(parts.size());
    for (const ptx::Operand& part : parts) values.push_back(source(part, opcode.type, wide));
    Key key{Operation::st, unsigned_of(bytes), register_type(wide), handled_space(opcode.flags)};

    if (const ptx::Variable* variable = argument_variable(to)) {
        require_space(to.parts[0], opcode.flags & every_space);
        if (is_passed(to.parts[0].index))
            refuse("'{}' is passed to this function and cannot be stored to", variable->name);
        require_inside(*variable, to.bits, std::uint64_t{bytes} * lanes, bytes);
        key.operation = Operation::store_argument;
        key.flags = {};
        const std::uint32_t place = argument_place(to.parts[0].index);
        for (std::size_t i = 0; i < values.size(); ++i) {
            Step& step = emit(key, {}, {{Ref::Kind::fixed, place}, values[i]});
            step.immediate = static_cast<std::int64_t>(to.bits + i * bytes);
            step.extra = Functions::stride(*variable);
        }
        return;
    }
    if (opcode.flags.has(Flag::param)) refuse("a kernel's parameters cannot be stored to");
    require_cluster_address(to, opcode, bytes);
    const Address where = address(to, opcode.flags & every_space);
    Step& step =
        access(lanes == 1 ? emit(key, {}, {values[0], where.base}) : emit(key, {}, {where.base}), where);
    step.bits |= strength_of(opcode);
    if (lanes > 1) step.list = std::move(values);
}

// red is an atom without a result.
void Lowering::atomic(const ptx::Instruction& instruction, const Opcode& opcode) {
    const bool reduces = opcode.row->operation == Operation::red;
    if (!reduces) functions_.layout().may_spin();
    const std::size_t first = reduces ? 0 : 1;
    const unsigned bytes = ptx::bytes_of(opcode.type);
    const FlagSet flags = (opcode.flags & opcode.row->selecting).minus({Flag::shared_cluster});
    const bool cas = flags.has(Flag::cas);
    const Ref d = reduces ? temporary(bytes) : result_or_sink(operand(instruction, 0), opcode.type);
    require_cluster_address(operand(instruction, first), opcode, bytes);
    const Address where = address(operand(instruction, first), opcode.flags & every_space);
    const Ref b = source(operand(instruction, first + 1), opcode.type);
    const Ref c = cas ? source(operand(instruction, first + 2), opcode.type) : b;
    take_policy(instruction, opcode, first + (cas ? 3 : 2));
    const Type type = canonical(Operation::atom, opcode.type, flags);
    Step& step = access(emit({Operation::atom, type, Type::none, flags}, {d}, {where.base, b, c}), where);
    step.bits |= Instruction::strong | order_of(opcode);
}

// PTX makes each element atomic and not the whole vector, so each element gets an atomic of its own. The results are in
// temporaries until all are done, because a result register may also be the source of a later element.
void Lowering::atomic_vector(const ptx::Instruction& instruction, const Opcode& opcode) {
    const bool reduces = opcode.row->operation == Operation::red_vector;
    const unsigned bytes = ptx::bytes_of(opcode.type);
    const std::size_t first = reduces ? 0 : 1;
    take_policy(instruction, opcode, first + 2);
    const FlagSet& flags = opcode.flags;
    const std::size_t lanes = flags.has(Flag::v8) ? 8 : flags.has(Flag::v4) ? 4 : flags.has(Flag::v2) ? 2 : 0;
    const ptx::Operand& values = instruction.operands[first + 1];
    const bool fits =
        values.parts.size() == lanes && (reduces || instruction.operands[0].parts.size() == lanes);
    if (lanes == 0 || lanes * bytes > 16 || !fits) unsupported(instruction);
    const Address where = address(instruction.operands[first], opcode.flags & every_space);
    FlagSet selecting = flags & FlagSet{Flag::add, Flag::min, Flag::max};
    if (flags.has(Flag::global)) selecting.add(Flag::global);
    std::vector<Ref> results;
    for (std::size_t lane = 0; lane < lanes; ++lane) {
        const Ref value = source(values.parts[lane], opcode.type);
        results.push_back(temporary(bytes));
        Step& step = access(emit({Operation::atom, opcode.type, Type::none, selecting}, {results.back()},
                                 {where.base, value, value}),
                            where);
        step.immediate += static_cast<std::int64_t>(lane * bytes);
        step.bits |= Instruction::strong | order_of(opcode);
        // The first element checks the alignment of the whole vector.
        if (lane == 0) step.used_bytes = static_cast<std::uint32_t>(lanes * bytes);
    }
    if (reduces) return;
    for (std::size_t lane = 0; lane < lanes; ++lane)
        emit({Operation::mov, unsigned_of(bytes)},
             {result_or_sink(instruction.operands[0].parts[lane], opcode.type)}, {results[lane]});
}

// atom.exch.b128 d, [a], b and atom.cas.b128 d, [a], b, c.
void Lowering::atomic_wide(const ptx::Instruction& instruction, const Opcode& opcode) {
    functions_.layout().may_spin();
    const bool cas = opcode.flags.has(Flag::cas);
    take_policy(instruction, opcode, cas ? 4 : 3);
    const ptx::Operand d = halves_of(instruction.operands[0]), b = halves_of(instruction.operands[2]),
                       c = cas ? halves_of(instruction.operands[3]) : b;
    const Address where = address(instruction.operands[1], opcode.flags & every_space);
    std::vector<Ref> list;
    for (const ptx::Operand* each : {&b, &c}) {
        for (const ptx::Operand& half : each->parts) list.push_back(source(half, Type::b64));
    }
    Step& step = access(emit(untyped_key(opcode),
                             {result(d.parts[0], Type::b64), result(d.parts[1], Type::b64)}, {where.base}),
                        where);
    step.bits |= Instruction::strong | order_of(opcode);
    step.list = std::move(list);
}

void Lowering::discard(const ptx::Instruction& instruction, const Opcode& opcode) {
    constexpr std::uint64_t line = 128;
    const ptx::Operand& size = operand(instruction, 1);
    if (size.kind != OperandKind::integer || size.bits != line)
        refuse("{} discards {} bytes", instruction.opcode, line);
    const Address where = address(operand(instruction, 0), opcode.flags & every_space);
    access(emit(untyped_key(opcode), {}, {where.base}), where);
}

// Creates a cache eviction policy. Its value does not matter, because the instructions that take a policy ignore it.
void Lowering::create_policy(const ptx::Instruction& instruction, const Opcode& opcode) {
    const bool of_range = opcode.flags.has(Flag::range), converts = opcode.flags.has(Flag::cvt);
    const std::size_t count = instruction.operands.size();
    if (of_range ? count != 4 : converts ? count != 2 : count != 1 && count != 2)
        refuse("{} with {} operands is not supported", instruction.opcode, count);
    if (of_range) address(instruction.operands[1]);
    for (std::size_t i = of_range ? 2 : 1; i < count; ++i)
        source(instruction.operands[i], converts ? Type::b64 : of_range ? Type::u32 : Type::f32);
    emit({Operation::mov, Type::u64}, {result(operand(instruction, 0), Type::b64)},
         {functions_.layout().constant(1, 8)});
}

void Lowering::vote(const ptx::Instruction& instruction, const Opcode& opcode) {
    if (opcode.flags.has(Flag::ballot) != (opcode.type == Type::b32)) unsupported(instruction);
    by_letters(instruction, opcode, "DQU");
}

// Checks constant operands: a block has 16 barriers, and thread counts are multiples of the warp size.
void Lowering::require_barrier(const ptx::Operand& number, const ptx::Operand* threads) const {
    if (number.kind == OperandKind::integer && number.bits > 15)
        refuse("a block has the barriers 0 to 15, and not {}", number.bits);
    if (threads != nullptr && threads->kind == OperandKind::integer && threads->bits % 32 != 0)
        refuse("whole warps wait at a barrier: {} is not a multiple of 32", threads->bits);
}

void Lowering::barrier(const ptx::Instruction& instruction, const Opcode& opcode) {
    functions_.layout().has_barrier();
    const bool counted = instruction.operands.size() == 2;
    require_barrier(operand(instruction, 0), counted ? &instruction.operands[1] : nullptr);
    if (!counted && opcode.flags.has(Flag::arrive))
        refuse("{} needs the number of threads", instruction.opcode);
    by_letters(instruction, opcode, counted ? "UU" : "U").bits =
        static_cast<std::uint16_t>((counted ? Instruction::has_count : 0) | alignment_of(opcode));
}

// bar.red d, barrier, [count,] predicate: a barrier that counts predicates, then a step that reads the count.
void Lowering::reducing_barrier(const ptx::Instruction& instruction, const Opcode& opcode) {
    functions_.layout().has_barrier();
    const std::size_t count = instruction.operands.size();
    if (count != 3 && count != 4) refuse("{} takes 3 or 4 operands, got {}", instruction.opcode, count);
    const bool counted = count == 4;
    require_barrier(instruction.operands[1], counted ? &instruction.operands[2] : nullptr);
    const Ref which = source(instruction.operands[1], Type::u32);
    const Ref threads = counted ? source(instruction.operands[2], Type::u32) : which;
    Step& step = emit({Operation::bar, Type::none, Type::none, {Flag::sync}}, {},
                      {which, threads, predicate(instruction.operands[count - 1])});
    step.bits = static_cast<std::uint16_t>(Instruction::counts | (counted ? Instruction::has_count : 0) |
                                           alignment_of(opcode));
    emit({Operation::bar_red, opcode.type, Type::none, opcode.flags & opcode.row->selecting},
         {result(instruction.operands[0], opcode.type)}, {which});
}

}  // namespace emulated::program
