// Copies by tensor maps, and instructions on tensor maps: a kernel for each spelling. A tile is the whole tensor, so
// that its elements keep their order; tests/python/tensor_maps tests the layouts.
#include <cstring>

#include "memory/tensor_map.hpp"
#include "reference/grammar.hpp"
#include "vectors_atomics.hpp"

namespace vectors {
namespace {

using emulated::memory::TensorElement;
using emulated::memory::TensorMap;
using Words = std::vector<std::uint32_t>;

constexpr unsigned threads = 32, words = 128;  // four words for each thread

/// A map of all words at `address`, in as many dimensions as the instruction has.
TensorMap whole_tensor(const Opcode& opcode, std::uint64_t address) {
    constexpr Flag ranks[] = {Flag::geometry_1d, Flag::geometry_2d, Flag::geometry_3d, Flag::geometry_4d,
                              Flag::geometry_5d};
    TensorMap map;
    map.address = address;
    map.type = static_cast<std::uint32_t>(TensorElement::u32);
    map.rank = 1;
    for (unsigned d = 0; d < 5; ++d) {
        if (opcode.flags.has(ranks[d])) map.rank = d + 1;
    }
    map.extents = {map.rank == 1 ? words : 16, 2, 2, 2, 1};
    if (map.rank < 5) map.extents[map.rank - 1] = map.rank == 1 ? words : words / (16u << (map.rank - 2));
    std::uint64_t stride = sizeof(std::uint32_t);
    for (unsigned d = 0; d < map.rank; ++d) {
        stride *= map.extents[d];
        if (d < map.strides.size()) map.strides[d] = stride;
        map.box[d] = static_cast<std::uint32_t>(map.extents[d]);
        map.steps[d] = 1;
    }
    map.im2col = opcode.flags.has(Flag::im2col) || opcode.flags.has(Flag::im2col_no_offs);
    if (map.im2col) {
        map.channels = map.box[0];
        map.pixels = words / map.channels;
        map.box = {};
    }
    return map;
}

std::string vector_of(const std::string& value, unsigned count) {
    std::string made = "{";
    for (unsigned k = 0; k < count; ++k) made += (k == 0 ? "" : ", ") + value;
    return made + "}";
}

const std::string wait = "WAIT: mbarrier.try_wait.parity.shared.b64 %p, [bar], 0;\n@!%p bra WAIT;\n";
const std::string acquire_map = "fence.proxy.tensormap::generic.acquire.gpu [%map], 128;\n";
const std::string load_tile =
    "cp.async.bulk.tensor.1d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [s], [%map, {0}], [bar];\n";

// At first, `s` holds the thread's words of the second array. At the end, the thread stores its words of `s` to that
// array, unless a copy has done so.
std::string body_of(const std::string& spelling, const Opcode& opcode, unsigned rank) {
    using emulated::program::Operation;
    const bool columns = opcode.flags.has(Flag::im2col);
    const std::string policy = opcode.flags.has(Flag::policy) ? ", %policy" : "";
    const std::string tile = "[%map, " + vector_of("0", rank) + "]";
    const std::string offsets = columns ? ", " + vector_of("0", rank - 2) : "";
    const std::string mask = opcode.flags.has(Flag::multicast) ? ", %mask" : "";
    const std::string begin =
        "@!%leads bra WAIT;\nmbarrier.arrive.expect_tx.shared.b64 %state, [bar], 512;\n";
    const std::string show =
        "ld.shared.v4.b32 {%a, %b, %c, %d}, [%mine];\nst.global.v4.b32 [%out], {%a, %b, %c, %d};\n";
    const std::string store = wait + show;
    switch (opcode.row->operation) {
        case Operation::tensor_copy:
            if (opcode.flags.has(Flag::prefetch))
                return spelling + " " + tile + offsets + policy + ";\n" + show;
            if (!opcode.flags.has(Flag::bulk_group))
                return begin + spelling + " [s], " + tile + ", [bar]" + offsets + mask + policy + ";\n" +
                       store;
            [[fallthrough]];
        case Operation::tensor_reduce:
            return "@!%leads bra OVER;\n" + spelling + " " + tile + ", [s]" + policy +
                   ";\ncp.async.bulk.commit_group;\ncp.async.bulk.wait_group 0;\nOVER:\n";
        case Operation::tensor_map_copy:
            return "ld.global.b32 %a, [%moved];\nst.shared.b32 [%far], %a;\nbar.sync 0;\n" + spelling +
                   " [%map], [m], 128;\nbar.sync 0;\n" + acquire_map + begin + load_tile + store;
        case Operation::tensor_map_fence:
            return spelling + " [%map], 128;\n" + show;
        default:
            return spelling +
                   (opcode.row->name != "prefetch"     ? ""
                    : opcode.flags.has(Flag::param)    ? " [pin]"
                    : opcode.flags.has(Flag::constant) ? " [cc]"
                                                       : " [%map]") +
                   ";\n" + show;
    }
}

// Gives a field of a changed map the value that it has in the map of the whole tensor.
std::string replacing_body(const std::string& spelling, const Opcode& opcode) {
    const bool is_shared = opcode.flags.has(Flag::shared);
    const bool has_ordinal = opcode.flags.has(Flag::box_dim) || opcode.flags.has(Flag::global_dim) ||
                             opcode.flags.has(Flag::global_stride) || opcode.flags.has(Flag::element_stride);
    const std::string value = opcode.flags.has(Flag::global_address)   ? "%first"
                              : opcode.flags.has(Flag::elemtype)       ? "2"
                              : opcode.flags.has(Flag::box_dim)        ? "8"
                              : opcode.flags.has(Flag::global_dim)     ? "8"
                              : opcode.flags.has(Flag::global_stride)  ? "64"
                              : opcode.flags.has(Flag::element_stride) ? "1"
                              : opcode.flags.has(Flag::rank)           ? "1"
                                                                       : "0";
    const std::string ordinal = !has_ordinal ? "" : opcode.flags.has(Flag::global_stride) ? "0, " : "1, ";
    return "ld.global.b32 %a, [%moved];\nst.shared.b32 [%far], %a;\nbar.sync 0;\n@%leads " + spelling +
           (is_shared ? " [m], " : " [%map], ") + ordinal + value + ";\nbar.sync 0;\n" +
           (is_shared
                ? "tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned "
                  "[%map], [m], 128;\n"
                : "") +
           acquire_map +
           "@!%leads bra WAIT;\nmbarrier.arrive.expect_tx.shared.b64 %state, [bar], 512;\n"
           "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [s], [%map, {0, 0}], "
           "[bar];\n" +
           wait + "ld.shared.v4.b32 {%a, %b, %c, %d}, [%mine];\nst.global.v4.b32 [%out], {%a, %b, %c, %d};\n";
}

void change_field(TensorMap& map, const Opcode& opcode) {
    if (opcode.flags.has(Flag::global_address)) map.address += 4096;
    if (opcode.flags.has(Flag::rank)) map.rank = 3;
    if (opcode.flags.has(Flag::box_dim)) map.box[1] = 3;
    if (opcode.flags.has(Flag::global_dim)) map.extents[1] = 7;
    if (opcode.flags.has(Flag::global_stride)) map.strides[0] = 128;
    if (opcode.flags.has(Flag::element_stride)) map.steps[1] = 2;
    if (opcode.flags.has(Flag::elemtype)) map.type = static_cast<std::uint32_t>(TensorElement::u16);
    if (opcode.flags.has(Flag::interleave_layout)) map.interleave = 1;
    if (opcode.flags.has(Flag::swizzle_mode)) map.swizzle = 2;
    if (opcode.flags.has(Flag::fill_mode)) map.fill = 1;
}

std::string kernel_of(const std::string& body) {
    return ".version 9.0\n.target sm_90a\n.address_size 64\n"
           ".const .align 128 .b8 cc[128];\n"
           ".visible .entry k(.param .u64 pin, .param .u64 pout, .param .u64 pmap, .param .u64 pmoved) {\n"
           ".shared .align 128 .b8 s[512];\n.shared .align 128 .b8 m[128];\n.shared .align 8 .b64 bar;\n"
           ".reg .b64 %in, %out, %first, %map, %moved, %mine, %far, %at, %policy, %state;\n.reg .b16 %mask;\n"
           ".reg .b32 %t, %a, %b, %c, %d;\n.reg .pred %p, %leads;\n"
           "ld.param.u64 %first, [pin];\nld.param.u64 %out, [pout];\nld.param.u64 %map, [pmap];\n"
           "ld.param.u64 %moved, [pmoved];\nmov.u32 %t, %tid.x;\nmul.wide.u32 %at, %t, 16;\n"
           "add.u64 %in, %first, %at;\nadd.u64 %out, %out, %at;\nmov.u64 %mine, s;\nadd.u64 %mine, %mine, %at;\n"
           "mul.wide.u32 %at, %t, 4;\nadd.u64 %moved, %moved, %at;\nmov.u64 %far, m;\nadd.u64 %far, %far, %at;\n"
           "setp.eq.u32 %leads, %t, 0;\nmov.u64 %policy, 0;\nmov.u16 %mask, 1;\n"
           "@%leads mbarrier.init.shared.b64 [bar], 1;\n"
           "ld.global.v4.b32 {%a, %b, %c, %d}, [%in];\nst.shared.v4.b32 [%mine], {%a, %b, %c, %d};\n"
           "fence.proxy.async;\nbar.sync 0;\n" +
           body + "ret;\n}\n";
}

void run(Tally& tally, const std::string& spelling, const Opcode& opcode, Random& random) {
    using emulated::program::Operation;
    const Operation operation = opcode.row->operation;
    const bool replaces = operation == Operation::tensor_map_replace;
    const bool reduces = operation == Operation::tensor_reduce, writes = opcode.flags.has(Flag::bulk_group);
    Words in(words), out(words);
    for (Words* each : {&in, &out}) {
        for (auto& value : *each) value = static_cast<std::uint32_t>(random());
    }
    const Words before = out;
    // Reductions and stores write the second array; everything else reads the first. Each array is large enough for the
    // changed map, too.
    Words room(2048);
    std::copy(in.begin(), in.end(), room.begin());
    Opcode two_dimensional = opcode;
    if (replaces) two_dimensional.flags.add(Flag::geometry_2d);
    const bool tensors = operation == Operation::tensor_copy || reduces;
    const std::string body = replaces ? replacing_body(spelling, opcode)
                                      : body_of(spelling, opcode, tensors ? whole_tensor(opcode, 0).rank : 1);
    testing::Device device(kernel_of(body));
    const std::string& refusal = device.module().find_kernel("k")->refusal;
    if (!refusal.empty()) return tally.refused(spelling, refusal);
    if (lacks_a_handler(device)) return tally.fault(opcode, spelling, "is accepted, but nothing runs it");
    const std::uint64_t first = device.array(room), second = device.array(out);
    TensorMap map = whole_tensor(two_dimensional, writes ? second : first);
    std::vector<std::byte> stored(2 * TensorMap::bytes);
    const auto keep = [&](unsigned index) {
        const auto encoded = map.encode();
        std::copy(encoded.begin(), encoded.end(), stored.begin() + index * TensorMap::bytes);
    };
    keep(1);
    if (replaces && !opcode.flags.has(Flag::shared)) change_field(map, opcode);
    if (operation == Operation::tensor_map_copy) map.address += 4096;
    keep(0);
    if (replaces && opcode.flags.has(Flag::shared)) {
        change_field(map, opcode);
        keep(1);
    }
    const std::uint64_t at = device.array(stored);
    if (const auto fault = device.launch("k", {1}, {threads}, first, second, at, at + TensorMap::bytes))
        return tally.fault(opcode, spelling, fault->message);
    for (unsigned k = 0; k < words; ++k) {
        Bits expected = in[k];
        if (reduces) {
            Opcode of_words = opcode;
            of_words.type =
                (opcode.flags & FlagSet{Flag::and_, Flag::or_, Flag::xor_}).empty() ? Type::u32 : Type::b32;
            expected = after_atomic(of_words, before[k], in[k], 0);
        }
        tally.compare(opcode, spelling, {Type::b32, expected}, out[k],
                      [&] { return "word " + std::to_string(k); });
    }
}

}  // namespace

void tensor_copy_vectors(Tally& tally) {
    Random random(4321);
    for (const reference::Syntax& syntax : reference::tensor_copy_syntax()) {
        for (const std::string& spelling : reference::spellings_of(syntax)) {
            const auto opcode = known(spelling);
            if (opcode)
                run(tally, spelling, *opcode, random);
            else
                tally.refused(spelling, "not in the table");
        }
    }
}

}  // namespace vectors
