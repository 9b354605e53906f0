#include "program/functions.hpp"

namespace emulated::program {

CallOperands call_operands(const ptx::Instruction& instruction) {
    CallOperands found;
    for (const ptx::Operand& each : instruction.operands) {
        if (each.kind == ptx::Operand::Kind::list && !found.target)
            found.results = &each;
        else if (each.kind == ptx::Operand::Kind::list)
            found.arguments = &each;
        else if (!found.target)
            found.target = &each;
    }
    return found;
}

std::size_t Functions::require(const ptx::Function& function) {
    const auto [known, is_new] = indices_.try_emplace(&function, entries_.size());
    if (!is_new) return known->second;
    Entry entry;
    entry.function = &function;
    if (!function.is_entry) {
        entry.return_slot = layout_.reserve(128);
        for (const auto* list : {&function.results, &function.parameters}) {
            for (const std::int32_t index : *list) {
                const ptx::Variable& variable = function.variables[static_cast<std::size_t>(index)];
                entry.argument_places.push_back(layout_.reserve(32 * stride(variable)));
            }
        }
    }
    entries_.push_back(std::move(entry));
    return entries_.size() - 1;
}

}  // namespace emulated::program
