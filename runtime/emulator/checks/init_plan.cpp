#include "checks/init_plan.hpp"

#include <algorithm>

namespace emulated::checks::values {
namespace {

using program::Code;
using program::Operation;
using u32 = std::uint32_t;

struct KindRow {
    Operation operation;
    Kind kind;
};
constexpr KindRow kinds_of_init[] = {
    {Operation::branch, Kind::decides},
    {Operation::guard, Kind::decides},
    {Operation::compare_branch, Kind::compares},
    {Operation::compare_guard, Kind::compares},
    {Operation::ld, Kind::load},
    {Operation::ld_used, Kind::load},
    {Operation::st, Kind::store},
    {Operation::atom, Kind::atomic},
    {Operation::atom_wide, Kind::writes},
    {Operation::copy_async, Kind::copy},
    {Operation::shfl, Kind::shuffle},
    {Operation::vote, Kind::exchange},
    {Operation::match, Kind::exchange},
    {Operation::redux, Kind::exchange},
    {Operation::bar, Kind::barrier},
    {Operation::tex, Kind::image},
    {Operation::tld4, Kind::image},
    {Operation::suld, Kind::image},
    {Operation::sust, Kind::writes},
    {Operation::sured, Kind::writes},
    {Operation::stmatrix, Kind::writes},
    {Operation::store_matrix, Kind::writes},
    {Operation::bulk_copy, Kind::writes},
    {Operation::bulk_reduce, Kind::writes},
    {Operation::tensor_copy, Kind::writes},
    {Operation::tensor_reduce, Kind::writes},
    {Operation::tensor_map_replace, Kind::writes},
    {Operation::tensor_map_copy, Kind::writes},
    {Operation::store_async, Kind::writes},
    {Operation::reduce_async, Kind::writes},
    {Operation::load_argument, Kind::load_argument},
    {Operation::store_argument, Kind::store_argument},
    {Operation::copy_argument, Kind::copy_argument},
    {Operation::call_pointer, Kind::decides},
};

}  // namespace

Plan::Plan(const Code& code) : code_(code), numbers_(code.register_bytes / 4 + 1, 0) {
    for (const Code::Constant& each : code.constants)
        fixed_[each.offset] = static_cast<std::uint8_t>(each.bytes);
    for (const Code::SpecialSlot& each : code.specials) fixed_[each.offset] = 4;
    steps_.reserve(code.instructions.size());
    for (u32 pc = 0; pc < code.instructions.size(); ++pc) add(pc);
}

void Plan::add(u32 pc) {
    const program::Instruction& i = code_.instructions[pc];
    const program::Key& key = code_.keys[pc];
    const Code::Operands& operands = code_.operands[pc];
    Step step;
    step.first = static_cast<u32>(slots_.size());
    step.results = static_cast<std::uint16_t>(operands.results + operands.listed_results);
    step.sources = static_cast<std::uint16_t>(operands.sources + operands.listed - operands.listed_results);
    const auto listed = [&](u32 from, u32 to) {
        for (u32 k = i.operand[0] + from; k < i.operand[0] + to; ++k)
            slots_.push_back(slot(code_.lists[k], code_.list_bytes[k]));
    };
    const auto given = [&](u32 from, u32 count) {
        for (u32 k = operands.first + from; k < operands.first + from + count; ++k)
            slots_.push_back(slot(i.operand[k], operands.bytes[k]));
    };
    if (key.operation == Operation::take_results || key.operation == Operation::restore_frame) {
        for (step.results = 0; step.results < i.count; ++step.results)
            slots_.push_back(slot(code_.lists[i.operand[0] + 2u * step.results], Code::Operands::fixed));
    }
    if (key.operation == Operation::call_pointer) {
        for (const Code::Callee& callee : code_.callees) {
            for (const Code::Place& each : callee.parameters)
                slots_.push_back(slot(each.offset, Code::Operands::fixed));
            step.results = static_cast<std::uint16_t>(step.results + callee.parameters.size());
        }
    }
    listed(0, operands.listed_results);
    given(0, operands.results);
    listed(operands.listed_results, operands.listed);
    given(operands.results, operands.sources);
    const auto* row = std::ranges::find(kinds_of_init, key.operation, &KindRow::operation);
    step.how = propagation_of(key);
    step.kind = row != std::end(kinds_of_init)  ? row->kind
                : step.how.undefined != nullptr ? Kind::propagates
                                                : Kind::defines;
    steps_.push_back(step);
}

Slot Plan::slot(u32 offset, std::uint8_t bytes) {
    const auto fixed = fixed_.find(offset);
    if (fixed != fixed_.end()) return {offset, 0, fixed->second};
    u32& number = numbers_[offset / 4];
    if (number == 0) number = count_++;
    return {offset, number, bytes};
}

}  // namespace emulated::checks::values
