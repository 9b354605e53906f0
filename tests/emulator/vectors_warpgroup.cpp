// Matrices of a warpgroup: wgmma of every type, with A in registers and in shared memory, in every layout; setmaxnreg.
#include <algorithm>
#include <bit>

#include "vectors_tensor.hpp"

namespace vectors {
namespace {

using reference::Matrix;
using reference::Place;
using reference::Shape;

const std::string head = ".version 9.0\n.target sm_90a\n.address_size 64\n";

// --- matrices in shared memory -----------------------------------------------------------------------------

/// A matrix in shared memory and its descriptor. Rows are along M or N, columns along K. The layouts are those of the
/// manual's table "Canonical Layouts", in bytes, where a unit has T elements of 128 bits.
struct Image {
    std::uint64_t descriptor = 0;
    std::vector<std::uint8_t> bytes;

    Image(const Matrix& matrix, bool transposed, unsigned start, Random& random) {
        const unsigned bits = reference::matrix_bits(matrix.type);
        const unsigned swizzles[] = {0, 128, 64, 32};
        const unsigned depth = matrix.columns * bits / 8;  // bytes of K in a row
        unsigned mode = static_cast<unsigned>(random() % 4);
        while (!transposed && mode != 0 && swizzles[mode] < depth) mode = static_cast<unsigned>(random() % 4);
        const unsigned swizzle = swizzles[mode];
        const unsigned pitch = std::max(swizzle, 16u), core = 8 * pitch,
                       pad = core * static_cast<unsigned>(random() % 2);
        unsigned leading = 0, stride = 0, within = 0, extent = 0;
        if (!transposed) {
            const unsigned outer = matrix.rows / 8, inner = depth / 16;
            const bool along_k = random() % 2;  // which of both directions is denser
            if (swizzle == 0) {
                leading = along_k ? 128 : 128 * outer + pad;
                stride = along_k ? 128 * inner + pad : 128;
                extent = (outer - 1) * stride + (inner - 1) * leading + 128;
            } else {
                leading = 16 * static_cast<unsigned>(random() % 1000);  // has no effect
                stride = core + pad;
                within = 16 * static_cast<unsigned>(random() % ((swizzle - depth) / 16 + 1));
                extent = outer * stride;
            }
        } else {
            const unsigned across = std::max(swizzle / 16, 1u);  // units of 8 elements in a row of an atom
            const unsigned outer = (matrix.rows / 8 + across - 1) / across, inner = matrix.columns / 8;
            const bool along_k = random() % 2;
            const unsigned next_outer = along_k ? core * inner + pad : core,
                           next_inner = along_k ? core : core * outer + pad;
            leading = swizzle == 0 ? next_inner : next_outer;
            stride = swizzle == 0 ? next_outer : next_inner;
            extent = (outer - 1) * next_outer + (inner - 1) * next_inner + core;
        }
        // The pattern of a swizzle may start at any line of 128 bytes.
        const unsigned base = swizzle == 0 ? 0 : static_cast<unsigned>(random() % 8);
        start += 128 * base;
        bytes.resize(128 * base + extent + 1024);
        for (std::uint8_t& byte : bytes) byte = static_cast<std::uint8_t>(random());
        const unsigned t = 128 / bits;
        for (unsigned r = 0; r < matrix.rows; ++r) {
            for (unsigned k = 0; k < matrix.columns; ++k) {
                unsigned at = 0;  // Shape and stride of the table, each index split as the shape says.
                if (!transposed) {
                    at = r % 8 * pitch + r / 8 * stride + k / t * (swizzle == 0 ? leading : 16) + within;
                } else {
                    const unsigned across = std::max(swizzle / 16, 1u);
                    at = r / t % across * 16 + r / t / across * (swizzle == 0 ? stride : leading) +
                         k % 8 * pitch + k / 8 * (swizzle == 0 ? leading : stride);
                }
                // Swizzle<B, 4, 3>: bits 7 to 6 + B are added to bits 4 to 3 + B, without carry.
                const unsigned b = static_cast<unsigned>(std::countr_zero(pitch)) - 4;
                at ^= at >> 3 & ((1u << b) - 1) << 4;
                put(128 * base * 8 + at * 8, bits, transposed ? r % t : k % t, matrix.at(r, k));
            }
        }
        descriptor = (start + within) / 16 | std::uint64_t{leading / 16} << 16 |
                     std::uint64_t{stride / 16} << 32 | std::uint64_t{base} << 49 | std::uint64_t{mode} << 62;
    }

  private:
    void put(unsigned bit, unsigned width, unsigned element, Bits value) {
        bit += element * width;
        for (unsigned i = 0; i < width; i += std::min(width, 8u)) {
            std::uint8_t& byte = bytes[(bit + i) / 8];
            if (width >= 8) {
                byte = static_cast<std::uint8_t>(value >> i);
            } else {
                byte = static_cast<std::uint8_t>((byte & ~(1u << bit % 8)) | static_cast<unsigned>(value)
                                                                                 << bit % 8);
            }
        }
    }
};

// --- products ----------------------------------------------------------------------------------------------

/// A variant of an instruction.
struct Variant {
    bool wild = false, in_registers = false, adds = true, negates_a = false, negates_b = false;
    bool transposes_a = false, transposes_b = false;
};

Matrix negated(Matrix matrix, bool negates) {
    const unsigned bits = reference::matrix_bits(matrix.type);
    for (Bits& element : matrix.elements) element ^= negates ? Bits{1} << (bits - 1) : 0;
    return matrix;
}

void product_vectors(Tally& tally, const std::string& spelling, const Opcode& opcode, const Variant& variant,
                     Random& random) {
    const Shape shape = reference::shape_in(spelling), rows{16, shape.n, shape.k};
    const std::vector<Type> types = reference::types_in(spelling);  // D, A, B
    const bool sparse = spelling.find(".sp.") != spelling.npos, floats = types[0] != Type::s32;
    const bool halves = reference::matrix_bits(types[1]) == 16;
    reference::ProductRules rules;
    rules.saturates = spelling.find(".satfinite") != spelling.npos;
    const Matrix a = some_matrix(types[1], shape.m, shape.k, variant.wild, random);
    const Matrix b = some_matrix(types[2], shape.k, shape.n, variant.wild, random);
    Matrix c = some_matrix(types[0], shape.m, shape.n, variant.wild, random);
    Matrix packed(types[1], shape.m, sparse ? shape.k / 2 : shape.k);
    std::vector<std::uint32_t> metadata;
    const unsigned selector = reference::matrix_bits(types[1]) == 8 ? 0 : static_cast<unsigned>(random() % 2);
    for (unsigned warp = 0; warp < 4 && sparse; ++warp) {
        const Sparsity made = some_sparsity(rows, types[1], selector, random);
        rules.stored.insert(rules.stored.end(), made.stored.begin(), made.stored.end());
        metadata.insert(metadata.end(), made.metadata.begin(), made.metadata.end());
    }
    for (unsigned row = 0; row < shape.m; ++row) {
        for (unsigned k = 0, at = 0; k < shape.k; ++k) {
            if (!sparse || rules.stored[row * shape.k + k]) packed.at(row, at++) = a.at(row, k);
        }
    }
    Matrix first = c;
    if (!variant.adds) std::ranges::fill(first.elements, Bits{0});
    Matrix d = reference::product(negated(a, variant.negates_a), negated(b, variant.negates_b), first,
                                  types[0], rules);

    Matrix turned(types[2], shape.n, shape.k);
    for (unsigned k = 0; k < shape.k; ++k) {
        for (unsigned n = 0; n < shape.n; ++n) turned.at(n, k) = b.at(k, n);
    }
    const Image image_b(turned, variant.transposes_b, 0, random);
    const auto start_of_a = static_cast<unsigned>((image_b.bytes.size() + 1023) / 1024 * 1024);
    const Image image_a(packed, variant.transposes_a, start_of_a, random);
    std::vector<std::uint8_t> memory(start_of_a);
    std::ranges::copy(image_b.bytes, memory.begin());
    memory.insert(memory.end(), image_a.bytes.begin(), image_a.bytes.end());
    memory.resize((memory.size() + 511) / 512 * 512);

    const unsigned sums = shape.n / (types[0] == Type::f16 ? 4 : 2), each = types[0] == Type::f16 ? 2 : 1;
    const unsigned per_register = 32 / reference::matrix_bits(types[1]);
    // Each thread has D, then A, then the metadata.
    const unsigned slots = sums + 4 + 1;
    std::vector<std::uint32_t> registers(128 * slots), out(128 * sums);
    const auto place_of_sum = [&](unsigned thread, unsigned i) {
        const Place within = reference::place_in_c({16, 8, shape.k}, thread % 32, i % 4);
        return Place{within.row + thread / 32 * 16, within.column + i / 4 * 8};
    };
    for (unsigned thread = 0; thread < 128; ++thread) {
        std::uint32_t* own = &registers[thread * slots];
        for (unsigned i = 0; i < sums * each; ++i)
            own[i / each] |= static_cast<std::uint32_t>(c.at(place_of_sum(thread, i)) << (i % each * 16));
        for (unsigned i = 0; i < 4 * per_register; ++i) {
            Place place = place_in_a(rows, types[1], sparse, thread % 32, i);
            place.row += thread / 32 * 16;
            own[sums + i / per_register] |= static_cast<std::uint32_t>(
                packed.at(place) << (i % per_register * reference::matrix_bits(types[1])));
        }
        own[sums + 4] = sparse ? metadata[thread] : 0;
    }

    std::string list = "{";
    for (unsigned i = 0; i < sums; ++i) list += (i ? ", %d" : "%d") + std::to_string(i);
    list += "}";
    std::string text =
        head +
        ".extern .shared .align 1024 .b8 sh[];\n.visible .entry k(.param .u64 pm, .param .u64 pr, "
        ".param .u64 po) {\n.reg .b64 %m, %r, %o, %x, %da, %db;\n.reg .b32 %t, %i, %w, %s, %meta, %a<4>, %d<" +
        std::to_string(sums) +
        ">;\n.reg .pred %p, %q;\nld.param.u64 %m, [pm];\nld.param.u64 %r, [pr];\n"
        "ld.param.u64 %o, [po];\nmov.u32 %t, %tid.x;\nmul.lo.u32 %i, %t, 4;\nL:\ncvt.u64.u32 %x, %i;\n"
        "add.u64 %x, %x, %m;\nld.global.b32 %w, [%x];\nmov.u32 %s, sh;\nadd.u32 %s, %s, %i;\n"
        "st.shared.b32 [%s], %w;\nadd.u32 %i, %i, 512;\nsetp.lt.u32 %p, %i, " +
        std::to_string(memory.size()) +
        ";\n@%p bra L;\nfence.proxy.async;\nbar.sync 0;\n"
        "mul.wide.u32 %x, %t, " +
        std::to_string(4 * slots) + ";\nadd.u64 %r, %r, %x;\n";
    for (unsigned i = 0; i < sums; ++i)
        text += "ld.global.b32 %d" + std::to_string(i) + ", [%r+" + std::to_string(4 * i) + "];\n";
    for (unsigned i = 0; i < 4; ++i)
        text += "ld.global.b32 %a" + std::to_string(i) + ", [%r+" + std::to_string(4 * (sums + i)) + "];\n";
    text += "ld.global.b32 %meta, [%r+" + std::to_string(4 * (sums + 4)) + "];\nmov.u64 %da, " +
            std::to_string(image_a.descriptor) + ";\nmov.u64 %db, " + std::to_string(image_b.descriptor) +
            ";\nsetp.eq.u32 %p, 0, " + (variant.adds ? "0" : "1") + ";\nwgmma.fence.sync.aligned;\n" +
            spelling + " " + list + ", " + (variant.in_registers ? "{%a0, %a1, %a2, %a3}" : "%da") + ", %db";
    if (sparse) text += ", %meta, " + std::to_string(selector);
    text += ", %p";
    if (floats)
        text += std::string(variant.negates_a ? ", -1" : ", 1") + (variant.negates_b ? ", -1" : ", 1");
    if (halves && !variant.in_registers) text += variant.transposes_a ? ", 1" : ", 0";
    if (halves) text += variant.transposes_b ? ", 1" : ", 0";
    text += ";\nwgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 0;\nmul.wide.u32 %x, %t, " +
            std::to_string(4 * sums) + ";\nadd.u64 %o, %o, %x;\n";
    for (unsigned i = 0; i < sums; ++i)
        text += "st.global.b32 [%o+" + std::to_string(4 * i) + "], %d" + std::to_string(i) + ";\n";
    text += "ret;\n}\n";

    testing::Device device(text);
    const std::string& refusal = device.module().find_kernel("k")->refusal;
    if (!refusal.empty()) return tally.refused(spelling, refusal);
    if (lacks_a_handler(device)) return tally.fault(opcode, spelling, "is accepted, but nothing runs it");
    device.dynamic_shared_bytes = static_cast<std::uint32_t>(memory.size());
    if (const auto fault =
            device.launch("k", {1}, {128}, device.array(memory), device.array(registers), device.array(out)))
        return tally.fault(opcode, spelling, fault->message);
    for (unsigned thread = 0; thread < 128; ++thread) {
        for (unsigned i = 0; i < sums * each; ++i) {
            const Bits got = out[thread * sums + i / each] >> (i % each * 16) & (each == 2 ? 0xffffu : ~0u);
            tally.compare(opcode, spelling, {types[0], d.at(place_of_sum(thread, i))}, got, [&] {
                return "thread " + std::to_string(thread) + ", element " + std::to_string(i) +
                       (variant.in_registers ? ", A in registers" : "");
            });
        }
    }
    for (const std::string each_order :
         {"wgmma.fence.sync.aligned", "wgmma.commit_group.sync.aligned", "wgmma.wait_group.sync.aligned"}) {
        if (const auto order = known(each_order))
            tally.compare(*order, each_order, {types[0], d.at(place_of_sum(0, 0))},
                          out[0] & (each == 2 ? 0xffffu : ~0u), [] { return "the first element"; });
    }
}

// The values of n to test: every valid one if `all` is set, otherwise four of them.
std::vector<unsigned> columns_of(bool floats, bool all) {
    std::vector<unsigned> made;
    for (unsigned n = 8; n <= 256; n += floats || n < 32 ? 8 : 16) {
        if (all || n == 8 || n == 24 || n == 96 || n == 256) made.push_back(n);
    }
    return made;
}

void run(Tally& tally, const std::string& spelling, unsigned rounds, Random& random) {
    const auto opcode = known(spelling);
    if (!opcode) return tally.refused(spelling, "not in the table");
    const bool floats = opcode->type != Type::s32,
               halves = opcode->second == Type::f16 || opcode->second == Type::bf16;
    for (unsigned round = 0; round < rounds; ++round) {
        Variant variant;
        variant.wild = round % 4 == 1;
        variant.in_registers = random() % 3 == 0;
        variant.adds = random() % 4 != 0;
        variant.negates_a = floats && random() % 3 == 0;
        variant.negates_b = floats && random() % 3 == 0;
        variant.transposes_a = halves && !variant.in_registers && random() % 2;
        variant.transposes_b = halves && random() % 2;
        product_vectors(tally, spelling, *opcode, variant, random);
    }
}

// The threads of the second warpgroup wait for the registers that the first one releases.
void register_vectors(Tally& tally) {
    const std::string less = "setmaxnreg.dec.sync.aligned.u32", more = "setmaxnreg.inc.sync.aligned.u32";
    testing::Device device(
        head +
        ".visible .entry k(.param .u64 po) .maxntid 256 .minnctapersm 2 {\n.reg .b64 %o, %x;\n.reg .b32 %t;\n.reg .pred %p;\n"
        "ld.param.u64 %o, [po];\nmov.u32 %t, %tid.x;\nmul.wide.u32 %x, %t, 4;\nadd.u64 %o, %o, %x;\nsetp.lt.u32 %p, %t, 128;\n"
        "@%p bra INC;\n" +
        less + " 24;\nbra END;\nINC:\n" + more + " 208;\nEND:\nst.global.b32 [%o], %t;\nret;\n}\n");
    std::vector<std::uint32_t> out(256, ~0u);
    const auto fault = device.launch("k", {1}, {256}, device.array(out));
    for (const std::string& each : {less, more}) {
        const auto opcode = known(each);
        if (!opcode) {
            tally.refused(each, "not in the table");
            continue;
        }
        if (fault) tally.fault(*opcode, each, fault->message);
        for (std::uint32_t thread = 0; thread < 256; ++thread)
            tally.compare(*opcode, each, {Type::u32, thread}, out[thread],
                          [&] { return "thread " + std::to_string(thread); });
    }
}

}  // namespace

void warpgroup_vectors(Tally& tally) {
    Random random(1931);
    struct Form {
        std::string types;
        unsigned depth;  // of a dense A
        bool all = false;
    };
    std::vector<Form> forms{{".f32.f16.f16", 16, true},
                            {".f16.f16.f16", 16},
                            {".f32.bf16.bf16", 16},
                            {".f32.tf32.tf32", 8},
                            {".s32.b1.b1.and.popc", 256}};
    for (const std::string d : {".f32", ".f16"}) {
        for (const std::string a : {".e4m3", ".e5m2"}) {
            for (const std::string b : {".e4m3", ".e5m2"}) forms.push_back({d + a + b, 32});
        }
    }
    for (const std::string a : {".s8", ".u8"}) {
        for (const std::string b : {".s8", ".u8"}) {
            forms.push_back({".s32" + a + b, 32, a == b && a == ".s8"});
            forms.push_back({".satfinite.s32" + a + b, 32});
        }
    }
    for (const Form& form : forms) {
        const bool floats = form.types.find(".s32") == std::string::npos,
                   bits = form.types.find(".b1") != std::string::npos;
        for (const bool sparse : {false, true}) {
            if (sparse && bits) continue;
            for (const unsigned n : columns_of(floats, form.all && !sparse)) {
                const std::string shape =
                    ".m64n" + std::to_string(n) + "k" + std::to_string(form.depth * (sparse ? 2 : 1));
                run(tally,
                    "wgmma.mma_async" + std::string(sparse ? ".sp" : "") + ".sync.aligned" + shape +
                        form.types,
                    form.all ? 3
                    : n == 8 ? 8
                             : 2,
                    random);
            }
        }
    }
    register_vectors(tally);
}

}  // namespace vectors
