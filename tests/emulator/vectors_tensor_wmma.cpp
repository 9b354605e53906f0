// Products through memory: wmma.load of A, B and C, wmma.mma, wmma.store of D, in every layout and space.
#include "vectors_tensor.hpp"

namespace vectors {
namespace {

using reference::Matrix;
using reference::Shape;

/// A matrix in memory: consecutive `lines` are `stride` elements apart.
struct Stored {
    Type type = Type::none;
    bool by_rows = true;
    unsigned lines = 0, length = 0, stride = 0;
    std::vector<std::uint32_t> words;

    Stored(Type of, unsigned rows, unsigned columns, bool rows_first, Random& random)
        : type(of),
          by_rows(rows_first),
          lines(rows_first ? rows : columns),
          length(rows_first ? columns : rows) {
        // Lines begin at multiples of 16 bytes.
        const unsigned step = 128 / reference::matrix_bits(type);
        stride = (length + step - 1) / step * step + static_cast<unsigned>(random() % 3) * step;
        words.resize(lines * stride * reference::matrix_bits(type) / 32);
        for (std::uint32_t& word : words) word = static_cast<std::uint32_t>(random());
    }
    std::size_t bit_of(unsigned row, unsigned column) const {
        return (std::size_t{by_rows ? row : column} * stride + (by_rows ? column : row)) *
               reference::matrix_bits(type);
    }
    void put(const Matrix& matrix) {
        const unsigned bits = reference::matrix_bits(type);
        for (unsigned r = 0; r < matrix.rows; ++r) {
            for (unsigned c = 0; c < matrix.columns; ++c) {
                const std::size_t at = bit_of(r, c);
                if (bits == 64) {
                    words[at / 32] = static_cast<std::uint32_t>(matrix.at(r, c));
                    words[at / 32 + 1] = static_cast<std::uint32_t>(matrix.at(r, c) >> 32);
                    continue;
                }
                const auto mask = static_cast<std::uint32_t>((Bits{1} << bits) - 1);
                std::uint32_t& word = words[at / 32];
                word = (word & ~(mask << at % 32)) | static_cast<std::uint32_t>(matrix.at(r, c)) << at % 32;
            }
        }
    }
    unsigned bytes() const { return static_cast<unsigned>(4 * words.size()); }
};

std::string registers(const char* name, unsigned count) {
    std::string text = "{";
    for (unsigned i = 0; i < count; ++i) text += (i ? ", %" : "%") + std::string(name) + std::to_string(i);
    return text + "}";
}

// How many registers nvcuda::wmma uses for a fragment.
unsigned fragment_registers(Type type, bool sum, unsigned elements) {
    if (type == Type::f16 && !sum) return 8;
    if (type == Type::f64) return elements / 32;
    return elements / 32 * reference::matrix_bits(type) / 32;
}

std::string copied(const std::string& from, const std::string& to, unsigned bytes, unsigned label,
                   bool into_shared) {
    const std::string name = "L" + std::to_string(label);
    return "mul.lo.u32 %i, %t, 4;\nsetp.ge.u32 %p, %i, " + std::to_string(bytes) + ";\n@%p bra " + name +
           "E;\n" + name + ":\ncvt.u64.u32 %at, %i;\nadd.u64 %at, %at, " + (into_shared ? from : to) +
           ";\nmov.u32 %s, " + (into_shared ? to : from) + ";\nadd.u32 %s, %s, %i;\n" +
           (into_shared ? "ld.global.b32 %w, [%at];\nst.shared.b32 [%s], %w;\n"
                        : "ld.shared.b32 %w, [%s];\nst.global.b32 [%at], %w;\n") +
           "add.u32 %i, %i, 128;\nsetp.lt.u32 %p, %i, " + std::to_string(bytes) + ";\n@%p bra " + name +
           ";\n" + name + "E:\nbar.warp.sync 0xffffffff;\n";
}

std::string suffix_of(const Shape& shape) {
    return ".m" + std::to_string(shape.m) + "n" + std::to_string(shape.n) + "k" + std::to_string(shape.k);
}

std::string name_of(Type type) {
    return "." + std::string(emulated::ptx::type_names[static_cast<unsigned>(type)].name);
}

}  // namespace

void wmma_vectors(Tally& tally, const std::string& spelling, const Opcode& opcode, Random& random) {
    const Shape shape = reference::shape_in(spelling);
    std::vector<Type> types = reference::types_in(spelling);
    if (types.size() == 2) types = {types[0], Type::f16, Type::f16, types[1]};
    const std::size_t layout =
        spelling.find(".row") < spelling.find(".col") ? spelling.find(".row") : spelling.find(".col");
    const bool a_by_rows = spelling.compare(layout, 4, ".row") == 0,
               b_by_rows = spelling.compare(layout + 4, 4, ".row") == 0;
    reference::ProductRules rules;
    rules.saturates = spelling.find(".satfinite") != spelling.npos;
    rules.exclusive_or = spelling.find(".xor") != spelling.npos;
    rules.rounding = reference::rounding_of(opcode.flags);
    unsigned round = 0;
    for (const std::string space : {"", ".global", ".shared", ".shared::cta"}) {
        // Varies special values, sums by rows or columns, and lanes that disagree about the address of A.
        const bool wild = round % 2, c_by_rows = random() % 2, d_by_rows = random() % 2;
        const bool apart = round++ < 2 && random() % 2;
        const Matrix a = some_matrix(types[1], shape.m, shape.k, wild, random),
                     b = some_matrix(types[2], shape.k, shape.n, wild, random),
                     c = some_matrix(types[3], shape.m, shape.n, wild, random);
        const Matrix d = reference::product(a, b, c, types[0], rules);
        Stored sa(types[1], shape.m, shape.k, a_by_rows, random),
            sb(types[2], shape.k, shape.n, b_by_rows, random),
            sc(types[3], shape.m, shape.n, c_by_rows, random),
            sd(types[0], shape.m, shape.n, d_by_rows, random);
        sa.put(a);
        sb.put(b);
        sc.put(c);
        Stored second = sa, wanted = sd;
        wanted.put(d);

        const unsigned na = fragment_registers(types[1], false, shape.m * shape.k),
                       nb = fragment_registers(types[2], false, shape.n * shape.k),
                       nc = fragment_registers(types[3], true, shape.m * shape.n),
                       nd = fragment_registers(types[0], true, shape.m * shape.n);
        const auto by = [](bool rows) { return std::string(rows ? ".row" : ".col"); };
        const std::string tail = suffix_of(shape) + space;
        const std::string load_a = "wmma.load.a.sync.aligned" + by(a_by_rows) + tail + name_of(types[1]);
        const std::string load_b = "wmma.load.b.sync.aligned" + by(b_by_rows) + tail + name_of(types[2]);
        const std::string load_c = "wmma.load.c.sync.aligned" + by(c_by_rows) + tail + name_of(types[3]);
        const std::string store_d = "wmma.store.d.sync.aligned" + by(d_by_rows) + tail + name_of(types[0]);
        const bool shared = space.starts_with(".shared");
        const auto wide = [](Type type) { return std::string(type == Type::f64 ? "b64" : "b32"); };
        std::string text =
            header +
            ".visible .entry k(.param .u64 pa, .param .u64 pb, .param .u64 pc, .param .u64 pd, "
            ".param .u64 pe) {\n.reg .b64 %pa, %pb, %pc, %pd, %pe, %at;\n.reg .pred %p;\n"
            ".reg .b32 %t, %i, %s, %w, %stride;\n";
        text += ".reg ." + wide(types[1]) + " %a<" + std::to_string(na) + ">;\n.reg ." + wide(types[2]) +
                " %b<" + std::to_string(nb) + ">;\n.reg ." + wide(types[3]) + " %c<" + std::to_string(nc) +
                ">;\n.reg ." + wide(types[0]) + " %d<" + std::to_string(nd) + ">;\n";
        for (const char* name : {"pa", "pb", "pc", "pd", "pe"})
            text += "ld.param.u64 %" + std::string(name) + ", [" + name + "];\n";
        text += "mov.u32 %t, %laneid;\n";
        const auto sized = [&](const char* name, const Stored& stored) {
            return ".shared .align 32 .b8 " + std::string(name) + "[" + std::to_string(stored.bytes()) +
                   "];\n";
        };
        std::string at_a = "[%pa]", at_b = "[%pb]", at_c = "[%pc]", at_d = "[%pd]";
        if (shared) {
            text += sized("ma", sa) + sized("mb", sb) + sized("mc", sc) + sized("md", sd);
            text += copied("%pa", "ma", sa.bytes(), 0, true) + copied("%pb", "mb", sb.bytes(), 1, true) +
                    copied("%pc", "mc", sc.bytes(), 2, true) + copied("%pd", "md", sd.bytes(), 3, true);
            at_a = "[ma]", at_b = "[mb]", at_c = "[mc]", at_d = "[md]";
        }
        if (apart) text += "and.b32 %i, %t, 1;\nsetp.ne.u32 %p, %i, 0;\nselp.b64 %pa, %pe, %pa, %p;\n";
        const auto with_stride = [&](const Stored& stored) {
            // The stride is omitted if the lines are contiguous.
            return stored.stride == stored.length ? std::string(";\n")
                                                  : ", " + std::to_string(stored.stride) + ";\n";
        };
        text += "mov.u32 %stride, " + std::to_string(sa.stride) + ";\n";
        text += load_a + " " + registers("a", na) + ", " + at_a + ", %stride;\n";
        text += load_b + " " + registers("b", nb) + ", " + at_b + with_stride(sb);
        text += load_c + " " + registers("c", nc) + ", " + at_c + with_stride(sc);
        text += spelling + " " + registers("d", nd) + ", " + registers("a", na) + ", " + registers("b", nb) +
                ", " + registers("c", nc) + ";\n";
        text += store_d + " " + at_d + ", " + registers("d", nd) + with_stride(sd);
        if (shared) text += "bar.warp.sync 0xffffffff;\n" + copied("md", "%pd", sd.bytes(), 4, false);
        text += "ret;\n}\n";

        testing::Device device(text);
        const std::string& refusal = device.module().find_kernel("k")->refusal;
        if (!refusal.empty()) {
            tally.refused(spelling, refusal);
            continue;
        }
        if (const auto fault =
                device.launch("k", {1}, {32}, device.array(sa.words), device.array(sb.words),
                              device.array(sc.words), device.array(sd.words), device.array(second.words))) {
            tally.fault(opcode, spelling, fault->message);
            continue;
        }
        for (const std::string& each : {spelling, load_a, load_b, load_c, store_d}) {
            const auto found = known(each);
            if (!found) {
                tally.refused(each, "not in the table");
                continue;
            }
            for (unsigned r = 0; r < shape.m; ++r) {
                for (unsigned n = 0; n < shape.n; ++n) {
                    const std::size_t bit = sd.bit_of(r, n);
                    Bits got = sd.words[bit / 32] >> bit % 32;
                    if (types[0] == Type::f64) got |= Bits{sd.words[bit / 32 + 1]} << 32;
                    if (types[0] == Type::f16) got &= 0xffff;
                    tally.compare(*found, each, {types[0], d.at(r, n)}, got, [&] {
                        return "row " + std::to_string(r) + ", column " + std::to_string(n) + text;
                    });
                }
            }
            // The gaps between the lines are unchanged.
            for (std::size_t w = 0; w < sd.words.size() && types[0] != Type::f16; ++w) {
                if (w * 32 / reference::matrix_bits(types[0]) % sd.stride >= sd.length)
                    tally.compare(*found, each, {Type::b32, wanted.words[w]}, sd.words[w],
                                  [&] { return "word " + std::to_string(w) + " beside the matrix"; });
            }
        }
    }
}

}  // namespace vectors
