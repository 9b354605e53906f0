// Resolves the names of a module, and finds functions that can call themselves.
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
        // The module may contain both a declaration and its definition.
        if (!(variable.is_extern && symbols.variables.contains(variable.name)))
            symbols.variables[variable.name] = &variable;
    }
}

// Finds functions whose address is used: in an initial value, or by an instruction that is not a call.
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

// The call graph. An additional last node represents calls through pointers; it calls every function whose address is
// taken.
class CallGraph {
  public:
    CallGraph(const ptx::Module& module, const Symbols& symbols)
        : module_(module), nodes_(module.functions.size() + 1) {
        const std::size_t pointers = module.functions.size();
        for (const ptx::Function* function : symbols.address_taken)
            nodes_[pointers].callees.push_back(index_of(*function));
        for (const ptx::Function& function : module.functions) {
            for (const ptx::Instruction& instruction : function.body) {
                if (!instruction.opcode.starts_with("call")) continue;
                const ptx::Operand* target = call_operands(instruction).target;
                if (target == nullptr) continue;
                const auto named = symbols.functions.find(target->name);
                if (target->kind == ptx::Operand::Kind::reg) {
                    nodes_[index_of(function)].callees.push_back(pointers);
                } else if (named != symbols.functions.end()) {
                    nodes_[index_of(function)].callees.push_back(index_of(*named->second));
                }
            }
        }
    }

    // The functions on a cycle of calls. Tarjan's algorithm with an explicit stack.
    std::unordered_set<const ptx::Function*> circles() {
        for (std::size_t node = 0; node < nodes_.size(); ++node) {
            if (nodes_[node].order == unseen) visit(node);
        }
        return std::move(found_);
    }

  private:
    static constexpr std::size_t unseen = std::numeric_limits<std::size_t>::max();
    struct Node {
        std::vector<std::size_t> callees;
        std::size_t order = unseen, lowest = unseen, next = 0;  ///< the callee to visit next
        bool waits = false;
    };

    std::size_t index_of(const ptx::Function& function) const {
        return static_cast<std::size_t>(&function - module_.functions.data());
    }

    void enter(std::size_t node) {
        nodes_[node].order = nodes_[node].lowest = entered_++;
        nodes_[node].waits = true;
        waiting_.push_back(node);
        path_.push_back(node);
    }

    void visit(std::size_t first) {
        enter(first);
        while (!path_.empty()) {
            Node& node = nodes_[path_.back()];
            if (node.next < node.callees.size()) {
                const std::size_t callee = node.callees[node.next++];
                if (nodes_[callee].order == unseen)
                    enter(callee);
                else if (nodes_[callee].waits)
                    node.lowest = std::min(node.lowest, nodes_[callee].order);
                continue;
            }
            const std::size_t done = path_.back();
            path_.pop_back();
            if (!path_.empty())
                nodes_[path_.back()].lowest = std::min(nodes_[path_.back()].lowest, node.lowest);
            if (node.lowest == node.order) leave(done);
        }
    }

    // All nodes that were pushed since `root` form a strongly connected component with it.
    void leave(std::size_t root) {
        const auto& own = nodes_[root].callees;
        const bool circle = waiting_.back() != root || std::find(own.begin(), own.end(), root) != own.end();
        for (std::size_t node = unseen; node != root;) {
            node = waiting_.back();
            waiting_.pop_back();
            nodes_[node].waits = false;
            if (circle && node < module_.functions.size()) found_.insert(&module_.functions[node]);
        }
    }

    const ptx::Module& module_;
    std::vector<Node> nodes_;  ///< by index of the function
    std::vector<std::size_t> waiting_, path_;
    std::size_t entered_ = 0;
    std::unordered_set<const ptx::Function*> found_;
};

}  // namespace

Symbols symbols_of(const ptx::Module& module) {
    Symbols symbols;
    symbols.debug = module.debug;
    find_names(module, symbols);
    find_addresses_taken(module, symbols);
    symbols.reentrant = CallGraph(module, symbols).circles();
    return symbols;
}

}  // namespace emulated::program
