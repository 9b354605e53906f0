// Lowering of operands: registers, constants, addresses and vectors.
#include <algorithm>
#include <bit>
#include <charconv>
#include <cstdint>
#include <optional>

#include "program/lowering.hpp"
#include "ptx/limits.hpp"

namespace emulated::program {
namespace {

// Names of special registers, indexed by Special. Its last enumerators have no name in PTX and no entry here.
constexpr std::string_view special_names[] = {
#define SPECIAL(enumerator, name) name,
    BASCULE_PTX_SPECIALS(SPECIAL)
#undef SPECIAL
};

// Shared memory that CUDA reserves in every block. Groups of several warps synchronise in its second part.
struct ReservedName {
    std::string_view name;
    std::uint64_t offset;
};
constexpr ReservedName reserved_names[] = {
    {"%reserved_smem_offset_0", 0},
    {"%reserved_smem_offset_1", ptx::limits::reserved_shared_per_block / 2},
};

// True for `prefix` with a number below `count`, such as %envreg0 to %envreg31; also with _64 after it, as in %pm0_64.
bool is_one_of(std::string_view name, std::string_view prefix, unsigned count) {
    if (!name.starts_with(prefix)) return false;
    name.remove_prefix(prefix.size());
    if (name.ends_with("_64")) name.remove_suffix(3);
    unsigned number = 0;
    const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), number);
    return error == std::errc() && end == name.data() + name.size() && number < count;
}

// True for the registers that hold the address of a cooperative grid's workspace. The other %envreg are 0 here.
bool is_workspace(std::string_view name) { return name == "%envreg1" || name == "%envreg2"; }

// True if a register of type `given` is allowed where an instruction has type `wanted`.
bool agree(Type wanted, Type given) {
    if (ptx::bytes_of(given) == 1 && ptx::bytes_of(wanted) == 2)
        return false;  // though both have a slot of 16 bits
    if (ptx::is_bits(wanted) || ptx::is_bits(given)) return true;
    return wanted == given || (ptx::is_integer(wanted) && ptx::is_integer(given));
}

// True if an instruction of this type accepts such a constant. Float bits are accepted as bits of the same size.
bool takes_constant(Type type, OperandKind kind) {
    const bool is_floating = type == Type::f32 || type == Type::f64;
    if (kind == OperandKind::integer) return ptx::is_integer(type) || ptx::is_bits(type);
    return is_floating || type == (kind == OperandKind::float_bits ? Type::b32 : Type::b64);
}

unsigned slot_of(Type type, unsigned bytes) {
    if (type == Type::pred) return 0;
    return std::max(2u, bytes == 0 ? ptx::bytes_of(type) : bytes);
}

// The bits of a floating-point constant in an instruction of this type.
std::uint64_t float_bits(const ptx::Operand& operand, Type type, unsigned bytes) {
    const bool single = operand.kind == OperandKind::float_bits;
    if (single && bytes == 4) return operand.bits;
    if (!single && bytes == 8) return operand.bits;
    const double value = single ? double{std::bit_cast<float>(static_cast<std::uint32_t>(operand.bits))}
                                : std::bit_cast<double>(operand.bits);
    if (type == Type::f64 || bytes == 8) return std::bit_cast<std::uint64_t>(value);
    return std::bit_cast<std::uint32_t>(static_cast<float>(value));
}

}  // namespace

std::vector<ptx::Operand> elements_of(const ptx::Operand& operand) {
    return operand.kind == OperandKind::vector ? operand.parts : std::vector{operand};
}

Type unsigned_of(unsigned bytes) noexcept {
    return bytes == 1 ? Type::u8 : bytes == 2 ? Type::u16 : bytes == 4 ? Type::u32 : Type::u64;
}

Type twice_as_wide(Type type) noexcept {
    const unsigned bytes = 2 * ptx::bytes_of(type);
    return ptx::is_signed(type) ? bytes == 4 ? Type::s32 : Type::s64 : unsigned_of(bytes);
}

Type register_type(unsigned bytes) noexcept {
    return bytes <= 2 ? Type::b16 : bytes == 4 ? Type::b32 : Type::b64;
}

Type canonical(Operation operation, Type type, const FlagSet& flags) noexcept {
    const Type alike = unsigned_of(ptx::bytes_of(type));
    if (type >= Type::b8 && type <= Type::b64) return alike;
    if (does(operation, Does::copies_bits)) return type == Type::pred ? type : alike;
    if (does(operation, Does::reduces)) return ptx::is_float(type) || !flags.has(Flag::add) ? type : alike;
    if (!does(operation, Does::wraps)) return type;
    if (type == Type::u16x2 || type == Type::s16x2) return Type::u16x2;
    const bool told_apart = flags.has(Flag::hi) || flags.has(Flag::wide) || flags.has(Flag::sat);
    return ptx::is_float(type) || told_apart ? type : alike;
}

Key machine_key(const Row& row, Type type, Type second, const FlagSet& flags) noexcept {
    const FlagSet selecting = flags & row.selecting;
    return {row.operation, canonical(row.operation, type, selecting), second, selecting};
}

Key key_of(const Opcode& opcode) noexcept {
    return machine_key(*opcode.row, opcode.type, opcode.second, opcode.flags);
}

Key untyped_key(const Opcode& opcode) noexcept {
    return {opcode.row->operation, Type::none, Type::none, opcode.flags & opcode.row->selecting};
}

void Lowering::refuse(const std::string& reason) const { throw Refused{line_, reason, &function_}; }

void Lowering::unsupported(const ptx::Instruction& instruction) const {
    refuse("{} is not supported", instruction.opcode);
}

void Lowering::expect_operands(const ptx::Instruction& instruction, std::size_t wanted) const {
    expect_operands(instruction, instruction.operands.size(), wanted, wanted);
}

void Lowering::expect_operands(const ptx::Instruction& instruction, std::size_t count, std::size_t least,
                               std::size_t most) const {
    if (count < least || count > most)
        refuse("{} takes {} operands, got {}", instruction.opcode, least, count);
}

const ptx::Operand& Lowering::operand(const ptx::Instruction& instruction, std::size_t index) const {
    if (index >= instruction.operands.size()) {
        refuse("{} has {} operands, which is too few", instruction.opcode, instruction.operands.size());
    }
    return instruction.operands[index];
}

unsigned Lowering::width(const ptx::Operand& operand) const {
    if (operand.kind != OperandKind::reg) return 0;
    if (!operand.name.empty()) refuse("the selector '.{}' is not supported here", operand.name);
    return is_wide(operand) ? 16 : body_.register_bytes[static_cast<std::size_t>(operand.index)];
}

Ref Lowering::register_of(const ptx::Operand& operand) const {
    return {Ref::Kind::virtual_register, static_cast<std::uint32_t>(operand.index)};
}

void Lowering::require_register_of(const ptx::Operand& operand, Type type, unsigned bytes) const {
    if (operand.negated) refuse("a register cannot be negated here");
    const unsigned wanted = slot_of(type, bytes);
    if (width(operand) != wanted) {
        refuse("an operand has {} bits where the instruction needs {}", 8 * width(operand), 8 * wanted);
    }
    // Other indices are halves of a 128-bit register.
    const auto index = static_cast<std::size_t>(operand.index);
    const Type given = index < function_.registers.size() ? function_.registers[index] : Type::b64;
    if (!agree(type, given)) {
        refuse("a register of type .{} stands where the instruction needs .{}",
               ptx::type_names[static_cast<unsigned>(given)].name,
               ptx::type_names[static_cast<unsigned>(type)].name);
    }
}

// All typed elements of a vector must have the same type.
void Lowering::require_alike(const std::vector<ptx::Operand>& elements) const {
    std::optional<Type> first;
    for (const ptx::Operand& each : elements) {
        const auto index = static_cast<std::size_t>(each.index);
        if (each.kind != OperandKind::reg || index >= function_.registers.size()) continue;
        const Type type = function_.registers[index];
        if (ptx::is_bits(type)) continue;
        if (!agree(first.value_or(type), type)) refuse("the elements of a vector have different types");
        first = type;
    }
}

Ref Lowering::source(const ptx::Operand& operand, Type type, unsigned bytes) {
    const unsigned slot = slot_of(type, bytes);
    switch (operand.kind) {
        case OperandKind::reg:
            require_register_of(operand, type, bytes);
            return register_of(operand);
        case OperandKind::integer:
        case OperandKind::floating:
        case OperandKind::float_bits: {
            if (!takes_constant(type, operand.kind)) {
                refuse("{} cannot be a constant of type .{}",
                       operand.kind == OperandKind::integer    ? "an integer"
                       : operand.kind == OperandKind::floating ? "a floating-point number"
                                                               : "0f and eight digits",
                       ptx::type_names[static_cast<unsigned>(type)].name);
            }
            if (operand.kind != OperandKind::integer)
                return functions_.layout().constant(float_bits(operand, type, slot), slot);
            const std::uint64_t mask = slot == 8 ? ~0ull : (1ull << (8 * slot)) - 1;
            return functions_.layout().constant(operand.bits & mask, slot);
        }
        default:
            refuse("an operand must be a register or a constant here");
    }
}

void Lowering::require_special(const ptx::Operand& operand, Type type, unsigned bytes) const {
    if (ptx::is_float(type)) refuse("a special register holds no floating-point number");
    static constexpr std::string_view of_64_bits[] = {"%clock64", "%globaltimer", "%gridid",
                                                      "%current_graph_exec"};
    const bool is_wide =
        std::ranges::find(of_64_bits, operand.name) != std::end(of_64_bits) || operand.name.ends_with("_64");
    if (is_wide != (slot_of(type, bytes) == 8)) refuse("{} has {} bits", operand.name, is_wide ? 64 : 32);
}

Ref Lowering::source_or_special(const ptx::Operand& operand, Type type, unsigned bytes) {
    if (operand.kind != OperandKind::special) return source(operand, type, bytes);
    require_special(operand, type, bytes);
    return special(operand, slot_of(type, bytes));
}

Ref Lowering::predicate(const ptx::Operand& operand) {
    if (operand.kind == OperandKind::integer) {
        return functions_.layout().constant((operand.bits != 0) != operand.negated ? ~0u : 0u, 0);
    }
    if (operand.kind != OperandKind::reg || width(operand) != 0)
        refuse("an operand must be a predicate here");
    if (!operand.negated) return register_of(operand);
    const Ref inverted = temporary(0);
    emit({Operation::not_, Type::pred}, {inverted}, {register_of(operand)});
    return inverted;
}

Ref Lowering::result(const ptx::Operand& operand, Type type, unsigned bytes) {
    if (operand.kind != OperandKind::reg) refuse("a result must be a register");
    require_register_of(operand, type, bytes);
    return register_of(operand);
}

// A result that may be the sink `_`, by which a program discards it.
Ref Lowering::result_or_sink(const ptx::Operand& operand, Type type, unsigned bytes) {
    return operand.kind == OperandKind::sink ? temporary(slot_of(type, bytes)) : result(operand, type, bytes);
}

Ref Lowering::temporary(unsigned bytes) {
    body_.register_bytes.push_back(static_cast<std::uint8_t>(bytes == 1 ? 2 : bytes));
    return {Ref::Kind::virtual_register, static_cast<std::uint32_t>(body_.register_bytes.size() - 1)};
}

bool Lowering::is_wide(const ptx::Operand& operand) const {
    return operand.kind == OperandKind::reg && halves_.contains(operand.index);
}

ptx::Operand Lowering::halves_of(const ptx::Operand& operand) const {
    if (!is_wide(operand)) refuse("an operand must be a register of 128 bits here");
    ptx::Operand made;
    made.kind = OperandKind::vector;
    made.parts = {operand, operand};
    made.parts[0].index = halves_.at(operand.index);
    made.parts[1].index = made.parts[0].index + 1;
    return made;
}

Ref Lowering::special(const ptx::Operand& operand, unsigned bytes) {
    for (const ReservedName& known : reserved_names) {
        if (known.name != operand.name) continue;
        Layout& layout = functions_.layout();
        return layout.constant(layout.reserved_shared_address() + known.offset, bytes);
    }
    if (is_one_of(operand.name, "%envreg", 32) && !is_workspace(operand.name))
        return functions_.layout().constant(0, bytes);
    if (is_one_of(operand.name, "%pm", 8) || operand.name == "%current_graph_exec")
        return functions_.layout().constant(0, bytes);
    // %aggr_smem_size reads as the block's own size, not the cluster's, because no known program needs the cluster's.
    const std::string_view name = operand.name == "%aggr_smem_size" ? "%total_smem_size" : operand.name;
    const auto* known = std::ranges::find(special_names, name);
    if (known == std::end(special_names)) refuse("the special register {} is not supported", operand.name);
    const auto which = static_cast<Special>(known - special_names);
    const Ref slot = functions_.layout().special(which);
    if (bytes == 4) return slot;
    const Ref widened = temporary(bytes);
    emit({Operation::cvt, unsigned_of(bytes), Type::u32}, {widened}, {slot});
    return widened;
}

Ref Lowering::symbol_address(const ptx::Operand& operand, unsigned bytes, std::int64_t addend) {
    Layout& layout = functions_.layout();
    const auto plus = static_cast<std::uint64_t>(addend);
    using Origin = Code::Origin;
    const auto note = [&](const ptx::Variable& variable, Origin::Kind kind, std::uint64_t at,
                          const Ref& place) {
        return layout.note_origin(place, {kind, at, variable.bytes, std::string(variable.name)});
    };
    const auto of = [&](const ptx::Variable& variable) -> Ref {
        switch (variable.space) {
            case ptx::Space::shared:
                if (variable.unsized) {
                    layout.align_dynamic_shared(variable.alignment);
                    return note(variable, Origin::Kind::dynamic_shared, 0,
                                layout.constant(plus, bytes, -1, true));
                }
                return note(variable, Origin::Kind::shared, layout.shared_address(variable),
                            layout.constant(layout.shared_address(variable) + plus, bytes));
            case ptx::Space::global:
            case ptx::Space::constant: {
                const auto found = functions_.symbols().globals.find(variable.name);
                if (found == functions_.symbols().globals.end()) {
                    refuse("'{}' is declared .extern: link the module that defines it", variable.name);
                }
                return note(variable, Origin::Kind::global, found->second,
                            layout.constant(plus, bytes, static_cast<std::int32_t>(found->second)));
            }
            default:
                refuse("the address of '{}' cannot be taken", variable.name);
        }
    };
    if (operand.kind == OperandKind::variable) {
        const ptx::Variable& variable = function_.variable(operand.index);
        const bool is_copied = !function_.is_entry && is_passed(operand.index);
        if (variable.space == ptx::Space::local || is_copied) {
            const auto found = addresses_.find(operand.index);
            if (reenters_) return frame_address(found->second + plus, bytes);
            const std::uint64_t address = found != addresses_.end()
                                              ? found->second
                                              : addresses_[operand.index] = layout.local_address(variable);
            return note(variable, Origin::Kind::local, address, layout.constant(address + plus, bytes));
        }
        if (variable.space == ptx::Space::param && function_.is_entry) {
            for (std::size_t i = 0; i < function_.parameters.size(); ++i) {
                if (function_.parameters[i] == operand.index) {
                    return layout.constant(param_window + parameters_[i].offset + plus, bytes);
                }
            }
        }
        return of(variable);
    }
    const auto found = functions_.symbols().variables.find(operand.name);
    if (found != functions_.symbols().variables.end()) return of(*found->second);
    const auto function = functions_.symbols().functions.find(operand.name);
    if (function != functions_.symbols().functions.end()) {
        return layout.constant(functions_.symbols().address_of(*function->second) + plus, bytes);
    }
    refuse("'{}' is not declared", operand.name);
}

// The address of a local variable in a re-entrant function.
Ref Lowering::frame_address(std::uint64_t offset, unsigned bytes) {
    const Ref address = temporary(8);
    emit({Operation::add, Type::u64}, {address}, {frame_, functions_.layout().constant(offset, 8)});
    if (bytes == 8) return address;
    const Ref narrow = temporary(bytes);
    emit({Operation::cvt, unsigned_of(bytes), Type::u64}, {narrow}, {address});
    return narrow;
}

Step& Lowering::emit(const Key& key, std::vector<Ref> results, std::vector<Ref> sources) {
    Step step;
    step.key = key;
    step.results = std::move(results);
    step.sources = std::move(sources);
    step.line = line_;
    body_.steps.push_back(std::move(step));
    return body_.steps.back();
}

}  // namespace emulated::program
