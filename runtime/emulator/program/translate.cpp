// Translates a kernel: lowers PTX to steps, function by function, allocates their registers, and emits bytecode.
#include "program/translate.hpp"

#include <algorithm>
#include <limits>
#include <map>
#include <unordered_map>
#include <utility>

#include <fmt/format.h>

#include "program/functions.hpp"
#include "program/layout.hpp"
#include "program/lowering.hpp"
#include "program/step.hpp"
#include "ptx/names.hpp"

namespace emulated::program {
namespace {

constexpr std::size_t most_kept = std::numeric_limits<decltype(Instruction::count)>::max();

// The functions that calls through pointers can reach.
std::vector<Code::Callee> callees_of(Functions& functions, const std::vector<std::uint32_t>& starts) {
    std::vector<Code::Callee> made;
    for (std::size_t i = 1; i < functions.size(); ++i) {
        const Functions::Entry& entry = functions.at(i);
        Code::Callee callee;
        callee.address = functions.symbols().address_of(*entry.function);
        callee.start = starts[i];
        callee.return_slot = entry.return_slot;
        std::size_t at = 0;
        for (const auto& [list, into] : {std::pair{&entry.function->results, &callee.results},
                                         std::pair{&entry.function->parameters, &callee.parameters}}) {
            for (const std::int32_t index : *list) {
                into->push_back(
                    {entry.argument_places[at++], Functions::stride(entry.function->variable(index))});
            }
        }
        made.push_back(std::move(callee));
    }
    return made;
}

// Describes what is refused and where, first in C++ if that is known.
std::string describe(const Refused& refused, const Code& code) {
    const Code::Line& line = refused.line;
    const ptx::Function& function = *refused.function;
    std::string text = refused.reason;
    if (!function.is_entry) text += fmt::format("\n  in function '{}'", ptx::demangled(function.name));
    if (line.source != 0) text += fmt::format("\n  at line {} of {}", line.source, code.files[line.file]);
    if (line.caller != 0)
        text += fmt::format("\n  called from line {} of {}", line.caller, code.files[line.caller_file]);
    return text + fmt::format("\n  PTX line {}", line.ptx);
}

// Lists each reason once, at its first place.
std::string describe_all(std::vector<Refused> refused, const Code& code) {
    std::unordered_map<std::string, std::size_t> uses;
    std::erase_if(refused, [&](const Refused& each) { return ++uses[each.reason] > 1; });
    if (refused.size() == 1 && uses[refused[0].reason] == 1) return describe(refused[0], code);
    std::string text =
        refused.size() == 1 ? "" : fmt::format("{} of its instructions cannot run", refused.size());
    for (const Refused& each : refused) {
        if (!text.empty()) text += "\n";
        text += describe(each, code);
        const std::size_t others = uses[each.reason] - 1;
        if (others > 0) text += fmt::format(", and {} more place{}", others, others == 1 ? "" : "s");
    }
    return text;
}

// Types whose comparisons can be fused with the instruction that uses the result.
bool is_number(Type type) {
    constexpr Type numbers[] = {Type::u32, Type::s32, Type::u64, Type::s64, Type::f32, Type::f64};
    return std::ranges::find(numbers, type) != std::end(numbers);
}

// --- steps -> instructions ---------------------------------------------------------------------------------

class Emitter {
  public:
    Emitter(Code& code, Layout& layout) : code_(code), layout_(layout) {}

    // Returns the index of the function's first instruction. Throws: Refused.
    std::uint32_t emit(Body& body, const ptx::Function& function, std::uint32_t& registers) {
        function_ = &function;
        std::vector<std::uint32_t> place;
        const Allocated allocated = allocate_registers(body, layout_.top(), place);
        layout_.reserve(allocated.bytes);
        registers += allocated.registers;
        code_.reads_unwritten = code_.reads_unwritten || allocated.reads_unwritten;

        const std::map<std::size_t, std::size_t> guards = guard_ifs(body);
        std::vector<bool> target(body.steps.size() + 1, false);
        for (const Step& step : body.steps) {
            if (step.label >= 0) target[body.labels[static_cast<std::size_t>(step.label)]] = true;
        }
        const auto first = static_cast<std::uint32_t>(code_.instructions.size());
        caches_.clear();
        std::vector<std::uint32_t> at(body.steps.size() + 1);
        std::vector<std::pair<std::size_t, std::int32_t>> branches;
        for (std::size_t i = 0; i < body.steps.size(); ++i) {
            const Step& step = body.steps[i];
            if (const auto guard = guards.find(i); guard != guards.end()) {
                push({}, {Operation::unguard}, step.line, {}, 0);
                Instruction& begin = code_.instructions[at[guard->second]];
                begin.immediate = static_cast<std::int64_t>(code_.instructions.size()) - at[guard->second];
            }
            // Where paths join, a jump to the next step makes a group of lanes check whether others wait there. That would
            // gain nothing at a barrier or at the kernel's end.
            if (target[i] && i > 0 && body.steps[i - 1].label < 0 &&
                !does(body.steps[i - 1].key.operation, Does::ends_flow) &&
                !does(step.key.operation, Does::gathers)) {
                Instruction meet;
                meet.immediate = static_cast<std::int64_t>(code_.instructions.size()) + 1;
                push(meet, {Operation::bra}, step.line, {}, 0);
            }
            if (i > 0 && !target[i] && !guards.contains(i) && joins(body.steps[i - 1], step)) {
                join(step);
                at[i] = static_cast<std::uint32_t>(code_.instructions.size()) - 1;
                if (step.label >= 0) branches.emplace_back(at[i], step.label);
                continue;
            }
            at[i] = static_cast<std::uint32_t>(code_.instructions.size());
            if (step.label >= 0) branches.emplace_back(code_.instructions.size(), step.label);
            const Code::Operands operands = operands_of(step, body.register_bytes);
            push(instruction(step, place), step.key, step.line, operands, step.origin);
        }
        at[body.steps.size()] = static_cast<std::uint32_t>(code_.instructions.size());
        for (const auto& [index, label] : branches) {
            Instruction& branch = code_.instructions[index];
            branch.immediate = at[body.labels[static_cast<std::size_t>(label)]];
            if (static_cast<std::size_t>(branch.immediate) <= index) branch.bits |= Instruction::backward;
        }
        return first;
    }

  private:
    // True if a branch or guard uses the predicate that the comparison before it has just written.
    static bool joins(const Step& comparison, const Step& step) {
        const Operation operation = step.key.operation;
        if (operation != Operation::branch && operation != Operation::guard) return false;
        const Key& key = comparison.key;
        return key.operation == Operation::setp && key.second == Type::none && !comparison.partial &&
               comparison.results.size() == 1 && comparison.sources.size() == 2 &&
               comparison.results[0] == step.sources[0] && is_number(key.type) && key.flags.single();
    }

    // Fuses the step into the comparison's instruction.
    void join(const Step& step) {
        Instruction& made = code_.instructions.back();
        made.bits |= step.bits;
        made.immediate = step.immediate;
        code_.keys.back().operation =
            step.key.operation == Operation::branch ? Operation::compare_branch : Operation::compare_guard;
        code_.lines.back() = step.line;  // a comparison cannot fault, but a loop may be stopped at its branch
        caches_.push_back(made.extra);
    }

    Instruction instruction(const Step& step, const std::vector<std::uint32_t>& place) {
        const auto offset = [&](const Ref& ref) {
            return ref.kind == Ref::Kind::virtual_register ? place[ref.index] : ref.index;
        };
        Instruction made;
        made.immediate = step.immediate;
        made.bits = step.bits;
        if (step.memory)
            made.extra = step.shares >= 0 ? caches_[static_cast<std::size_t>(step.shares)] : code_.caches++;
        caches_.push_back(made.extra);
        if (is_access(step)) {
            if (step.follows >= 0) made.bits |= Instruction::same_pattern;
            made.operand[Instruction::pattern] =
                step.follows >= 0 ? caches_[static_cast<std::size_t>(step.follows)] : made.extra;
        }
        std::size_t at = 0;
        if (!step.list.empty()) {
            made.operand[at++] = static_cast<std::uint32_t>(code_.lists.size());
            made.count = static_cast<std::uint16_t>(step.list.size());
            for (const Ref& ref : step.list) code_.lists.push_back(offset(ref));
        }
        if (does(step.key.operation, Does::lists_places)) {
            if (step.kept.size() > most_kept)
                throw Refused{step.line, "too many values are alive at this call", function_};
            made.operand[at++] = static_cast<std::uint32_t>(code_.lists.size());
            made.count = static_cast<std::uint16_t>(step.kept.size());
            for (const Code::Place& kept : step.kept) {
                code_.lists.insert(code_.lists.end(), {kept.offset, kept.bytes});
                made.immediate += std::max(kept.bytes, 1u);
            }
        }
        for (const Ref& ref : step.results) made.operand[at++] = offset(ref);
        for (const Ref& ref : step.sources) made.operand[at++] = offset(ref);
        if (step.extra != 0) made.extra = step.extra;
        if (step.key.operation == Operation::ld_used) made.operand.back() = step.used_bytes;
        if (step.key.operation == Operation::atom && step.used_bytes != 0)
            made.count = static_cast<std::uint16_t>(step.used_bytes);
        return made;
    }

    // Adds the widths of the step's list to the code's.
    Code::Operands operands_of(const Step& step, const std::vector<std::uint8_t>& register_bytes) {
        const auto bytes = [&](const Ref& ref) {
            return ref.kind == Ref::Kind::virtual_register ? register_bytes[ref.index]
                                                           : Code::Operands::fixed;
        };
        Code::Operands made;
        made.first = (step.list.empty() ? 0 : 1) + (does(step.key.operation, Does::lists_places) ? 1 : 0);
        made.results = static_cast<std::uint8_t>(step.results.size());
        made.sources = static_cast<std::uint8_t>(step.sources.size());
        made.listed = static_cast<std::uint16_t>(step.list.size());
        made.listed_results = static_cast<std::uint16_t>(step.listed_results);
        std::size_t at = made.first;
        for (const Ref& ref : step.results) made.bytes[at++] = bytes(ref);
        for (const Ref& ref : step.sources) made.bytes[at++] = bytes(ref);
        code_.list_bytes.resize(code_.lists.size());
        for (const Ref& ref : step.list) code_.list_bytes.push_back(bytes(ref));
        return made;
    }

    void push(const Instruction& instruction, const Key& key, const Code::Line& line,
              const Code::Operands& operands, std::uint16_t origin) {
        code_.instructions.push_back(instruction);
        code_.keys.push_back(key);
        code_.lines.push_back(line);
        code_.operands.push_back(operands);
        code_.origin.push_back(origin);
    }

    Code& code_;
    Layout& layout_;
    const ptx::Function* function_ = nullptr;  ///< the function that is emitted
    std::vector<std::uint32_t> caches_;        ///< allocation caches of the function's steps so far
};

}  // namespace

std::variant<Translation, std::string> translate(const ptx::Module& module, const ptx::Function& entry,
                                                 const std::vector<Kernel::Parameter>& parameters,
                                                 const Symbols& symbols) {
    Translation made;
    made.code = std::make_shared<Code>();
    Code& code = *made.code;
    code.files.emplace_back();
    std::map<std::uint32_t, std::uint32_t> files;
    for (const ptx::Module::File& file : module.files) {
        files[file.index] = static_cast<std::uint32_t>(code.files.size());
        code.files.emplace_back(file.name);
    }
    std::vector<Refused> refused;
    try {
        Layout layout(code, entry);
        Functions functions(layout, symbols);
        functions.require(entry);
        Emitter emitter(code, layout);
        std::vector<std::uint32_t> starts;
        for (std::size_t i = 0; i < functions.size(); ++i) {  // bodies may add functions
            Body body = Lowering(functions, i, files, parameters).run(refused);
            if (!refused.empty()) continue;  // continues only to find further refusals
            simplify(body, layout);
            trace_origins(body, layout);
            join_addresses(body, layout);
            share_addresses(body);
            follow_sums(body);
            starts.push_back(emitter.emit(body, *functions.at(i).function, made.registers));
        }
        if (!refused.empty()) return describe_all(std::move(refused), code);
        for (std::size_t i = 0; i < code.instructions.size(); ++i) {
            if (code.keys[i].operation != Operation::call) continue;
            Instruction& call = code.instructions[i];
            call.immediate = starts[static_cast<std::size_t>(call.immediate)];
        }
        code.callees = callees_of(functions, starts);
        // Arguments are not registers.
        code.reads_unwritten = code.reads_unwritten || functions.size() > 1;
        layout.finish();
    } catch (const Refused& found) {
        return describe(found, code);
    }
    return made;
}

}  // namespace emulated::program
