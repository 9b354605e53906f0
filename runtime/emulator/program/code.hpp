// Bytecode: what a kernel, with every function it calls, becomes once.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <mutex>
#include <string>
#include <vector>

#include "program/table/operations.hpp"

namespace emulated::program {

/// What selects a handler. `flags` holds selecting flags only.
struct Key {
    Operation operation = Operation::mov;
    Type type = Type::none;
    Type second = Type::none;  ///< cvt's source; a load's or store's register (b16, b32 or b64)
    FlagSet flags = {};
    bool operator==(const Key&) const = default;
};

/// One step. Registers are byte offsets into a warp's register file, where a value is 32 contiguous lanes and
/// a predicate is 32 bits.
struct Instruction {
    static constexpr std::uint16_t negated = 1;    ///< branch, guard: when the predicate is false
    static constexpr std::uint16_t backward = 2;   ///< branch: to an earlier instruction
    static constexpr std::uint16_t has_count = 4;  ///< bar: operand[1] is a thread count
    static constexpr std::uint16_t counts = 16;    ///< bar: operand[2] is a predicate to count
    /// ld, st: the instruction that last looked for this pattern, in this very run of the same lanes, had the same
    /// addresses but for what is added to all of them
    static constexpr std::uint16_t same_pattern = 32;
    static constexpr std::uint16_t narrow = 8;   ///< memory: the address register has 32 bits
    static constexpr std::uint16_t strong = 64;  ///< memory: others may be at these bytes, as .relaxed says
    /// asynchronous copies and mbarrier: the shared memory of any block of the cluster, not only of this one
    static constexpr std::uint16_t in_cluster = 128;
    static constexpr std::uint16_t from_shared = 256;  ///< bulk_copy: the source lies in shared memory
    static constexpr std::uint16_t to_shared =
        1024;  ///< bulk_copy: the destination does, and an mbarrier counts
    static constexpr std::uint16_t multicast = 512;  ///< bulk_copy: to each block that a mask names
    static constexpr std::uint16_t has_base = 2048;  ///< ld, st: operand[2] is added to all lanes' addresses

    mutable void (*handler)() = nullptr;  ///< set by the machine when it links the code; of its own type
    std::int64_t immediate = 0;           ///< address offset, branch target, table
    /// Results first; of vectors the start in Code::lists. Of ld_used the last is a bit for each byte that counts.
    std::array<std::uint32_t, 6> operand{};
    static constexpr std::size_t pattern = 4;  ///< ld, st: this operand is the index of the pattern's cache
    std::uint16_t count = 1;  ///< vector length; of atom the bytes of the vector that it begins
    std::uint16_t bits = 0;
    std::uint32_t extra = 0;  ///< memory: the index of this instruction's cache of an allocation
};

/// What a family of instructions that has one handler says beyond its key, as their immediate.
template <class Form>
std::int64_t packed(const Form& form) {
    std::int64_t made = 0;
    static_assert(sizeof form <= sizeof made);
    std::memcpy(&made, &form, sizeof form);
    return made;
}
template <class Form>
Form unpacked(const Instruction* from) {
    Form made;
    std::memcpy(static_cast<void*>(&made), &from->immediate, sizeof made);
    return made;
}

// clang-format off
/// Special registers that a warp finds in its register file, with their names.
#define BASCULE_PTX_SPECIALS(SPECIAL) \
    SPECIAL(tid_x, "%tid.x") SPECIAL(tid_y, "%tid.y") SPECIAL(tid_z, "%tid.z") SPECIAL(ntid_x, "%ntid.x") \
    SPECIAL(ntid_y, "%ntid.y") SPECIAL(ntid_z, "%ntid.z") SPECIAL(ctaid_x, "%ctaid.x") \
    SPECIAL(ctaid_y, "%ctaid.y") SPECIAL(ctaid_z, "%ctaid.z") SPECIAL(nctaid_x, "%nctaid.x") \
    SPECIAL(nctaid_y, "%nctaid.y") SPECIAL(nctaid_z, "%nctaid.z") \
    SPECIAL(laneid, "%laneid") SPECIAL(warpid, "%warpid") SPECIAL(nwarpid, "%nwarpid") \
    SPECIAL(smid, "%smid") SPECIAL(nsmid, "%nsmid") SPECIAL(gridid, "%gridid") \
    SPECIAL(lanemask_eq, "%lanemask_eq") SPECIAL(lanemask_le, "%lanemask_le") \
    SPECIAL(lanemask_lt, "%lanemask_lt") SPECIAL(lanemask_ge, "%lanemask_ge") \
    SPECIAL(lanemask_gt, "%lanemask_gt") SPECIAL(dynamic_smem_size, "%dynamic_smem_size") \
    SPECIAL(total_smem_size, "%total_smem_size") \
    /* of a cooperative grid: the address of its workspace */ SPECIAL(workspace_high, "%envreg1") \
    SPECIAL(workspace_low, "%envreg2") \
    SPECIAL(cluster_ctaid_x, "%cluster_ctaid.x") SPECIAL(cluster_ctaid_y, "%cluster_ctaid.y") \
    SPECIAL(cluster_ctaid_z, "%cluster_ctaid.z") SPECIAL(cluster_nctaid_x, "%cluster_nctaid.x") \
    SPECIAL(cluster_nctaid_y, "%cluster_nctaid.y") SPECIAL(cluster_nctaid_z, "%cluster_nctaid.z") \
    SPECIAL(clusterid_x, "%clusterid.x") SPECIAL(clusterid_y, "%clusterid.y") \
    SPECIAL(clusterid_z, "%clusterid.z") SPECIAL(nclusterid_x, "%nclusterid.x") \
    SPECIAL(nclusterid_y, "%nclusterid.y") SPECIAL(nclusterid_z, "%nclusterid.z") \
    SPECIAL(cluster_ctarank, "%cluster_ctarank") SPECIAL(cluster_nctarank, "%cluster_nctarank") \
    SPECIAL(is_explicit_cluster, "%is_explicit_cluster")

enum class Special : std::uint8_t {
#define SPECIAL(enumerator, name) enumerator,
    BASCULE_PTX_SPECIALS(SPECIAL)
#undef SPECIAL
    stack,  ///< where the thread's stack ends, as an offset in its local memory
    zero,
};
// clang-format on

/// Where things that are not device memory appear in the generic address space: below 4 GiB, so that 32-bit
/// registers hold their addresses, and above the first pages, so that null plus an offset is a fault.
inline constexpr std::uint64_t shared_window = 0x0100'0000;
inline constexpr std::uint64_t local_window = 0x0200'0000;
inline constexpr std::uint64_t param_window = 0x0300'0000;
inline constexpr std::uint64_t window_bytes = 0x0100'0000;
/// A block sees its own shared memory at the beginning of the window, and that of rank r of its cluster, which may be
/// itself, at (r + 1) times this.
inline constexpr std::uint64_t cluster_stride = 0x0008'0000;
inline constexpr std::uint32_t most_cluster_blocks = 16;

/// Functions have addresses too, where no memory is: function k of a module is at code_window + 16 k.
inline constexpr std::uint64_t code_window = 0x0080'0000;
inline constexpr std::size_t most_functions = (shared_window - code_window) / 16;
/// What a thread's stack has room for at least, when functions can be entered again: a frame holds every register here,
/// and is much larger than a GPU's, where the default of 1024 bytes is soon used up.
inline constexpr std::uint32_t least_stack_bytes = 64 * 1024;

struct Code {
    struct Constant {
        std::uint32_t offset = 0;     ///< in the register file
        std::uint32_t bytes = 4;      ///< per lane
        std::uint64_t value = 0;      ///< or the addend
        std::int32_t global = -1;     ///< plus the address of this global
        Type parameter = Type::none;  ///< or what stands in the parameters at offset `value`, as this type
    };
    struct SpecialSlot {
        Special special = Special::zero;
        std::uint32_t offset = 0;
    };
    struct Line {
        std::uint32_t ptx = 0, file = 0, source = 0;
        std::uint32_t caller_file = 0, caller = 0;  ///< of inlined code: the line that calls it
    };

    /// Where a value or an argument lies in the register file.
    struct Place {
        std::uint32_t offset = 0;  ///< of the first lane; the others follow
        std::uint32_t bytes = 0;   ///< of each lane; 0: a predicate, or a result that is not used
    };
    /// A function that can be called through a pointer.
    struct Callee {
        std::uint64_t address = 0;
        std::uint32_t start = 0;        ///< its first instruction
        std::uint32_t return_slot = 0;  ///< where each lane continues after it
        std::vector<Place> results, parameters;
    };

    std::vector<Instruction> instructions;
    std::vector<Key> keys;             ///< by instruction
    std::vector<Line> lines;           ///< by instruction
    std::vector<std::string> files;    ///< by Line::file; the first is empty: unknown
    std::vector<std::uint32_t> lists;  ///< operand lists of vector instructions
    std::vector<Constant> constants;
    std::vector<SpecialSlot> specials;
    std::vector<Callee> callees;       ///< by address
    std::uint32_t register_bytes = 0;  ///< of a warp's register file
    std::uint32_t shared_bytes = 0;    ///< static, with `reserved_shared_bytes`
    std::uint32_t reserved_shared_bytes = 0;
    std::uint32_t local_bytes = 0;  ///< per thread, without its stack
    std::uint32_t caches = 0;
    bool has_barrier = false;
    bool may_spin = false;            ///< a thread may wait for what another warp writes
    bool has_stack = false;           ///< some function can be entered again before it returns
    bool has_dynamic_shared = false;  ///< an extern __shared__ array
    bool uses_heap = false;           ///< malloc or free

    /// Guards `handler` and what follows, which depend on the processor and are made at the first launch.
    mutable std::once_flag linked;
    mutable std::vector<Instruction> lockstep;  ///< the instructions again, for warps in lockstep
    mutable std::uint64_t serial = 0;           ///< unlike that of any other code
};

}  // namespace emulated::program
