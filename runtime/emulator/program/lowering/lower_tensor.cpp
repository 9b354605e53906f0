// Lowering of matrix instructions: products, loads and stores.
#include "program/lowering.hpp"
#include "program/table/matrices.hpp"

namespace emulated::program {
namespace {

constexpr FlagSet logic{Flag::xor_, Flag::and_}, layouts{Flag::row, Flag::col};

bool is_small_product(const Product& product) { return product.a == Type::f16 && product.depth == 4; }

}  // namespace

Type register_of_matrix(Type element) noexcept {
    if (element == Type::f16) return Type::f16x2;
    if (element == Type::bf16) return Type::bf16x2;
    constexpr TypeSet whole{Type::tf32, Type::f32, Type::f64, Type::s32};
    return whole.has(element) ? element : Type::b32;
}

// The registers of one matrix: `count` registers in braces.
std::vector<ptx::Operand> Lowering::registers_of_matrix(const ptx::Operand& given, std::size_t count,
                                                        const char* which) {
    if (given.kind != OperandKind::vector) refuse("the registers of {} stand in braces", which);
    std::vector<ptx::Operand> made = elements_of(given);
    if (made.size() != count) refuse("{} has {} registers, not {}", which, count, made.size());
    return made;
}

// mma, mma.sp, wmma.mma d, a, b, c {, metadata, selector}.
void Lowering::multiply_matrices(const ptx::Instruction& instruction, const Opcode& opcode) {
    const bool wmma = opcode.row->name == "wmma";
    const bool sparse = opcode.flags.has(Flag::sp) || opcode.flags.has(Flag::sp_ordered);
    const bool halves = opcode.third == Type::none;  // wmma of f16 names only the types of the accumulators
    const Family family = wmma ? Family::wmma : sparse ? Family::sparse_mma : Family::mma;
    const auto product =
        halves ? product_of(family, opcode.flags, Type::f16, Type::f16, opcode.second, opcode.type)
               : product_of(family, opcode.flags, opcode.second, opcode.third, opcode.fourth, opcode.type);
    if (!product) unsupported(instruction);
    const bool integers = product->d == Type::s32, single_bits = product->a == Type::b1;
    const FlagSet roundings = opcode.flags & FlagSet{Flag::rz, Flag::rm, Flag::rp};
    if (opcode.flags.has(Flag::satfinite) && (!integers || single_bits)) unsupported(instruction);
    if (single_bits != (opcode.flags & logic).single() || single_bits != opcode.flags.has(Flag::popc))
        unsupported(instruction);
    if (!(roundings | (opcode.flags & FlagSet{Flag::rn})).empty() && product->a != Type::f64)
        unsupported(instruction);

    // Layouts affect only m8n8k4 of f16. For wmma they were applied by wmma.load; all others must be .row.col.
    const bool small = is_small_product(*product);
    const std::string_view text = instruction.opcode;
    const auto layout = [&](std::string_view which) { return text.find(which) != text.npos; };
    const bool a_by_columns = layout(".col.row") || layout(".col.col");
    const bool b_by_rows = layout(".col.row") || layout(".row.row");
    if (!a_by_columns && !b_by_rows && !layout(".row.col")) unsupported(instruction);
    if ((a_by_columns || b_by_rows) && !small && (!wmma || bits_of(product->a) < 8)) unsupported(instruction);

    expect_operands(instruction, sparse ? 6 : 4);
    // m8n8k4 of f16, whose registers follow another rule: four products by groups of eight lanes.
    const unsigned small_sums = product->d == Type::f16 ? 4 : 8;
    std::vector<Ref> list;
    const auto add = [&](std::size_t index, const Fragment& fragment, Type type, const char* which,
                         unsigned small_count) {
        const bool copied = wmma && type == Type::f16 && (index == 1 || index == 2);
        const unsigned kept = small ? small_count : registers_of(fragment);
        const Type element = register_of_matrix(type);
        const auto parts = registers_of_matrix(instruction.operands[index], copied ? 8 : kept, which);
        for (unsigned i = 0; i < kept; ++i)
            list.push_back(index == 0 ? result(parts[i], element) : source(parts[i], element));
    };
    add(0, fragment_c(*product, product->d), product->d, "D", small_sums);
    const std::size_t results = list.size();
    add(1, fragment_a(*product, sparse), product->a, "A", 2);
    add(2, fragment_b(*product), product->b, "B", 2);
    add(3, fragment_c(*product, product->c), product->c, "C", product->c == Type::f16 ? 4 : 8);

    std::vector<Ref> metadata;
    std::uint32_t selector = 0;
    if (sparse) {
        metadata.push_back(source(instruction.operands[4], Type::u32));
        const ptx::Operand& given = instruction.operands[5];
        if (given.kind != OperandKind::integer || given.bits > 3)
            refuse("the sparsity selector is a constant below 4");
        selector = static_cast<std::uint32_t>(given.bits);
    }
    Key key{Operation::mma, small ? Type::f16 : arithmetic_of(*product), Type::none,
            roundings | (opcode.flags & logic)};
    if (sparse) key.flags.add(Flag::sp);
    Step& step = emit(key, {}, std::move(metadata));
    step.immediate = packed(*product);
    step.extra = selector;
    step.bits = static_cast<std::uint16_t>((opcode.flags.has(Flag::satfinite) ? ProductBits::saturates : 0) |
                                           (a_by_columns ? ProductBits::a_by_columns : 0) |
                                           (b_by_rows ? ProductBits::b_by_rows : 0));
    step.listed_results = results;
    step.list = std::move(list);
}

// wmma.load.a d, [p] {, stride}; wmma.store.d [p], d {, stride}.
void Lowering::move_matrix(const ptx::Instruction& instruction, const Opcode& opcode) {
    const bool loads = opcode.row->operation == Operation::load_matrix;
    expect_operands(instruction, instruction.operands.size(), 2, 3);
    Flag matrix = Flag::d;
    for (const Flag each : {Flag::a, Flag::b, Flag::c}) {
        if (opcode.flags.has(each)) matrix = each;
    }
    const auto fragment = wmma_fragment(opcode.flags, matrix, opcode.type);
    if (!fragment || !(opcode.flags & layouts).single()) unsupported(instruction);
    const ptx::Operand& registers = operand(instruction, loads ? 0 : 1);
    const FlagSet spaces = opcode.flags & every_space;
    const Address where = address(operand(instruction, loads ? 1 : 0), spaces.empty() ? every_space : spaces);
    const Type element = register_of_matrix(opcode.type);
    std::vector<Ref> list;
    const std::size_t count = std::size_t{fragment->copies} * program::registers_of(*fragment);
    for (const ptx::Operand& part : registers_of_matrix(registers, count, "the matrix"))
        list.push_back(loads ? result(part, element) : source(part, element));
    // Without a stride, rows or columns are contiguous.
    const unsigned length = fragment->inner_contiguous
                                ? fragment->inner * fragment->per_register * fragment->registers * 4u
                                : fragment->outer * 8u;
    const Ref stride = instruction.operands.size() > 2 ? source(instruction.operands[2], Type::u32)
                                                       : functions_.layout().constant(length, 4);
    const Ref offset = functions_.layout().constant(static_cast<std::uint64_t>(where.offset), 8);
    Step& step = emit({opcode.row->operation, Type::none, Type::none, opcode.flags & FlagSet{Flag::shared}},
                      {}, {where.base, stride, offset});
    access(step, where).immediate = packed(*fragment);
    step.listed_results = loads ? list.size() : 0;
    step.list = std::move(list);
}

// ldmatrix r, [p]; stmatrix [p], r: up to four matrices of 8 x 8 halves. Each lane has the address of a row.
void Lowering::move_rows(const ptx::Instruction& instruction, const Opcode& opcode) {
    const bool loads = opcode.row->operation == Operation::ldmatrix;
    expect_operands(instruction, 2);
    const std::size_t count = opcode.flags.has(Flag::x4) ? 4 : opcode.flags.has(Flag::x2) ? 2 : 1;
    const FlagSet spaces = opcode.flags & every_space;
    const Address where = address(operand(instruction, loads ? 1 : 0), spaces.empty() ? every_space : spaces);
    std::vector<Ref> list;
    for (const ptx::Operand& part :
         registers_of_matrix(operand(instruction, loads ? 0 : 1), count, "the matrix"))
        list.push_back(loads ? result(part, Type::b32) : source(part, Type::b32));
    Step& step = emit({opcode.row->operation, Type::u16, Type::none, opcode.flags & FlagSet{Flag::trans}}, {},
                      {where.base});
    access(step, where).listed_results = loads ? list.size() : 0;
    step.list = std::move(list);
}

}  // namespace emulated::program
