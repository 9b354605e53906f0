// Finds what the names of a module mean, and which functions can call themselves.
#include "program/symbols.hpp"

#include <algorithm>
#include <limits>
#include <utility>

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

namespace {

void find_names(const ptx::Module& module, Symbols& symbols) {
    symbols.first_function = module.functions.data();
    for (const ptx::Function& function : module.functions) symbols.functions[function.name] = &function;
    for (const ptx::Variable& variable : module.variables) {
        // A declaration and its definition may both be there.
        if (!(variable.is_extern && symbols.variables.contains(variable.name)))
            symbols.variables[variable.name] = &variable;
    }
}

// Functions whose address something takes: an initial value, or an instruction that is not a call.
void find_addresses_taken(const ptx::Module& module, Symbols& symbols) {
    std::unordered_set<const ptx::Function*> taken;
    const auto take = [&](std::string_view name) {
        const auto found = symbols.functions.find(name);
        if (found == symbols.functions.end() || !found->second->has_body || found->second->is_entry) return;
        if (taken.insert(found->second).second) symbols.address_taken.push_back(found->second);
    };
    for (const ptx::Variable& variable : module.variables) {
        for (const ptx::Variable::Reference& reference : variable.references) take(reference.symbol);
    }
    for (const ptx::Function& function : module.functions) {
        for (const ptx::Instruction& instruction : function.body) {
            if (instruction.opcode.starts_with("call")) continue;
            for (const ptx::Operand& operand : instruction.operands) {
                if (operand.kind == ptx::Operand::Kind::symbol) take(operand.name);
            }
        }
    }
}

// Who calls whom. One more node, the last, stands for calls through pointers: it calls every function whose
// address is taken.
class CallGraph {
  public:
    CallGraph(const ptx::Module& module, const Symbols& symbols)
        : module_(module), callees_(module.functions.size() + 1) {
        const std::size_t pointers = module.functions.size();
        for (const ptx::Function* function : symbols.address_taken)
            callees_[pointers].push_back(index_of(*function));
        for (const ptx::Function& function : module.functions) {
            for (const ptx::Instruction& instruction : function.body) {
                if (!instruction.opcode.starts_with("call")) continue;
                const ptx::Operand* target = call_operands(instruction).target;
                if (target == nullptr) continue;
                const auto named = symbols.functions.find(target->name);
                if (target->kind == ptx::Operand::Kind::reg) {
                    callees_[index_of(function)].push_back(pointers);
                } else if (named != symbols.functions.end()) {
                    callees_[index_of(function)].push_back(index_of(*named->second));
                }
            }
        }
    }

    // The functions on a circle of calls: Tarjan's algorithm, with a stack of its own.
    std::unordered_set<const ptx::Function*> circles() {
        order_.assign(callees_.size(), unseen);
        lowest_.assign(callees_.size(), unseen);
        waits_.assign(callees_.size(), false);
        for (std::size_t node = 0; node < callees_.size(); ++node) {
            if (order_[node] == unseen) visit(node);
        }
        return std::move(found_);
    }

  private:
    static constexpr std::size_t unseen = std::numeric_limits<std::size_t>::max();
    struct Visit {
        std::size_t node = 0, next = 0;  ///< of its callees
    };

    std::size_t index_of(const ptx::Function& function) const {
        return static_cast<std::size_t>(&function - module_.functions.data());
    }

    void enter(std::size_t node) {
        order_[node] = lowest_[node] = entered_++;
        waits_[node] = true;
        waiting_.push_back(node);
        path_.push_back({node, 0});
    }

    void visit(std::size_t first) {
        enter(first);
        while (!path_.empty()) {
            const std::size_t node = path_.back().node;
            if (path_.back().next < callees_[node].size()) {
                const std::size_t callee = callees_[node][path_.back().next++];
                if (order_[callee] == unseen)
                    enter(callee);
                else if (waits_[callee])
                    lowest_[node] = std::min(lowest_[node], order_[callee]);
                continue;
            }
            path_.pop_back();
            if (!path_.empty())
                lowest_[path_.back().node] = std::min(lowest_[path_.back().node], lowest_[node]);
            if (lowest_[node] == order_[node]) leave(node);
        }
    }

    // Everything that waits since `root` reaches it and is reached from it.
    void leave(std::size_t root) {
        const auto& own = callees_[root];
        const bool circle = waiting_.back() != root || std::find(own.begin(), own.end(), root) != own.end();
        for (std::size_t node = unseen; node != root;) {
            node = waiting_.back();
            waiting_.pop_back();
            waits_[node] = false;
            if (circle && node < module_.functions.size()) found_.insert(&module_.functions[node]);
        }
    }

    const ptx::Module& module_;
    std::vector<std::vector<std::size_t>> callees_;  ///< by function's index
    std::vector<std::size_t> order_, lowest_, waiting_;
    std::vector<bool> waits_;
    std::vector<Visit> path_;
    std::size_t entered_ = 0;
    std::unordered_set<const ptx::Function*> found_;
};

}  // namespace

Symbols symbols_of(const ptx::Module& module) {
    Symbols symbols;
    find_names(module, symbols);
    find_addresses_taken(module, symbols);
    symbols.reentrant = CallGraph(module, symbols).circles();
    return symbols;
}

}  // namespace emulated::program
