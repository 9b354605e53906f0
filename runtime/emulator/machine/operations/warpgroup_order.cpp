// Handlers of wgmma, except its arithmetic, and of setmaxnreg.
#include <cstring>

#include <fmt/format.h>

#include "machine/cluster.hpp"
#include "machine/groups.hpp"
#include "machine/operations/async_view.hpp"
#include "machine/registry.hpp"
#include "machine/warp.hpp"
#include "machine/warpgroups.hpp"

namespace emulated::machine {
namespace {

using program::Product;
using program::WarpgroupBits;

constexpr u32 every_lane = ~0u;
constexpr u32 warps_of_group = 4, threads_of_group = 32 * warps_of_group;

// True once all 32 lanes have arrived. Otherwise the group waits for the others, or faults if they can never arrive.
bool is_whole(Lanes& s, const Instruction* i) {
    if (!meet(s, i, every_lane)) return false;
    if (s.mask == every_lane) return true;
    fault(s, i, LaneFault::What::incomplete_warp);
    return false;
}

WarpgroupProducts& products_of(Warp& warp) {
    if (!warp.products) warp.products = std::make_unique<WarpgroupProducts>();
    return *warp.products;
}

bool same_in_all_lanes(const u64* values) {
    u64 differs = 0;
    for (u32 l = 1; l < 32; ++l) differs |= values[l] ^ values[0];
    return differs == 0;
}

SharedMatrix matrix_of(u64 descriptor, bool transposed) {
    const auto field = [&](unsigned bit, unsigned bits) {
        return static_cast<u32>(descriptor >> bit & ((1u << bits) - 1));
    };
    SharedMatrix made;
    made.start = field(0, 14) << 4;
    made.leading = field(16, 14) << 4;
    made.stride = field(32, 14) << 4;
    made.base_offset = field(49, 3);
    constexpr u32 swizzles[] = {0, 128, 64, 32};
    made.swizzle = swizzles[field(62, 2)];
    made.transposed = transposed;
    return made;
}
constexpr u64 unused_bits = 0x3ff1'c000'c000'c000;

// The bits in which 16 bytes of shared memory differ from the view.
u64 difference(const std::byte* shared, const std::byte* view) {
    u64 a[2], b[2];
    std::memcpy(a, shared, sizeof a);
    std::memcpy(b, view, sizeof b);
    return (a[0] ^ b[0]) | (a[1] ^ b[1]);
}

// Reads the descriptor of A or B and checks that the whole matrix is in the block's shared memory, and that wgmma sees what
// is there. Returns false after a fault.
bool read_descriptor(Lanes& s, const Instruction* i, u32 slot, const char* which, bool transposed, u32 first,
                     u32 outer, u32 inner, SharedMatrix& made) {
    const u64* descriptors = lanes_at<u64>(s, slot);
    const auto refuse = [&](std::string why) {
        misuse(s, i, every_lane, fmt::format("wgmma: the descriptor of {} {}", which, std::move(why)));
        return false;
    };
    if (!same_in_all_lanes(descriptors)) return refuse("differs between threads of the warp");
    const u64 descriptor = descriptors[0];
    if ((descriptor & unused_bits) != 0)
        return refuse(fmt::format("is {:#x}, which has bits set that are in no field of it", descriptor));
    made = matrix_of(descriptor, transposed);
    if (!transposed && made.swizzle != 0 && inner * 16 > made.swizzle) {
        return refuse(
            fmt::format("has a swizzle of {} bytes, and a row of {} bytes along K does not fit into one",
                        made.swizzle, inner * 16));
    }
    const std::byte* const view = s.block->cluster->members[s.block->rank].async_view;
    // `first` is counted in the direction of M.
    for (u32 o = first; o < first + outer; ++o) {
        for (u32 k = 0; k < inner; ++k) {
            for (u32 r = 0; r < 8; ++r) {
                const u32 at = made.row(o, k, r);
                if (at + u64{16} <= s.shared_bytes) {
                    if (difference(s.shared + at, view + at) == 0) continue;
                    return sees_source(s, i, every_lane, "wgmma.mma_async", s.shared + at, 16);
                }
                fault(s, i, LaneFault::What::out_of_bounds, every_lane, program::shared_window + at);
                s.fault.bytes = 16;
                s.fault.space = "shared";
                return false;
            }
        }
    }
    return true;
}

const Instruction* order(Lanes& s, const Instruction* i) {
    if (!is_whole(s, i)) return nullptr;
    products_of(*s.warp).fenced = true;
    return i + 1;
}

const Instruction* commit(Lanes& s, const Instruction* i) {
    if (!is_whole(s, i)) return nullptr;
    products_of(*s.warp).commit();
    return i + 1;
}

const Instruction* wait(Lanes& s, const Instruction* i) {
    if (!is_whole(s, i)) return nullptr;
    products_of(*s.warp).wait(static_cast<u32>(i->immediate), s.registers, s.shared);
    return i + 1;
}

const Instruction* move_sum(Lanes& s, const Instruction* i) {
    const u32* from = lanes_at<u32>(s, i->operand[1]);
    u32* to = lanes_at<u32>(s, i->operand[0]);
    for (const unsigned l : LanesOf{s.mask}) to[l] = from[l];
    if (s.warp->products && s.mask == every_lane) s.warp->products->copy(i->operand[0], i->operand[1]);
    return i + 1;
}

// --- setmaxnreg --------------------------------------------------------------------------------------------
// Registers are counted per thread; all warps have 32 threads.

template <bool Increases>
const Instruction* set_registers(Lanes& s, const Instruction* i) {
    if (!is_whole(s, i)) return nullptr;
    if (i->extra == 0) return i + 1;  // the number at the start is unknown
    const auto wanted = static_cast<u32>(i->immediate);
    u32& held = s.warp->thread_registers;
    if (held == 0) held = i->extra;
    if (Increases ? wanted < held : wanted > held) {
        return misuse(s, i, every_lane,
                      fmt::format("setmaxnreg.{} {}: the threads of this warp have {} registers",
                                  Increases ? "inc" : "dec", wanted, held));
    }
    if (Increases && wanted - held > s.block->free_registers) {
        s.pc = index_of(s, i);
        s.stop = Stop::registers;
        s.barrier_count = wanted - held;
        return nullptr;
    }
    s.block->free_registers += held - wanted;  // unsigned: decreases it if `wanted` is more
    held = wanted;
    return i + 1;
}

}  // namespace

// Operands: the list of D, A if it is in registers, and D again; then the descriptors of A and B, whether D is added, and the
// metadata.
const Instruction* begin_warpgroup_product(Lanes& s, const Instruction* i,
                                           const WarpgroupArithmetic& arithmetic) {
    if (!is_whole(s, i)) return nullptr;
    const auto product = program::unpacked<Product>(i);
    const u32 group = s.warp->index / warps_of_group;
    if (s.block->threads < (group + 1) * threads_of_group) {
        return misuse(
            s, i, every_lane,
            fmt::format(
                "wgmma needs the four warps of a warpgroup, threads {} to {}, and the block has {} threads",
                group * threads_of_group, (group + 1) * threads_of_group - 1, s.block->threads));
    }
    WarpgroupProducts& products = products_of(*s.warp);
    if (!products.fenced) {
        return misuse(
            s, i, every_lane,
            "wgmma.mma_async: the warp has executed no wgmma.fence, which must stand between writes of the "
            "registers of D and A and the first wgmma.mma_async");
    }
    const bool in_registers = i->bits & WarpgroupBits::a_in_registers;
    const u32 adds = predicate_at(s, i->operand[3]);
    if (adds != 0 && adds != every_lane)
        return misuse(s, i, every_lane, "wgmma: scale-d differs between threads of the warp");
    SharedMatrix a, b;
    const u32 first = 2 * (s.warp->index % warps_of_group);
    if (!in_registers &&
        !read_descriptor(s, i, i->operand[1], "A", i->bits & WarpgroupBits::a_by_columns, first, 2, 2, a))
        return nullptr;
    const u32 inner = i->bits & WarpgroupBits::sparse ? 4 : 2;
    if (!read_descriptor(s, i, i->operand[2], "B", i->bits & WarpgroupBits::b_by_rows, 0, product.columns,
                         inner, b))
        return nullptr;

    const u32* list = s.lists + i->operand[0];
    const u32 registers = registers_of(program::fragment_c(product, product.d));
    WarpgroupProduct& made = products.begin(arithmetic, product, adds != 0, s.registers, list, registers);
    made.bits = i->bits;
    made.a = a;
    made.b = b;
    made.first = first;
    made.selector = i->extra;
    if (i->bits & WarpgroupBits::sparse)
        std::memcpy(made.metadata, lanes_at<u32>(s, i->operand[4]), sizeof made.metadata);
    for (u32 k = 0; in_registers && k < 4; ++k)
        std::memcpy(made.registers_of_a + k * 128, lanes_at<u32>(s, list[registers + k]), 128);
    if (i->bits & WarpgroupBits::at_once) {
        products.commit();
        products.wait(0, s.registers, s.shared);
    }
    return i + 1;
}

void register_warpgroup_order(Registry& r) {
    r.add(Operation::warpgroup_order, order, {Flag::fence});
    r.add(Operation::warpgroup_order, commit, {Flag::commit_group});
    r.add(Operation::warpgroup_order, wait, {Flag::wait_group});
    r.add(Operation::move_sum, move_sum);
    r.add(Operation::set_registers, set_registers<true>, {Flag::inc});
    r.add(Operation::set_registers, set_registers<false>, {Flag::dec});
}

}  // namespace emulated::machine
