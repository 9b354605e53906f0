// Lowering of calls: arguments, direct and indirect calls, re-entrant functions, and functions that CUDA provides without a
// body in PTX.
//
// Every function has one fixed place in the register file for its registers and parameters, which is enough if each lane
// runs it once at a time. A function that can be called while it runs saves its live registers before each of its
// calls, on the lane's stack, which is in local memory after the static variables.
#include <algorithm>
#include <bit>

#include "program/lowering.hpp"
#include "ptx/names.hpp"

namespace emulated::program {
// --- frames ------------------------------------------------------------------------------------------------

// Begins a function: saves the stack if alloca grows it, makes a frame for the local variables of a re-entrant
// function, which have no fixed address, and copies the parameters whose addresses are used.
void Lowering::enter_function() {
    const auto grows = [](const ptx::Instruction& each) { return each.opcode.starts_with("alloca"); };
    if (std::ranges::any_of(function_.body, grows)) {
        functions_.layout().has_stack(0);
        if (!function_.is_entry) {
            saved_stack_ = temporary(8);
            emit({Operation::stack_save}, {saved_stack_}, {functions_.layout().special(Special::stack)});
        }
    }
    const std::set<std::int32_t> copied =
        function_.is_entry ? std::set<std::int32_t>{} : parameters_with_addresses();
    reenters_ = !function_.is_entry && functions_.can_reenter(function_);
    if (reenters_) enter_frame(copied);
    for (const std::int32_t parameter : copied) copy_parameter(parameter);
}

void Lowering::enter_frame(const std::set<std::int32_t>& copied) {
    for (std::size_t i = 0; i < function_.variables.size(); ++i) {
        const ptx::Variable& variable = function_.variables[i];
        if (variable.space != ptx::Space::local && !copied.contains(static_cast<std::int32_t>(i))) continue;
        const std::uint64_t alignment = std::max(variable.alignment, 4u);
        frame_bytes_ = (frame_bytes_ + alignment - 1) / alignment * alignment;
        addresses_[static_cast<std::int32_t>(i)] = frame_bytes_;
        frame_bytes_ += std::min(variable.bytes, std::uint64_t{1} << 40);
    }
    frame_bytes_ = (frame_bytes_ + 15) / 16 * 16;
    functions_.layout().has_stack(frame_bytes_);
    if (frame_bytes_ == 0) return;
    frame_ = temporary(8);
    emit({Operation::enter_frame}, {frame_}, {functions_.layout().special(Special::stack)}).immediate =
        static_cast<std::int64_t>(frame_bytes_);
}

// The parameters that are not only loaded by name, such as structures that are passed by value and indexed.
std::set<std::int32_t> Lowering::parameters_with_addresses() const {
    std::set<std::int32_t> made;
    for (const ptx::Instruction& instruction : function_.body) {
        for (const ptx::Operand& given : instruction.operands) {
            const ptx::Operand& name = given.kind == OperandKind::sum ? given.parts[0] : given;
            if (name.kind == OperandKind::variable && is_passed(name.index)) made.insert(name.index);
        }
    }
    return made;
}

// Copies an argument to local memory, because the register file has no addresses.
void Lowering::copy_parameter(std::int32_t parameter) {
    const ptx::Variable& variable = function_.variable(parameter);
    ptx::Operand name;
    name.kind = OperandKind::variable;
    name.index = parameter;
    const Ref base = symbol_address(name, 8, 0);
    for (std::uint64_t at = 0; at < variable.bytes;) {
        unsigned bytes = std::clamp(variable.alignment, 4u, 8u);
        while (bytes > variable.bytes - at) bytes /= 2;
        const Ref value = temporary(bytes);
        Step& load = emit({Operation::load_argument, unsigned_of(bytes), register_type(bytes)}, {value},
                          {{Ref::Kind::fixed, argument_place(parameter)}});
        load.immediate = static_cast<std::int64_t>(at);
        load.extra = Functions::stride(variable);
        access(
            emit({Operation::st, unsigned_of(bytes), register_type(bytes), {Flag::local}}, {}, {value, base}),
            {base, static_cast<std::int64_t>(at)});
        at += bytes;
    }
}

void Lowering::leave_function() {
    if (function_.is_entry) {
        emit({Operation::exit}, {}, {});
        return;
    }
    const auto stack = [&] { return functions_.layout().special(Special::stack); };
    if (saved_stack_.kind != Ref::Kind::none) {
        emit({Operation::stack_restore}, {},
             {saved_stack_, stack()});  // also restores the stack to before the frame
    } else if (frame_bytes_ != 0) {
        emit({Operation::leave_frame}, {}, {stack()}).immediate = static_cast<std::int64_t>(frame_bytes_);
    }
    emit({Operation::ret}, {}, {{Ref::Kind::fixed, functions_.at(index_).return_slot}});
}

// Adds the step that saves or restores a re-entrant function's return position and parameters. The register allocator
// adds the registers that are live across the call.
void Lowering::keep_frame(Operation operation) {
    if (!reenters_) return;
    const Functions::Entry& entry = functions_.at(index_);
    Step& step = emit({operation}, {}, {functions_.layout().special(Special::stack)});
    step.kept.push_back({entry.return_slot, 4});
    for (std::size_t i = 0; i < function_.parameters.size(); ++i) {
        step.kept.push_back({entry.argument_places[function_.results.size() + i],
                             Functions::stride(function_.variable(function_.parameters[i]))});
    }
}

// alloca grows the lane's stack until the function returns; stacksave and stackrestore change it within the function.
void Lowering::stack(const ptx::Instruction& instruction, const Opcode& opcode) {
    const Operation operation = opcode.row->operation;
    const unsigned bytes = ptx::bytes_of(opcode.type);
    functions_.layout().has_stack(0);
    const Ref top = functions_.layout().special(Special::stack);
    const auto widened = [&](Ref value) {
        if (bytes == 8) return value;
        const Ref wide = temporary(8);
        emit({Operation::cvt, Type::u64, Type::u32}, {wide}, {value});
        return wide;
    };
    const ptx::Operand& first = operand(instruction, 0);
    if (operation == Operation::stack_restore) {
        emit({operation}, {}, {widened(source(first, opcode.type)), top});
        return;
    }
    std::vector<Ref> sources{top};
    std::uint64_t alignment = 8;
    if (operation == Operation::stack_allocate) {
        sources.push_back(widened(source(operand(instruction, 1), opcode.type)));
        if (instruction.operands.size() > 2) alignment = instruction.operands[2].bits;
        const bool fits = std::has_single_bit(alignment) && alignment >= 8 && alignment <= (1u << 23);
        if (!fits) refuse("the alignment of alloca is a power of two from 8 to 2^23");
    }
    const Ref given = result(first, opcode.type);
    const Ref address = bytes == 8 ? given : temporary(8);
    emit({operation}, {address}, std::move(sources)).immediate = static_cast<std::int64_t>(alignment);
    if (bytes != 8) emit({Operation::cvt, Type::u32, Type::u64}, {given}, {address});
}

// --- arguments ---------------------------------------------------------------------------------------------

// The parameter that an operand such as [name+4] names, if it names one.
const ptx::Variable* Lowering::argument_variable(const ptx::Operand& given) const {
    if (given.kind != OperandKind::address || given.parts.size() != 1 ||
        given.parts[0].kind != OperandKind::variable)
        return nullptr;
    const ptx::Variable& variable = function_.variable(given.parts[0].index);
    return variable.space == ptx::Space::param ? &variable : nullptr;
}

// True if the variable is a parameter of the function itself.
bool Lowering::is_passed(std::int32_t variable) const {
    return std::ranges::find(function_.parameters, variable) != function_.parameters.end();
}

bool Lowering::is_returned(std::int32_t variable) const {
    return std::ranges::find(function_.results, variable) != function_.results.end();
}

// Checks an access of a parameter by name now, because no address is checked when it runs.
void Lowering::require_inside(const ptx::Variable& variable, std::uint64_t offset, std::uint64_t bytes,
                              unsigned alignment) const {
    if (bytes > variable.bytes || offset > variable.bytes - bytes)
        refuse("{} bytes at offset {} are not within '{}', which has {} bytes", bytes,
               static_cast<std::int64_t>(offset), variable.name, variable.bytes);
    if (offset % alignment != 0)
        refuse("offset {} of '{}' is not a multiple of {}", offset, variable.name, alignment);
}

// The register file offset of a .param variable: of this function, or of a call in it. Variables of calls with equal
// names and sizes share an offset, because no two calls overlap.
std::uint32_t Lowering::argument_place(std::int32_t index) {
    const Functions::Entry& entry = functions_.at(index_);
    std::size_t at = 0;
    for (const auto* list : {&function_.results, &function_.parameters}) {
        for (const std::int32_t formal : *list) {
            if (formal == index) return entry.argument_places[at];
            ++at;
        }
    }
    const ptx::Variable& variable = function_.variable(index);
    const std::uint32_t stride = Functions::stride(variable);
    const auto found = places_.find({variable.name, stride});
    if (found != places_.end()) return found->second;
    return places_[{variable.name, stride}] = functions_.layout().reserve(std::uint64_t{32} * stride);
}

std::vector<Code::Place> Lowering::arguments_of(const ptx::Operand* list) {
    std::vector<Code::Place> made;
    if (!list) return made;
    for (const ptx::Operand& part : list->parts) {
        if (part.kind == OperandKind::sink) {
            made.push_back({});
            continue;
        }
        const bool is_variable = part.kind == OperandKind::variable;
        if (!is_variable || function_.variable(part.index).space != ptx::Space::param ||
            is_passed(part.index) || is_returned(part.index))
            refuse("an argument of a call is a .param variable that is declared in the body");
        made.push_back({argument_place(part.index), Functions::stride(function_.variable(part.index))});
    }
    return made;
}

void Lowering::require_prototype(const ptx::Function& callee, const std::vector<std::int32_t>& formals,
                                 const ptx::Operand* given) const {
    const std::size_t count = given == nullptr ? 0 : given->parts.size();
    if (count != formals.size())
        refuse("'{}' has {} parameters or results where the call has {}", ptx::demangled(callee.name),
               formals.size(), count);
    for (std::size_t i = 0; i < count; ++i) {
        if (given->parts[i].kind != OperandKind::variable) continue;
        const ptx::Variable &argument = function_.variable(given->parts[i].index),
                            &formal = callee.variable(formals[i]);
        if (argument.bytes != formal.bytes || ptx::bytes_of(argument.type) != ptx::bytes_of(formal.type))
            refuse("'{}' of a call of '{}' has another type than its parameter", argument.name,
                   ptx::demangled(callee.name));
    }
}

// --- calls -------------------------------------------------------------------------------------------------

void Lowering::call(const ptx::Instruction& instruction, const Opcode&) {
    const CallOperands operands = call_operands(instruction);
    if (!operands.target) refuse("a call without a function");
    if (operands.target->kind == OperandKind::reg)
        return call_through_pointer(operands.results, *operands.target, operands.arguments);
    const auto found = functions_.symbols().functions.find(operands.target->name);
    if (found == functions_.symbols().functions.end())
        refuse("the function '{}' is called and not declared", ptx::demangled(operands.target->name));
    const ptx::Function& callee = *found->second;
    require_prototype(callee, callee.results, operands.results);
    require_prototype(callee, callee.parameters, operands.arguments);
    if (!callee.has_body) return call_external(callee.name, operands.results, operands.arguments);
    if (callee.is_entry) refuse("'{}' is a kernel: a call needs a .func", callee.name);
    const std::size_t index = functions_.require(callee);
    const std::vector<Code::Place> results = arguments_of(operands.results);
    const std::vector<Code::Place> arguments = arguments_of(operands.arguments);

    const auto copies = [&](const std::vector<Code::Place>& given, const std::vector<std::int32_t>& formals,
                            std::size_t first, bool to_callee) {
        for (std::size_t i = 0; i < given.size(); ++i) {
            if (given[i].bytes == 0) continue;
            const std::uint32_t stride = Functions::stride(callee.variable(formals[i]));
            Ref to{Ref::Kind::fixed, functions_.at(index).argument_places[first + i]};
            Ref from{Ref::Kind::fixed, given[i].offset};
            if (!to_callee) std::swap(to, from);
            emit({Operation::copy_argument}, {to}, {from}).extra = stride;
        }
    };
    keep_frame(Operation::save_frame);
    copies(arguments, callee.parameters, callee.results.size(), true);
    emit({Operation::call}, {{Ref::Kind::fixed, functions_.at(index).return_slot}}, {}).immediate =
        static_cast<std::int64_t>(index);
    keep_frame(Operation::restore_frame);
    if (operands.results) copies(results, callee.results, 0, false);
}

// The machine finds the function that a lane's pointer refers to at run time, among those of the same shape.
void Lowering::call_through_pointer(const ptx::Operand* results, const ptx::Operand& target,
                                    const ptx::Operand* arguments) {
    const unsigned bytes = width(target);
    if (bytes != 4 && bytes != 8) refuse("a register that holds a function's address has 32 or 64 bits");
    Ref pointer = register_of(target);
    if (bytes == 4) {
        const Ref widened = temporary(8);
        emit({Operation::cvt, Type::u64, Type::u32}, {widened}, {pointer});
        pointer = widened;
    }
    const std::vector<Code::Place> to = arguments_of(results), from = arguments_of(arguments);
    const auto strides = [](const std::vector<Code::Place>& given) {
        std::vector<std::uint32_t> made;
        made.reserve(given.size());
        for (const Code::Place& each : given) made.push_back(each.bytes);
        return made;
    };
    functions_.require_pointees(strides(to), strides(from));
    const auto step = [&](Operation operation, const std::vector<Code::Place>& given) {
        Step& made = emit({operation}, {}, {pointer});
        made.kept = given;
        made.extra = static_cast<std::uint32_t>(to.size());
    };
    keep_frame(Operation::save_frame);
    step(Operation::call_pointer, from);
    keep_frame(Operation::restore_frame);
    step(Operation::take_results, to);
}

namespace {

// A function that CUDA provides to kernels without a body in PTX.
struct External {
    std::string_view name;
    Operation operation;
    std::array<unsigned, 4> arguments;  ///< bytes of each argument
    unsigned result = 0;                ///< bytes; 0 if there is no result
};
constexpr External externals[] = {
    {"vprintf", Operation::print, {8, 8}, 4},
    {"__assertfail", Operation::assertion, {8, 8, 4, 8}},
    {"malloc", Operation::heap_allocate, {8}, 8},
    {"__cuda_syscall_aligned_malloc", Operation::heap_allocate, {8, 8}, 8},
    {"free", Operation::heap_free, {8}},
    {"cudaGraphSetConditional", Operation::set_condition, {8, 4}},
};

}  // namespace

void Lowering::call_external(std::string_view name, const ptx::Operand* results,
                             const ptx::Operand* arguments) {
    const auto* external = std::ranges::find(externals, name, &External::name);
    if (external == std::end(externals))
        refuse("the function '{}' is called and not declared", ptx::demangled(name));
    std::vector<Ref> sources, returned;
    for (const unsigned bytes : external->arguments) {
        if (bytes == 0) break;
        const std::size_t i = sources.size();
        if (!arguments || i >= arguments->parts.size() || arguments->parts[i].kind != OperandKind::variable)
            refuse("'{}' is called with too few arguments", name);
        const std::int32_t index = arguments->parts[i].index;
        require_inside(function_.variable(index), 0, bytes, 1);
        sources.push_back(temporary(bytes));
        emit({Operation::load_argument, unsigned_of(bytes), register_type(bytes)}, {sources.back()},
             {{Ref::Kind::fixed, argument_place(index)}})
            .extra = Functions::stride(function_.variable(index));
    }
    const bool allocates = external->operation == Operation::heap_allocate;
    if (allocates && sources.size() == 1) sources.push_back(functions_.layout().constant(16, 8));
    if (allocates || external->operation == Operation::heap_free) functions_.layout().uses_heap();
    const unsigned bytes = external->result;
    if (bytes != 0) returned.push_back(temporary(bytes));
    emit({external->operation}, returned, std::move(sources));
    if (returned.empty() || !results || results->parts.empty() ||
        results->parts[0].kind != OperandKind::variable)
        return;
    const std::int32_t index = results->parts[0].index;
    require_inside(function_.variable(index), 0, bytes, 1);
    emit({Operation::store_argument, unsigned_of(bytes), register_type(bytes)}, {},
         {{Ref::Kind::fixed, argument_place(index)}, returned[0]})
        .extra = Functions::stride(function_.variable(index));
}

}  // namespace emulated::program
