// Lowering of video instructions: selectors, masks and modifiers.
#include <algorithm>
#include <functional>

#include "program/lowering.hpp"

namespace emulated::program {
namespace {

struct PartName {
    std::string_view name;
    Part part;
};
constexpr PartName parts[] = {{"", Part::word}, {"b0", Part::b0}, {"b1", Part::b1}, {"b2", Part::b2},
                              {"b3", Part::b3}, {"h0", Part::h0}, {"h1", Part::h1}};

// The digits of .h31 or .b7610, the last one first; nothing if it is not a selector or a digit exceeds `most`.
std::vector<unsigned> digits_of(std::string_view selector, char letter, unsigned most) {
    std::vector<unsigned> made;
    if (selector.size() < 2 || selector[0] != letter) return made;
    for (std::size_t i = selector.size(); i-- > 1;) {
        const auto digit = static_cast<unsigned>(selector[i]) - '0';
        if (digit > most) return {};
        made.push_back(digit);
    }
    return made;
}

// Sets which operands are signed. vset has no result type.
template <class Form>
void set_signs(Form& form, const Opcode& opcode) {
    const bool is_set = opcode.third == Type::none;
    form.d_signed = !is_set && opcode.type == Type::s32;
    form.a_signed = (is_set ? opcode.type : opcode.second) == Type::s32;
    form.b_signed = (is_set ? opcode.second : opcode.third) == Type::s32;
}

}  // namespace

// The operand without its selector and negation: a register or a constant.
Ref Lowering::selected(const ptx::Operand& operand) {
    ptx::Operand plain = operand;
    plain.name = {};
    plain.negated = false;
    return source(plain, Type::u32);
}

// Emits the step of a video instruction, without its form, which the caller sets.
Step& Lowering::emit_video(const Opcode& opcode, const ptx::Operand& to, std::vector<Ref> sources) {
    ptx::Operand plain = to;
    plain.name = {};
    const FlagSet orders{Flag::eq, Flag::ne, Flag::lt, Flag::le, Flag::gt, Flag::ge};
    return emit({opcode.row->operation, Type::none, Type::none, opcode.flags & orders},
                {result(plain, Type::u32)}, std::move(sources));
}

// vop.dtype.atype.btype d.dsel, a.asel, b.bsel, c. c is needed for a secondary operation or a merge.
void Lowering::scalar_video(const ptx::Instruction& instruction, const Opcode& opcode) {
    const bool is_mad = opcode.row->operation == Operation::video_mad;
    const FlagSet& flags = opcode.flags;
    const FlagSet secondary = flags & FlagSet{Flag::add, Flag::min, Flag::max};
    const auto part_of = [&](const ptx::Operand& operand) {
        const auto* found = std::ranges::find(parts, operand.name, &PartName::name);
        if (found == std::end(parts) || operand.kind == OperandKind::special)
            refuse("{}: '.{}' is not a byte or half of an operand", instruction.opcode, operand.name);
        return found->part;
    };
    const ptx::Operand &d = operand(instruction, 0), &a = operand(instruction, 1),
                       &b = operand(instruction, 2);
    ScalarVideo form;
    form.d = part_of(d);
    form.a = part_of(a);
    form.b = part_of(b);
    form.secondary = flags.first_of({Flag::add, Flag::min, Flag::max}, Flag::count);
    form.scale = flags.first_of({Flag::shr7, Flag::shr15}, Flag::count);
    set_signs(form, opcode);
    form.saturates = flags.has(Flag::sat);
    form.wraps = flags.has(Flag::wrap);
    form.plus_one = flags.has(Flag::po);
    const bool merges = form.d != Part::word;
    const bool with_c = is_mad || merges || !secondary.empty();
    if (instruction.operands.size() != (with_c ? 4u : 3u) || (merges && (is_mad || !secondary.empty())) ||
        (!secondary.empty() && !secondary.single()))
        refuse("{} with these operands is not supported", instruction.opcode);
    form.negates_product = a.negated != b.negated;
    form.negates_c = with_c && instruction.operands[3].negated;
    if (with_c &&
        (instruction.operands[3].kind == OperandKind::special ||
         (instruction.operands[3].kind == OperandKind::reg && !instruction.operands[3].name.empty())))
        refuse("{}: operand 3 must be a register without a selector, or a constant", instruction.opcode);
    const bool negates = a.negated || b.negated || form.negates_c;
    if (negates &&
        (!is_mad || form.plus_one || (form.negates_product && form.negates_c) || (a.negated && b.negated)))
        refuse("{} cannot negate these operands", instruction.opcode);
    const Ref first = selected(a), second = selected(b);
    const Ref third = with_c ? selected(instruction.operands[3]) : first;
    emit_video(opcode, d, {first, second, third}).immediate = packed(form);
}

// vop2.dtype.atype.btype d.mask, a.asel, b.bsel, c, and vop4.
void Lowering::vector_video(const ptx::Instruction& instruction, const Opcode& opcode) {
    VectorVideo form;
    form.lanes = opcode.row->name.ends_with("4") ? 4 : 2;
    const char letter = form.lanes == 4 ? 'b' : 'h';
    const unsigned most = 2u * form.lanes - 1;
    expect_operands(instruction, 4);
    for (std::size_t i = 1; i < 4; ++i) {  // ptxas reports "incorrect video selector" for others
        const ptx::Operand& source = instruction.operands[i];
        if (source.kind != OperandKind::reg || source.negated || (i == 3 && !source.name.empty()))
            refuse("{}: operand {} must be a register{}", instruction.opcode, i,
                   i == 3 ? " without a selector" : "");
    }
    const auto selectors = [&](const ptx::Operand& operand, unsigned first) {
        std::vector<unsigned> lanes = digits_of(operand.name, letter, most);
        if (operand.name.empty()) {
            for (unsigned lane = 0; lane < form.lanes; ++lane) lanes.push_back(first + lane);
        }
        if (lanes.size() != form.lanes)
            refuse("{}: '.{}' does not select {} parts", instruction.opcode, operand.name, form.lanes);
        std::uint16_t made = 0;
        for (unsigned lane = 0; lane < form.lanes; ++lane)
            made = static_cast<std::uint16_t>(made | lanes[lane] << (4 * lane));
        return made;
    };
    const ptx::Operand& d = instruction.operands[0];
    form.a = selectors(instruction.operands[1], 0);
    form.b = selectors(instruction.operands[2], form.lanes);
    form.mask = d.name.empty() ? static_cast<std::uint8_t>((1u << form.lanes) - 1) : std::uint8_t{0};
    const std::vector<unsigned> written = digits_of(d.name, letter, form.lanes - 1u);
    for (const unsigned lane : written) form.mask = static_cast<std::uint8_t>(form.mask | 1u << lane);
    const bool descends = std::ranges::adjacent_find(written, std::greater_equal{}) == written.end();
    if (form.mask == 0 || !descends) refuse("{}: '.{}' is not a mask", instruction.opcode, d.name);
    set_signs(form, opcode);
    form.saturates = opcode.flags.has(Flag::sat);
    form.accumulates = opcode.flags.has(Flag::add);
    if (form.saturates && form.accumulates)
        refuse("{}: .sat and .add exclude each other", instruction.opcode);
    std::vector<Ref> sources;
    for (std::size_t i = 1; i < 4; ++i) sources.push_back(selected(instruction.operands[i]));
    emit_video(opcode, d, std::move(sources)).immediate = packed(form);
}

}  // namespace emulated::program
