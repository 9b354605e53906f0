// Lowering of texture and surface instructions.
#include <algorithm>

#include "program/lowering.hpp"

namespace emulated::program {
ImageAccess Lowering::image_access(const ptx::Instruction& instruction, const Opcode& opcode) const {
    const auto* found =
        std::ranges::find_if(geometries, [&](const Geometry& each) { return opcode.flags.has(each.flag); });
    if (found == std::end(geometries)) refuse("{} has no geometry", instruction.opcode);
    ImageAccess made;
    made.shape = static_cast<std::uint8_t>(found - geometries);
    made.type = opcode.type;
    made.coordinate = opcode.second;
    return made;
}

// The handle in [object, {coordinates}].
Ref Lowering::image_handle(const ptx::Operand& address) {
    if (address.kind == OperandKind::reg) return source(address, Type::u64);
    if (address.kind != OperandKind::address || address.parts.empty() || address.bits != 0)
        refuse("a texture or surface is named by the object in a register");
    if (address.parts[0].kind != OperandKind::reg)
        refuse(
            "texture and surface references are not supported, CUDA has none since 12.0: pass a texture object");
    return source(address.parts[0], Type::u64);
}

// Appends the first `count` elements of the vector to `into`; the rest is padding.
void Lowering::append_coordinates(const ptx::Operand& given, unsigned count, const Opcode& opcode,
                                  std::vector<Ref>& into) {
    const std::vector<ptx::Operand> parts = elements_of(given);
    if (parts.size() != count && parts.size() != (count == 3 ? 4 : count))
        refuse("the coordinates have {} components, which is not what the geometry needs", parts.size());
    for (unsigned i = 0; i < count; ++i)
        into.push_back(source(parts[i], opcode.second == Type::none ? Type::b32 : opcode.second));
}

// tex.2d.v4.f32.f32 {d}|p, [a, {c}]. With .level and .grad, a level or derivatives follow in the list of coordinates.
void Lowering::sample(const ptx::Instruction& instruction, const Opcode& opcode) {
    ImageAccess access = image_access(instruction, opcode);
    const Geometry& geometry = access.geometry();
    if (opcode.row->operation == Operation::tld4)
        access.what = opcode.flags.first_of({Flag::right, Flag::g, Flag::b, Flag::a}, Flag::right);
    const std::size_t derivatives = opcode.flags.has(Flag::lod) ? 1 : opcode.flags.has(Flag::grad) ? 2 : 0;
    if (instruction.operands.size() != 2 + derivatives)
        refuse(
            "{} has {} operands, which are too many or too few: offsets and depth comparisons "
            "are not supported",
            instruction.opcode, instruction.operands.size());

    const ptx::Operand* to = &operand(instruction, 0);
    const ptx::Operand* resident = nullptr;
    if (to->kind == OperandKind::pair) {
        resident = &to->parts[1];
        to = &to->parts[0];
    }
    const ptx::Operand& from = operand(instruction, 1);
    if (to->kind != OperandKind::vector || to->parts.size() != 4)
        refuse("{} needs 4 destination registers", instruction.opcode);
    if (from.kind != OperandKind::address || from.parts.size() != 2)
        refuse("a texture with a separate sampler is not supported: pass a texture object");
    std::vector<Ref> results, coordinates;
    for (const ptx::Operand& part : to->parts) results.push_back(result_or_sink(part, opcode.type));
    append_coordinates(from.parts[1], geometry.coordinates(), opcode, coordinates);
    if (opcode.flags.has(Flag::lod)) {
        access.what = Flag::lod;
        coordinates.push_back(source(operand(instruction, 2), opcode.second));
    }
    if (opcode.flags.has(Flag::grad)) {
        access.what = Flag::grad;
        for (const std::size_t each : {2u, 3u})
            append_coordinates(operand(instruction, each), geometry.dimensions, opcode, coordinates);
    }
    const Ref handle = image_handle(from);
    Step& step = emit({opcode.row->operation}, std::move(results), {handle});
    step.immediate = packed(access);
    step.list = std::move(coordinates);
    // All memory is resident.
    if (resident != nullptr) {
        const Ref yes = functions_.layout().constant(~0u, 0);
        emit({Operation::mov, Type::pred}, {result(*resident, Type::pred)}, {yes});
    }
}

// suld.b.2d.v2.b32.trap {d}, [a, {c}]; sust.b.2d.v2.b32.trap [a, {c}], {v}; sured.b.add.2d.u32.trap [a, {c}], v
void Lowering::surface(const ptx::Instruction& instruction, const Opcode& opcode) {
    const FlagSet clamps{Flag::trap, Flag::clamp, Flag::zero};
    if (!(opcode.flags & clamps).single())
        refuse("{} needs one of .trap, .clamp and .zero", instruction.opcode);
    expect_operands(instruction, 2);
    const bool loads = opcode.row->operation == Operation::suld;
    ImageAccess access = image_access(instruction, opcode);
    access.outside = opcode.flags.first_of({Flag::clamp, Flag::zero}, Flag::trap);
    access.formatted = opcode.flags.has(Flag::p);
    access.what = opcode.flags.first_of({Flag::add, Flag::min, Flag::max, Flag::and_, Flag::or_}, Flag::rn);
    const ptx::Operand& at = operand(instruction, loads ? 1 : 0);
    const ptx::Operand& data = operand(instruction, loads ? 0 : 1);
    if (at.kind != OperandKind::address || at.parts.size() != 2) refuse("a surface needs coordinates");
    const auto [parts, lanes, bytes, wide] =
        parts_of(data, instruction, opcode, loads ? "destination" : "source");
    if (wide != std::max(2u, bytes)) refuse("the registers are not those of the type");
    if (bytes * lanes > 16) refuse("{} is wider than 16 bytes", instruction.opcode);
    access.values = static_cast<std::uint8_t>(lanes);
    std::vector<Ref> results, list;
    append_coordinates(at.parts[1], access.geometry().coordinates(), opcode, list);
    for (const ptx::Operand& part : parts) {
        if (loads)
            results.push_back(result(part, opcode.type));
        else
            list.push_back(source(part, opcode.type));
    }
    const Ref handle = image_handle(at);
    Step& step = emit({opcode.row->operation}, std::move(results), {handle});
    step.immediate = packed(access);
    step.list = std::move(list);
}

// txq.width.b32 d, [a]; istypep.texref p, a
void Lowering::query(const ptx::Instruction& instruction, const Opcode& opcode) {
    ImageAccess access;
    access.what = opcode.flags.first_of(
        {Flag::width, Flag::height, Flag::depth, Flag::array_size, Flag::num_mipmap_levels, Flag::num_samples,
         Flag::texref, Flag::samplerref, Flag::surfref},
        Flag::rn);
    const bool predicate = opcode.row->operation == Operation::istypep;
    const Ref handle = image_handle(operand(instruction, 1));
    emit({opcode.row->operation}, {result(operand(instruction, 0), predicate ? Type::pred : Type::b32)},
         {handle})
        .immediate = packed(access);
}

}  // namespace emulated::program
