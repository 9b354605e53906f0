#include "program/functions.hpp"

#include <algorithm>

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
    for (std::size_t i = 0; i < entries_.size(); ++i) {
        if (entries_[i].function == &function) return i;
    }
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

std::vector<const ptx::Function*> Functions::callees(const ptx::Function& function) const {
    std::vector<const ptx::Function*> found;
    for (const ptx::Instruction& instruction : function.body) {
        if (!instruction.opcode.starts_with("call")) continue;
        const ptx::Operand* target = call_operands(instruction).target;
        if (!target) continue;
        if (target->kind == ptx::Operand::Kind::reg) {
            found.insert(found.end(), symbols_.address_taken.begin(), symbols_.address_taken.end());
            continue;
        }
        const auto named = symbols_.functions.find(target->name);
        if (named != symbols_.functions.end() && named->second->has_body) found.push_back(named->second);
    }
    return found;
}

bool Functions::can_reenter(const ptx::Function& function) {
    const auto known = reentrant_.find(&function);
    if (known != reentrant_.end()) return known->second;
    std::vector<const ptx::Function*> seen, open = callees(function);
    bool again = false;
    while (!open.empty() && !again) {
        const ptx::Function* next = open.back();
        open.pop_back();
        again = next == &function;
        if (std::find(seen.begin(), seen.end(), next) != seen.end()) continue;
        seen.push_back(next);
        for (const ptx::Function* each : callees(*next)) open.push_back(each);
    }
    return reentrant_[&function] = again;
}

}  // namespace emulated::program
