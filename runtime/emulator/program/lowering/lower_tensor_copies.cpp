// Lowering of copies of tiles by tensor maps, and of the instructions on tensor maps.
#include <algorithm>
#include <iterator>
#include <string_view>

#include "program/lowering.hpp"
#include "program/tensor_access.hpp"

namespace emulated::program {

// The address of a tensor map, which an operand names alone or with `parts` - 1 vectors after it.
Ref Lowering::tensor_map(const ptx::Operand& given, std::size_t parts) {
    if (given.kind != OperandKind::address || given.parts.size() != parts)
        refuse("a tensor map is given as [map{}]", parts == 1 ? "" : ", {coordinates}");
    if (parts > 1 && given.bits != 0) refuse("the address of a tensor map has no offset here");
    ptx::Operand alone = given;
    alone.parts.resize(1);
    return whole_address(alone, {Flag::global});
}

// cp.async.bulk.tensor [to], [map, coordinates], [mbarrier] {, offsets} {, mask of blocks} {, policy},
// cp{.reduce}.async.bulk.tensor [map, coordinates], [from] {, policy} and
// cp.async.bulk.prefetch.tensor [map, coordinates] {, offsets} {, policy}
void Lowering::copy_tensor(const ptx::Instruction& instruction, const Opcode& opcode) {
    using What = TensorAccess::What;
    constexpr Flag ranks[] = {Flag::geometry_1d, Flag::geometry_2d, Flag::geometry_3d, Flag::geometry_4d,
                              Flag::geometry_5d};
    const FlagSet& flags = opcode.flags;
    TensorAccess access;
    access.what = flags.has(Flag::prefetch)     ? What::prefetch
                  : flags.has(Flag::bulk_group) ? What::store
                                                : What::load;
    const auto* rank = std::ranges::find_if(ranks, [&](Flag each) { return flags.has(each); });
    if (rank == std::end(ranks)) unsupported(instruction);
    access.rank = static_cast<std::uint8_t>(rank - ranks + 1);
    access.im2col = flags.has(Flag::im2col) || flags.has(Flag::im2col_no_offs);
    const bool loads = access.what == What::load, to_cluster = flags.has(Flag::shared_cluster);
    const bool multicast = flags.has(Flag::multicast);
    // ptxas wants this order: the instruction, then the space of the destination before that of the source. It knows neither
    // .shared nor .L1 here.
    const std::string_view spelled = instruction.opcode;
    const char* name = access.what == What::prefetch ? "cp.async.bulk.prefetch.tensor."
                       : flags.has(Flag::reduce)     ? "cp.reduce.async.bulk.tensor."
                                                     : "cp.async.bulk.tensor.";
    const auto at = [&](std::string_view part) { return spelled.find(part); };
    const bool ordered = spelled.starts_with(name) && at(".shared.") == spelled.npos &&
                         at(".L1.") == spelled.npos &&
                         (access.what == What::prefetch || (at(".shared::") < at(".global")) == loads);
    if (!ordered || (access.im2col && access.rank < 3) || (loads && to_cluster == flags.has(Flag::shared)) ||
        (multicast && !to_cluster))
        unsupported(instruction);

    const std::size_t count = count_without_policy(instruction, opcode);
    if (flags.has(Flag::policy)) source(instruction.operands.back(), Type::u64);
    const bool has_offsets = access.im2col && access.what != What::store;
    const std::size_t least = loads ? 3 : access.what == What::store ? 2 : 1;
    const std::size_t wanted = least + (has_offsets ? 1 : 0) + (multicast ? 1 : 0);
    expect_operands(instruction, count, wanted, wanted);
    const ptx::Operand& map = instruction.operands[loads ? 1 : 0];
    std::vector<Ref> sources{tensor_map(map, 2)}, list;
    const auto append = [&](const ptx::Operand& given, std::size_t values, Type type, const char* what) {
        const std::vector<ptx::Operand> elements = elements_of(given);
        if (given.kind != OperandKind::vector || elements.size() != values)
            refuse("{} needs {} {} in braces", instruction.opcode, values, what);
        for (const ptx::Operand& element : elements) list.push_back(source(element, type));
    };
    append(map.parts[1], access.rank, Type::b32, "coordinates");
    if (has_offsets) append(instruction.operands[least], access.rank - std::size_t{2}, Type::u16, "offsets");
    std::uint16_t bits = to_cluster ? Instruction::in_cluster : std::uint16_t{0};
    if (access.what == What::store) functions_.layout().reads_shared_async();
    if (access.what != What::prefetch) {
        const FlagSet where =
            loads ? flags & FlagSet{Flag::shared, Flag::shared_cluster} : FlagSet{Flag::shared};
        sources.push_back(whole_address(instruction.operands[loads ? 0 : 1], where));
    }
    if (loads) sources.push_back(whole_address(instruction.operands[2], {Flag::shared}));
    if (multicast) {
        const Ref mask = temporary(4);
        emit({Operation::cvt, Type::u32, Type::u16}, {mask},
             {source(instruction.operands[count - 1], Type::u16)});
        sources.push_back(mask);
        bits |= Instruction::multicast;
    }
    Step& step = emit(key_of(opcode), {}, std::move(sources));
    step.list = std::move(list);
    step.bits = bits;
    step.immediate = packed(access);
}

// tensormap.replace [map], {ordinal,} value
void Lowering::replace_in_map(const ptx::Instruction& instruction, const Opcode& opcode) {
    if (!instruction.opcode.starts_with("tensormap.replace.")) unsupported(instruction);
    struct Field {
        Flag flag;
        std::uint64_t ordinals;   ///< 0: the field has none
        std::uint64_t constants;  ///< the value must be a constant below this; 0: any value
    };
    static constexpr Field fields[] = {
        {Flag::global_address, 0, 0}, {Flag::rank, 0, 0},
        {Flag::box_dim, 5, 0},        {Flag::global_dim, 5, 0},
        {Flag::global_stride, 4, 0},  {Flag::element_stride, 5, 0},
        {Flag::elemtype, 0, 13},      {Flag::interleave_layout, 0, 3},
        {Flag::swizzle_mode, 0, 4},   {Flag::fill_mode, 0, 2},
    };
    const Field& field =
        *std::ranges::find_if(fields, [&](const Field& each) { return opcode.flags.has(each.flag); });
    expect_operands(instruction, field.ordinals == 0 ? 2 : 3);
    const ptx::Operand& value = instruction.operands.back();
    const auto is_below = [](const ptx::Operand& given, std::uint64_t end) {
        return given.kind == OperandKind::integer && given.bits < end;
    };
    TensorMapField replaced;
    replaced.field = field.flag;
    replaced.space = opcode.flags.first_of({Flag::global, Flag::shared}, Flag::to);
    if (field.ordinals != 0) {
        if (!is_below(instruction.operands[1], field.ordinals))
            refuse("{} needs a constant ordinal below {}", instruction.opcode, field.ordinals);
        replaced.ordinal = static_cast<std::uint8_t>(instruction.operands[1].bits);
    }
    if (field.constants != 0 && !is_below(value, field.constants))
        refuse("{} needs a constant below {}", instruction.opcode, field.constants);
    const Ref map = whole_address(instruction.operands[0], opcode.flags & every_space);
    emit(untyped_key(opcode), {}, {map, source(value, opcode.type)}).immediate = packed(replaced);
}

// Checks the operand in which some instructions repeat the size of a tensor map.
void Lowering::require_map_bytes(const ptx::Operand& given) const {
    if (given.kind != OperandKind::integer || given.bits != 128) refuse("a tensor map has 128 bytes");
}

// tensormap.cp_fenceproxy [to], [from], 128
void Lowering::copy_tensor_map(const ptx::Instruction& instruction, const Opcode& opcode) {
    if (!instruction.opcode.starts_with("tensormap.cp_fenceproxy.")) unsupported(instruction);
    expect_operands(instruction, 3);
    require_map_bytes(instruction.operands[2]);
    if (instruction.opcode.find(".global.shared::cta.") == instruction.opcode.npos) unsupported(instruction);
    const Ref to = whole_address(instruction.operands[0], {Flag::global});
    emit(key_of(opcode), {}, {to, whole_address(instruction.operands[1], {Flag::shared})});
}

// fence.proxy.tensormap::generic.acquire [map], 128
void Lowering::fence_tensor_map(const ptx::Instruction& instruction, const Opcode& opcode) {
    if (!instruction.opcode.starts_with("fence.proxy.")) unsupported(instruction);
    expect_operands(instruction, 2);
    require_map_bytes(instruction.operands[1]);
    emit(key_of(opcode), {}, {tensor_map(instruction.operands[0], 1)});
}

}  // namespace emulated::program
