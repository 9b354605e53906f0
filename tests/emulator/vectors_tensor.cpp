// Matrix operations of a warp: mma with and without a sparse A, ldmatrix, stmatrix, movmatrix, and wmma.
#include "vectors_tensor.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "reference/grammar.hpp"

namespace vectors {
namespace {

using reference::Matrix;
using reference::Place;
using reference::Shape;

bool is_float_element(Type type) {
    return type == Type::tf32 || type == Type::e4m3 || type == Type::e5m2 || emulated::ptx::is_float(type);
}

Bits some_element(Type type, bool wild, Random& random) {
    const unsigned bits = reference::matrix_bits(type);
    const Bits mask = bits == 64 ? ~Bits{0} : (Bits{1} << bits) - 1;
    if (!is_float_element(type)) return wild ? some_integer(32, random) & mask : random() & mask;
    if (type == Type::e4m3 || type == Type::e5m2) {
        for (;;) {
            const Bits any = random() & mask;
            if (wild || std::isfinite(reference::matrix_value(type, any))) return any;
        }
    }
    const Type format = type == Type::tf32 ? Type::f32 : type;
    if (wild) return some_value(format, random);
    // Small numbers with all digits, so that sums cancel and are rounded.
    const double value = (static_cast<double>(random() % 2001) - 1000) / 256;
    if (format == Type::f64) return reference::bits_of(format, value * 1.1);
    if (format == Type::f32)
        return reference::bits_of(format, static_cast<double>(static_cast<float>(value * 1.1)));
    return reference::bits_of(
        format, std::ldexp(std::round(std::ldexp(value, 4)), -4 - static_cast<int>(random() % 4)));
}

}  // namespace

Matrix some_matrix(Type type, unsigned rows, unsigned columns, bool wild, Random& random) {
    Matrix made(type, rows, columns);
    for (Bits& element : made.elements) element = some_element(type, wild, random);
    return made;
}

namespace {

// --- registers ---------------------------------------------------------------------------------------------

/// The registers of one operand, of all lanes.
struct Registers {
    unsigned count = 0, bytes = 4;
    std::vector<std::uint64_t> lanes;  // [lane][register]

    Registers(unsigned elements, Type type)
        : count(elements * reference::matrix_bits(type) / (type == Type::f64 ? 64 : 32)),
          bytes(type == Type::f64 ? 8 : 4),
          lanes(32 * std::size_t{count}) {}
    void put(Type type, unsigned lane, unsigned i, Bits bits) {
        const unsigned width = reference::matrix_bits(type), each = 8 * bytes / width;
        lanes[lane * count + i / each] |= bits << (i % each * width);
    }
    Bits get(Type type, unsigned lane, unsigned i) const {
        const unsigned width = reference::matrix_bits(type), each = 8 * bytes / width;
        const Bits shifted = lanes[lane * count + i / each] >> (i % each * width);
        return width == 64 ? shifted : shifted & ((Bits{1} << width) - 1);
    }
};

std::string list_of(const char* name, unsigned count) {
    std::string text = "{";
    for (unsigned i = 0; i < count; ++i) text += (i ? ", %" : "%") + std::string(name) + std::to_string(i);
    return text + "}";
}

/// Loads `operands` from [%in], runs the instruction, and stores the result's registers to [%out].
std::string kernel_of(const std::string& instruction,
                      const std::vector<std::pair<const char*, const Registers*>>& operands,
                      const char* result, const Registers& shape_of_result, bool metadata) {
    std::string text = header +
                       ".visible .entry k(.param .u64 pin, .param .u64 pout) {\n.reg .b64 %in, %out, %at;\n"
                       ".reg .b32 %t, %meta;\n";
    unsigned slots = metadata;
    for (const auto& [name, registers] : operands) slots += registers->count;
    const auto declare = [&](const char* name, const Registers& registers) {
        text += ".reg ." + std::string(registers.bytes == 8 ? "b64" : "b32") + " %" + name + "<" +
                std::to_string(registers.count) + ">;\n";
    };
    for (const auto& [name, registers] : operands) declare(name, *registers);
    if (std::string_view(result) == "d") declare("d", shape_of_result);
    text +=
        "ld.param.u64 %in, [pin];\nld.param.u64 %out, [pout];\nmov.u32 %t, %laneid;\n"
        "mul.wide.u32 %at, %t, " +
        std::to_string(8 * slots) +
        ";\nadd.u64 %in, %in, %at;\n"
        "mul.wide.u32 %at, %t, " +
        std::to_string(8 * shape_of_result.count) + ";\nadd.u64 %out, %out, %at;\n";
    unsigned slot = 0;
    const auto next = [&] { return "[%in+" + std::to_string(8 * slot++) + "];\n"; };
    for (const auto& [name, registers] : operands) {
        for (unsigned i = 0; i < registers->count; ++i)
            text += "ld.global.b" + std::to_string(8 * registers->bytes) + " %" + name + std::to_string(i) +
                    ", " + next();
    }
    if (metadata) text += "ld.global.b32 %meta, " + next();
    text += instruction;
    for (unsigned i = 0; i < shape_of_result.count; ++i)
        text += "st.global.b" + std::to_string(8 * shape_of_result.bytes) + " [%out+" +
                std::to_string(8 * i) + "], %" + result + std::to_string(i) + ";\n";
    return text + "ret;\n}\n";
}

std::vector<std::uint64_t> interleaved(const std::vector<std::pair<const char*, const Registers*>>& operands,
                                       const std::vector<std::uint32_t>& metadata) {
    std::vector<std::uint64_t> made;
    for (unsigned lane = 0; lane < 32; ++lane) {
        for (const auto& [name, registers] : operands)
            made.insert(made.end(), registers->lanes.begin() + lane * registers->count,
                        registers->lanes.begin() + (lane + 1) * registers->count);
        if (!metadata.empty()) made.push_back(metadata[lane]);
    }
    return made;
}

/// Runs the kernel. Returns false, after reporting it, if the kernel is refused or faults.
bool launched(Tally& tally, const std::string& spelling, const Opcode& opcode, const std::string& text,
              std::vector<std::uint64_t>& in, std::vector<std::uint64_t>& out) {
    testing::Device device(text);
    const std::string& refusal = device.module().find_kernel("k")->refusal;
    if (!refusal.empty()) return tally.refused(spelling, refusal), false;
    if (lacks_a_handler(device))
        return tally.fault(opcode, spelling, "is accepted, but nothing runs it"), false;
    if (const auto fault = device.launch("k", {1}, {32}, device.array(in), device.array(out)))
        return tally.fault(opcode, spelling, fault->message), false;
    return true;
}

// --- sparse A ----------------------------------------------------------------------------------------------

}  // namespace

// Rows are divided into groups of four units: elements, pairs of four bits, halves of a tf32. Two units of each group
// are stored, in order, and have two bits each in the row's metadata.
Sparsity some_sparsity(const Shape& shape, Type type, unsigned selector, Random& random) {
    const bool pairs = reference::matrix_bits(type) == 4, halves = type == Type::tf32;
    const unsigned units = halves ? 2 * shape.k : pairs ? shape.k / 2 : shape.k;
    Sparsity made;
    made.stored.resize(shape.m * shape.k);
    for (unsigned lane = 0; lane < 32; ++lane) made.metadata.push_back(static_cast<std::uint32_t>(random()));
    made.selector = selector;
    // From the manual's figures of metadata: the lane and bit of the four bits of a row's `chunk`.
    const auto place = [&](unsigned row, unsigned chunk, std::uint32_t value) {
        const unsigned quad = 4 * (row % 8), upper = row / 8;
        unsigned lane = 0, bit = 0;
        if (units == 16) {  // one thread of four; the upper half is of row + 8
            lane = quad + made.selector;
            bit = 4 * chunk + 16 * upper;
        } else if (units == 32) {  // a pair of threads: the first has chunks 0 to 3
            lane = quad + 2 * made.selector + chunk / 4;
            bit = 4 * (chunk % 4) + 16 * upper;
        } else {  // all threads: T0 and T1 have chunks 0 to 7 of both rows
            lane = quad + 2 * (chunk / 8) + upper;
            bit = 4 * (chunk % 8);
        }
        made.metadata[lane] = (made.metadata[lane] & ~(15u << bit)) | value << bit;
    };
    for (unsigned row = 0; row < shape.m; ++row) {
        for (unsigned chunk = 0; chunk < units / 4; ++chunk) {
            unsigned first = static_cast<unsigned>(random() % 4),
                     second = static_cast<unsigned>(random() % 3);
            if (second >= first) ++second;
            if (first > second) std::swap(first, second);
            if (halves) {
                first = random() % 2 ? 2 : 0;
                second = first + 1;
                made.stored[row * shape.k + chunk * 2 + first / 2] = true;
            }
            for (const unsigned unit : {first, second}) {
                if (halves) continue;
                for (unsigned e = 0; e < (pairs ? 2u : 1u); ++e)
                    made.stored[row * shape.k + (pairs ? (chunk * 4 + unit) * 2 + e : chunk * 4 + unit)] =
                        true;
            }
            place(row, chunk, first | second << 2);
        }
    }
    return made;
}

namespace {

// --- mma ---------------------------------------------------------------------------------------------------

void compare_sums(Tally& tally, const std::string& spelling, const Opcode& opcode, Type type, Bits wanted,
                  Bits got, unsigned lane, unsigned i) {
    tally.compare(opcode, spelling, {type, wanted}, got,
                  [&] { return "lane " + std::to_string(lane) + ", element " + std::to_string(i); });
}

void mma_vectors(Tally& tally, const std::string& spelling, const Opcode& opcode, bool wild, Random& random) {
    const Shape shape = reference::shape_in(spelling);
    const std::vector<Type> types = reference::types_in(spelling);  // D, A, B, C
    const bool sparse = spelling.starts_with("mma.sp");
    reference::ProductRules rules;
    rules.saturates = spelling.find(".satfinite") != spelling.npos;
    rules.exclusive_or = spelling.find(".xor") != spelling.npos;
    Matrix a = some_matrix(types[1], shape.m, shape.k, wild, random);
    const Matrix b = some_matrix(types[2], shape.k, shape.n, wild, random);
    const Matrix c = some_matrix(types[3], shape.m, shape.n, wild, random);
    Sparsity sparsity;
    if (sparse) {
        const unsigned units =
            shape.k * (types[1] == Type::tf32 ? 2 : 1) / (reference::matrix_bits(types[1]) == 4 ? 2 : 1);
        sparsity = some_sparsity(shape, types[1], static_cast<unsigned>(random() % (64 / units)), random);
        rules.stored = sparsity.stored;
    }
    const Matrix d = reference::product(a, b, c, types[0], rules);

    const unsigned stored = sparse ? shape.k / 2 : shape.k;
    Registers ra(shape.m * stored / 32, types[1]), rb(shape.k * shape.n / 32, types[2]),
        rc(shape.m * shape.n / 32, types[3]), rd(shape.m * shape.n / 32, types[0]);
    Matrix packed(types[1], shape.m, stored);
    for (unsigned row = 0; row < shape.m; ++row) {
        for (unsigned k = 0, at = 0; k < shape.k; ++k) {
            if (!sparse || sparsity.stored[row * shape.k + k]) packed.at(row, at++) = a.at(row, k);
        }
    }
    Matrix wb = b, wc = c, wd = d;
    for (unsigned lane = 0; lane < 32; ++lane) {
        for (unsigned i = 0; i < shape.m * stored / 32; ++i)
            ra.put(types[1], lane, i, packed.at(place_in_a(shape, types[1], sparse, lane, i)));
        for (unsigned i = 0; i < shape.k * shape.n / 32; ++i)
            rb.put(types[2], lane, i, wb.at(place_in_b(shape, types[2], sparse, lane, i)));
        for (unsigned i = 0; i < shape.m * shape.n / 32; ++i)
            rc.put(types[3], lane, i, wc.at(place_in_c(shape, lane, i)));
    }
    // Half of the time D is in C's registers.
    const bool in_place = types[0] == types[3] && random() % 2;
    const char* result = in_place ? "c" : "d";
    std::string text = spelling + " " + list_of(result, rd.count) + ", " + list_of("a", ra.count) + ", " +
                       list_of("b", rb.count) + ", " + list_of("c", rc.count);
    if (sparse) text += ", %meta, " + std::to_string(sparsity.selector);
    const std::vector<std::pair<const char*, const Registers*>> operands{{"a", &ra}, {"b", &rb}, {"c", &rc}};
    std::vector<std::uint64_t> in = interleaved(operands, sparsity.metadata), out(32 * rd.count);
    if (!launched(tally, spelling, opcode, kernel_of(text + ";\n", operands, result, rd, sparse), in, out))
        return;
    rd.lanes = out;
    for (unsigned lane = 0; lane < 32; ++lane) {
        for (unsigned i = 0; i < shape.m * shape.n / 32; ++i)
            compare_sums(tally, spelling, opcode, types[0], wd.at(place_in_c(shape, lane, i)),
                         rd.get(types[0], lane, i), lane, i);
    }
}

// mma.m8n8k4 of f16: four separate products.
void small_mma_vectors(Tally& tally, const std::string& spelling, const Opcode& opcode, bool wild,
                       Random& random) {
    const std::vector<Type> types = reference::types_in(spelling);
    const bool a_by_rows = spelling.find("k4.row") != spelling.npos;
    const bool b_by_rows = spelling.find(".row.f") != spelling.npos;
    std::vector<Matrix> a, b, c, d;
    for (unsigned q = 0; q < 4; ++q) {
        a.push_back(some_matrix(Type::f16, 8, 4, wild, random));
        b.push_back(some_matrix(Type::f16, 4, 8, wild, random));
        c.push_back(some_matrix(types[3], 8, 8, wild, random));
        d.push_back(reference::product(a[q], b[q], c[q], types[0], {}));
    }
    Registers ra(4, Type::f16), rb(4, Type::f16), rc(8, types[3]), rd(8, types[0]);
    for (unsigned lane = 0; lane < 32; ++lane) {
        const unsigned q = lane % 16 / 4;
        for (unsigned i = 0; i < 4; ++i) {
            ra.put(Type::f16, lane, i, a[q].at(reference::small_place_in_a(a_by_rows, lane, i)));
            rb.put(Type::f16, lane, i, b[q].at(reference::small_place_in_b(b_by_rows, lane, i)));
        }
        for (unsigned i = 0; i < 8; ++i)
            rc.put(types[3], lane, i, c[q].at(reference::small_place_in_c(types[3], lane, i)));
    }
    const std::string text = spelling + " " + list_of("d", rd.count) + ", " + list_of("a", 2) + ", " +
                             list_of("b", 2) + ", " + list_of("c", rc.count) + ";\n";
    const std::vector<std::pair<const char*, const Registers*>> operands{{"a", &ra}, {"b", &rb}, {"c", &rc}};
    std::vector<std::uint64_t> in = interleaved(operands, {}), out(32 * rd.count);
    if (!launched(tally, spelling, opcode, kernel_of(text, operands, "d", rd, false), in, out)) return;
    rd.lanes = out;
    for (unsigned lane = 0; lane < 32; ++lane) {
        for (unsigned i = 0; i < 8; ++i)
            compare_sums(tally, spelling, opcode, types[0],
                         d[lane % 16 / 4].at(reference::small_place_in_c(types[0], lane, i)),
                         rd.get(types[0], lane, i), lane, i);
    }
}

// --- ldmatrix, stmatrix, movmatrix -------------------------------------------------------------------------

// Row r of matrix j is 16 bytes in shared memory, whose address lane 8 j + r has. Other lanes have no address.
void row_vectors(Tally& tally, const std::string& spelling, const Opcode& opcode, Random& random) {
    const bool loads = opcode.row->name == "ldmatrix", turns = opcode.flags.has(Flag::trans);
    const unsigned count = opcode.flags.has(Flag::x4) ? 4 : opcode.flags.has(Flag::x2) ? 2 : 1;
    constexpr unsigned rows = 64;
    std::vector<unsigned> order(rows);
    std::iota(order.begin(), order.end(), 0);
    std::shuffle(order.begin(), order.end(), random);
    // [memory: rows x 8 halves][by lane: address, registers]
    std::vector<std::uint32_t> in(rows * 4 + 32 * 5), out(rows * 4 + 32 * 4);
    for (std::uint32_t& word : in) word = static_cast<std::uint32_t>(random());
    const std::vector<std::uint32_t> before(in.begin(), in.begin() + rows * 4);
    for (unsigned lane = 0; lane < 32; ++lane)
        in[rows * 4 + lane * 5] = lane < 8 * count ? 16 * order[lane] : 0xdead'beef;
    const bool narrow = random() % 2;
    const std::string address = narrow ? "[%sa]" : "[%wide]";
    std::string text =
        header +
        ".visible .entry k(.param .u64 pin, .param .u64 pout) {\n.reg .b64 %in, %out, %at, %wide;\n"
        ".reg .b32 %t, %a, %sa, %w, %r<4>;\n.shared .align 16 .b8 memory[1024];\n"
        "ld.param.u64 %in, [pin];\nld.param.u64 %out, [pout];\nmov.u32 %t, %laneid;\n"
        "mul.wide.u32 %at, %t, 32;\nadd.u64 %at, %at, %in;\nmov.u32 %sa, memory;\nmul.lo.u32 %a, %t, 32;\n"
        "add.u32 %sa, %sa, %a;\n";
    for (unsigned i = 0; i < 8; ++i) {
        const std::string offset = std::to_string(4 * i);
        text += "ld.global.b32 %w, [%at+" + offset + "];\nst.shared.b32 [%sa+" + offset + "], %w;\n";
    }
    text +=
        "bar.warp.sync 0xffffffff;\nmul.wide.u32 %at, %t, 20;\nadd.u64 %in, %in, %at;\n"
        "ld.global.b32 %a, [%in+1024];\nmov.u32 %sa, memory;\nadd.u32 %sa, %sa, %a;\ncvt.u64.u32 %wide, %sa;\n";
    for (unsigned i = 0; i < 4; ++i)
        text += "ld.global.b32 %r" + std::to_string(i) + ", [%in+" + std::to_string(1028 + 4 * i) + "];\n";
    const std::string list = list_of("r", count);
    text += spelling + " " + (loads ? list + ", " + address : address + ", " + list) +
            ";\nbar.warp.sync 0xffffffff;\n";
    text += "mul.wide.u32 %at, %t, 16;\nadd.u64 %at, %at, %out;\n";
    for (unsigned i = 0; i < 4; ++i)
        text += "st.global.b32 [%at+" + std::to_string(1024 + 4 * i) + "], %r" + std::to_string(i) + ";\n";
    text +=
        "mul.wide.u32 %at, %t, 32;\nadd.u64 %at, %at, %out;\nmov.u32 %sa, memory;\nmul.lo.u32 %a, %t, 32;\n"
        "add.u32 %sa, %sa, %a;\n";
    for (unsigned i = 0; i < 8; ++i) {
        const std::string offset = std::to_string(4 * i);
        text += "ld.shared.b32 %w, [%sa+" + offset + "];\nst.global.b32 [%at+" + offset + "], %w;\n";
    }
    text += "ret;\n}\n";
    testing::Device device(text);
    const std::string& refusal = device.module().find_kernel("k")->refusal;
    if (!refusal.empty()) return tally.refused(spelling, refusal);
    if (const auto fault = device.launch("k", {1}, {32}, device.array(in), device.array(out)))
        return tally.fault(opcode, spelling, fault->message);

    const auto half_of = [](const std::uint32_t* words, unsigned i) {
        return words[i / 2] >> (i % 2 * 16) & 0xffff;
    };
    std::vector<std::uint32_t> memory = before;
    for (unsigned lane = 0; lane < 32; ++lane) {
        for (unsigned j = 0; j < 4; ++j) {
            const std::uint32_t given = in[rows * 4 + lane * 5 + 1 + j];
            std::uint32_t wanted = given;
            for (unsigned e = 0; j < count && e < 2; ++e) {
                // Lane 4 r + t holds the elements 2 t and 2 t + 1 of row r; with .trans, of column r.
                unsigned row = lane / 4, column = lane % 4 * 2 + e;
                if (turns) std::swap(row, column);
                const unsigned at = order[8 * j + row];
                if (loads) {
                    const std::uint32_t half = half_of(&before[at * 4], column);
                    wanted = e == 0 ? half : wanted | half << 16;
                } else {
                    std::uint32_t& word = memory[at * 4 + column / 2];
                    const unsigned shift = column % 2 * 16;
                    word = (word & ~(0xffffu << shift)) | (given >> (16 * e) & 0xffff) << shift;
                }
            }
            tally.compare(opcode, spelling, {Type::b32, wanted}, out[rows * 4 + lane * 4 + j],
                          [&] { return "lane " + std::to_string(lane) + ", register " + std::to_string(j); });
        }
    }
    for (unsigned word = 0; word < rows * 4; ++word)
        tally.compare(opcode, spelling, {Type::b32, memory[word]}, out[word],
                      [&] { return "word " + std::to_string(word) + " of memory"; });
}

void transpose_vectors(Tally& tally, const std::string& spelling, const Opcode& opcode, Random& random) {
    const Matrix from = some_matrix(Type::f16, 8, 8, true, random);
    Registers a(2, Type::f16), d(2, Type::f16);
    for (unsigned lane = 0; lane < 32; ++lane) {
        for (unsigned e = 0; e < 2; ++e) a.put(Type::f16, lane, e, from.at(lane / 4, lane % 4 * 2 + e));
    }
    const std::vector<std::pair<const char*, const Registers*>> operands{{"a", &a}};
    std::vector<std::uint64_t> in = interleaved(operands, {}), out(32);
    const bool in_place = random() % 2;
    const std::string text = spelling + (in_place ? " %a0, %a0;\n" : " %d0, %a0;\n");
    if (!launched(tally, spelling, opcode, kernel_of(text, operands, in_place ? "a" : "d", d, false), in,
                  out))
        return;
    d.lanes = out;
    for (unsigned lane = 0; lane < 32; ++lane) {
        for (unsigned e = 0; e < 2; ++e)
            tally.compare(opcode, spelling, {Type::b16, from.at(lane % 4 * 2 + e, lane / 4)},
                          d.get(Type::f16, lane, e), [&] { return "lane " + std::to_string(lane); });
    }
}

}  // namespace

void tensor_vectors(Tally& tally) {
    Random random(1729);
    for (const reference::Syntax& syntax : reference::tensor_syntax()) {
        for (const std::string& spelling : reference::spellings_of(syntax)) {
            const auto opcode = known(spelling);
            if (!opcode) {
                tally.refused(spelling, "not in the table");
                continue;
            }
            if (spelling.starts_with("wmma.mma")) {
                wmma_vectors(tally, spelling, *opcode, random);
                continue;
            }
            for (unsigned round = 0; round < 4; ++round) {
                const bool small = spelling.find("m8n8k4.") != spelling.npos &&
                                   (spelling.ends_with(".f16.f16.f16") || spelling.ends_with(".f16.f16.f32"));
                if (small)
                    small_mma_vectors(tally, spelling, *opcode, round % 2, random);
                else if (spelling.starts_with("mma"))
                    mma_vectors(tally, spelling, *opcode, round % 2, random);
                else if (spelling.starts_with("movmatrix"))
                    transpose_vectors(tally, spelling, *opcode, random);
                else if (!spelling.starts_with("wmma"))
                    row_vectors(tally, spelling, *opcode, random);
            }
        }
    }
}

}  // namespace vectors
