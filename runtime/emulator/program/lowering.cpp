#include "program/lowering.hpp"

#include <algorithm>
#include <span>

namespace emulated::program {

Lowering::Lowering(Functions& functions, std::size_t index,
                   const std::map<std::uint32_t, std::uint32_t>& files,
                   const std::vector<Kernel::Parameter>& parameters)
    : functions_(functions),
      index_(index),
      function_(*functions.at(index).function),
      files_(files),
      parameters_(parameters) {}

Body Lowering::run(std::vector<Refused>& refused) {
    for (const Type type : function_.registers) {
        const unsigned bytes = type == Type::pred ? 0 : std::clamp(ptx::bytes_of(type), 2u, 8u);
        body_.register_bytes.push_back(static_cast<std::uint8_t>(bytes));
    }
    for (std::size_t i = 0; i < function_.registers.size(); ++i) {
        if (function_.registers[i] != Type::b128) continue;
        halves_[static_cast<std::int32_t>(i)] = static_cast<std::int32_t>(temporary(8).index);
        temporary(8);
    }
    body_.labels.assign(function_.labels.size(), 0);
    enter_function();
    std::vector<std::vector<std::int32_t>> standing(function_.body.size() + 1);
    for (std::size_t i = 0; i < function_.labels.size(); ++i) {
        standing[function_.labels[i].at].push_back(static_cast<std::int32_t>(i));
    }
    for (std::size_t i = 0; i < function_.body.size(); ++i) {
        for (const std::int32_t label : standing[i]) stand(label);
        try {
            instruction(function_.body[i]);
        } catch (const Refused& found) {  // continues, so that one report names all errors
            refused.push_back(found);
        }
    }
    for (const std::int32_t label : standing.back()) stand(label);
    leave_function();  // a body may end without ret, or with a branch over one
    return std::move(body_);
}

std::int32_t Lowering::new_label() {
    body_.labels.push_back(0);
    return static_cast<std::int32_t>(body_.labels.size() - 1);
}

void Lowering::stand(std::int32_t label) {
    body_.labels[static_cast<std::size_t>(label)] = body_.steps.size();
}

// A guarded instruction that is one elementwise step runs under a smaller mask. Longer ones are skipped by a branch.
void Lowering::instruction(const ptx::Instruction& instruction) {
    const auto index_of = [&](std::uint32_t number) {
        const auto file = files_.find(number);
        return file == files_.end() ? 0 : file->second;
    };
    line_ = {instruction.line, index_of(instruction.file), instruction.source_line,
             index_of(instruction.caller_file), instruction.caller_line};
    if (instruction.opcode == ptx::branch_targets) return;
    auto found = find_operation(instruction.opcode);
    if (const auto* refusal = std::get_if<Refusal>(&found)) refuse(refusal->reason);
    const Opcode& opcode = std::get<Opcode>(found);
    if (instruction.guard < 0 || does(opcode.row->operation, Does::jumps))
        return dispatch(instruction, opcode);

    const Ref guard{Ref::Kind::virtual_register, static_cast<std::uint32_t>(instruction.guard)};
    const std::size_t before = body_.steps.size();
    Step& begin = emit({Operation::guard}, {}, {guard});
    begin.bits = instruction.guard_negated ? Instruction::negated : std::uint16_t{0};
    begin.immediate = 3;  // guard, the instruction, `unguard`
    dispatch(instruction, opcode);
    if (does(body_.steps.back().key.operation, Does::by_lane) && body_.steps.size() == before + 2) {
        body_.steps.back().partial = true;
        emit({Operation::unguard}, {}, {});
        return;
    }
    Step& around = body_.steps[before];
    around.key.operation = Operation::branch;
    around.bits = instruction.guard_negated ? std::uint16_t{0} : Instruction::negated;
    const std::int32_t after = new_label();
    body_.steps[before].label = after;
    stand(after);
}

void Lowering::branch(const ptx::Instruction& instruction, const Opcode&) {
    expect_operands(instruction, 1);
    const ptx::Operand& target = operand(instruction, 0);
    if (target.kind != OperandKind::label) {
        refuse("the label '{}' is not defined in this function", target.name);
    }
    if (instruction.guard < 0) {
        emit({Operation::bra}, {}, {}).label = target.index;
        return;
    }
    const Ref guard{Ref::Kind::virtual_register, static_cast<std::uint32_t>(instruction.guard)};
    Step& step = emit({Operation::branch}, {}, {guard});
    step.label = target.index;
    step.bits = instruction.guard_negated ? Instruction::negated : std::uint16_t{0};
}

void Lowering::leave(const ptx::Instruction& instruction, const Opcode&) {
    expect_operands(instruction, 0);
    leave_function();
}

// Lowers brx.idx to a binary search for the index among runs of equal targets.
void Lowering::indexed_branch(const ptx::Instruction& instruction, const Opcode&) {
    expect_operands(instruction, 2);
    const Ref index = source(operand(instruction, 0), Type::u32);
    const ptx::Operand& list = operand(instruction, 1);
    const bool is_label = list.kind == OperandKind::label;
    const std::size_t at = is_label ? function_.labels[static_cast<std::size_t>(list.index)].at : 0;
    if (!is_label || at >= function_.body.size() || function_.body[at].opcode != ptx::branch_targets ||
        function_.body[at].operands.empty())
        refuse("brx.idx needs the label of a .branchtargets directive");
    struct Run {
        std::size_t first;  // the first index of the run
        std::int32_t label;
    };
    std::vector<Run> runs;
    const std::vector<ptx::Operand>& targets = function_.body[at].operands;
    for (std::size_t i = 0; i < targets.size(); ++i) {
        if (targets[i].kind != OperandKind::label)
            refuse("the label '{}' is not defined in this function", targets[i].name);
        if (runs.empty() || runs.back().label != targets[i].index) runs.push_back({i, targets[i].index});
    }
    // The recursion depth is the logarithm of the number of targets.
    const auto search = [&](const auto& self, std::span<const Run> among) -> void {
        if (among.size() == 1) {
            emit({Operation::bra}, {}, {}).label = among[0].label;
            return;
        }
        const std::size_t half = among.size() / 2;
        const Ref below = temporary(0);
        emit({Operation::setp, Type::u32, Type::none, {Flag::lt}}, {below},
             {index, functions_.layout().constant(among[half].first, 4)});
        const std::int32_t lower = new_label();
        emit({Operation::branch}, {}, {below}).label = lower;
        self(self, among.subspan(half));
        stand(lower);
        self(self, among.first(half));
    };
    search(search, runs);
}

void Lowering::dispatch(const ptx::Instruction& instruction, const Opcode& opcode) {
    static constexpr void (Lowering::*lower[])(const ptx::Instruction&, const Opcode&) = {
#define OPERATION(name, does, lowering) &Lowering::lowering,
#define STEP(name, does) nullptr,
#include "program/table/rows.hpp"
    };
    (this->*lower[static_cast<std::size_t>(opcode.row->operation)])(instruction, opcode);
}

void Lowering::letters(const ptx::Instruction& instruction, const Opcode& opcode) {
    by_letters(instruction, opcode, opcode.row->operands).bits |= order_of(opcode);
}

Step& Lowering::by_letters(const ptx::Instruction& instruction, const Opcode& opcode,
                           std::string_view letters) {
    const std::size_t count = count_without_policy(instruction, opcode);
    if (opcode.row->neutral.has(Flag::sync) && !opcode.flags.has(Flag::sync))
        refuse("{} without .sync is not supported: compile for compute_70 or newer", opcode.row->name);
    expect_operands(instruction, count, letters.size(), letters.size());
    std::vector<Ref> results, sources;
    std::uint16_t bits = 0;
    for (std::size_t i = 0; i < letters.size(); ++i) {
        const ptx::Operand& given = instruction.operands[i];
        const bool is_pred = opcode.type == Type::pred, is_pair = given.kind == OperandKind::pair;
        const char letter = letters[i];
        if (letter == 'D') results.push_back(result(given, opcode.type));
        if (letter == 'S') results.push_back(result_or_sink(given, opcode.type));
        if (letter == 'd') results.push_back(result(given, twice_as_wide(opcode.type)));
        if (letter == 'u') results.push_back(result(given, Type::u32));
        if (letter == 'b') results.push_back(result(given, Type::b32));
        if (letter == 'P') results.push_back(result(given, Type::pred));
        if (letter == 'V' || letter == 'v') {
            if (is_pair && opcode.flags.has(Flag::any)) unsupported(instruction);
            const Type type = letter == 'v' ? Type::u32 : Type::b32;
            const ptx::Operand& first = is_pair ? given.parts[0] : given;
            results.push_back(is_pair && letter == 'v' ? result_or_sink(first, type) : result(first, type));
            results.push_back(is_pair ? result_or_sink(given.parts[1], Type::pred) : temporary(0));
        }
        if (letter == 'A') sources.push_back(is_pred ? predicate(given) : source(given, opcode.type));
        if (letter == 'a') sources.push_back(source(given, twice_as_wide(opcode.type)));
        if (letter == 'U') sources.push_back(source(given, Type::u32));
        if (letter == 'C') {
            sources.push_back(source(given, Type::u32));
            if (given.kind == OperandKind::integer && given.bits > 255)
                refuse("a constant must be below 256 here");
        }
        if (letter == 'B') sources.push_back(source(given, Type::b32));
        if (letter == 'W') sources.push_back(source(given, Type::u64));
        if (letter == 'Q') sources.push_back(predicate(given));
        if (letter == 'F') sources.push_back(source(given, opcode.second));
        if (letter == 'I' && given.kind != OperandKind::integer)
            refuse("an operand must be an integer constant here");
        if (letter == 'M') {
            sources.push_back(whole_address(given, opcode.flags & every_space));
            if (opcode.flags.has(Flag::shared_cluster)) bits = Instruction::in_cluster;
        }
        if (letter == '*') unsupported(instruction);
    }
    Step& step = emit(key_of(opcode), std::move(results), std::move(sources));
    step.bits = bits;
    return step;
}

}  // namespace emulated::program
