// The bytecode that a kernel and all functions that it calls are translated to.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "program/table/operations.hpp"

namespace emulated::program {

/// Selects a handler. `flags` holds only selecting flags.
struct Key {
    Operation operation = Operation::mov;
    Type type = Type::none;
    Type second = Type::none;  ///< the source of cvt; the register of a load or store (b16, b32 or b64)
    FlagSet flags = {};
    bool operator==(const Key&) const = default;
};

/// One instruction. Registers are byte offsets into a warp's register file, where a value is 32 contiguous lanes and a
/// predicate is 32 bits.
struct Instruction {
    static constexpr std::uint16_t negated = 1;    ///< branch, guard: taken if the predicate is false
    static constexpr std::uint16_t backward = 2;   ///< branch: to an earlier instruction
    static constexpr std::uint16_t has_count = 4;  ///< bar: operand[1] is a thread count
    static constexpr std::uint16_t counts = 16;    ///< bar: operand[2] is a predicate to count
    /// ld, st: an earlier instruction of the same straight-line code has found the pattern of these addresses; its own
    /// addresses differ from these only by a displacement that is equal for all lanes
    static constexpr std::uint16_t same_pattern = 32;
    static constexpr std::uint16_t narrow = 8;   ///< memory: the address register has 32 bits
    static constexpr std::uint16_t strong = 64;  ///< memory: .relaxed or stronger
    /// asynchronous copies and mbarrier: the address may be in any block of the cluster
    static constexpr std::uint16_t in_cluster = 128;
    static constexpr std::uint16_t from_shared = 256;  ///< bulk_copy: the source is in shared memory
    static constexpr std::uint16_t to_shared =
        1024;  ///< bulk_copy: the destination is in shared memory, and an mbarrier is signalled
    static constexpr std::uint16_t multicast = 512;  ///< bulk_copy: copies to each block in a mask
    static constexpr std::uint16_t has_base = 2048;  ///< ld, st: operand[2] is added to all addresses
    // For checks (machine/observer.hpp):
    static constexpr std::uint16_t is_constant = 4;     ///< ld: .nc, so the grid does not write these bytes
    static constexpr std::uint16_t is_volatile = 4096;  ///< ld, st
    static constexpr std::uint16_t is_aligned = 4096;   ///< bar: all threads of a warp execute it together
    static constexpr std::uint16_t in_block = 8192;     ///< .cta: orders only threads of the block
    static constexpr std::uint16_t acquires = 16384;    ///< .acquire, .acq_rel or .sc
    static constexpr std::uint16_t releases = 32768;    ///< .release, .acq_rel or .sc

    mutable void (*handler)() = nullptr;  ///< a machine::Handler, set when the machine links the code
    std::int64_t immediate = 0;           ///< address offset, branch target or index
    /// Results first; for vectors an index into Code::lists. The last operand of ld_used has a bit for each byte, which
    /// is 1 if the byte is used.
    std::array<std::uint32_t, 6> operand{};
    static constexpr std::size_t pattern = 4;  ///< ld, st: this operand is the index of the pattern's cache
    std::uint16_t count = 1;  ///< vector length; for atom the bytes of the vector that starts here
    std::uint16_t bits = 0;
    std::uint32_t extra = 0;  ///< memory: index of the instruction's allocation cache
};

/// Packs the variant of an instruction into its immediate, for families that share one handler.
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
/// Special registers that are stored in the register file, with their names.
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
    stack,  ///< the end of the thread's stack, as an offset in its local memory
    zero,
};
// clang-format on

/// The generic addresses of memory other than device memory: below 4 GiB, so that 32-bit registers hold them, and above the
/// first pages, so that null plus an offset is a fault.
inline constexpr std::uint64_t shared_window = 0x0100'0000;
inline constexpr std::uint64_t local_window = 0x0200'0000;
inline constexpr std::uint64_t param_window = 0x0300'0000;
inline constexpr std::uint64_t window_bytes = 0x0100'0000;
/// A block's own shared memory is at the start of the window. That of rank r of its cluster, possibly its own, is at (r +
/// 1) times this offset.
inline constexpr std::uint64_t cluster_stride = 0x0008'0000;
inline constexpr std::uint32_t most_cluster_blocks = 16;

/// Functions have addresses too, outside all memory: function k of a module is at code_window + 16 k.
inline constexpr std::uint64_t code_window = 0x0080'0000;
inline constexpr std::size_t most_functions = (shared_window - code_window) / 16;
/// The minimum stack of a thread if functions can be re-entered. A frame holds every register that is live across the
/// call, so it is much larger than on a GPU, and the default of 1024 bytes would not last long.
inline constexpr std::uint32_t least_stack_bytes = 64 * 1024;

struct Code {
    struct Constant {
        std::uint32_t offset = 0;     ///< in the register file
        std::uint32_t bytes = 4;      ///< per lane
        std::uint64_t value = 0;      ///< or the addend to an address
        std::int32_t global = -1;     ///< if not -1, adds the address of this global
        Type parameter = Type::none;  ///< if not none, the kernel parameter at offset `value`, with this type
    };
    struct SpecialSlot {
        Special special = Special::zero;
        std::uint32_t offset = 0;
    };
    struct Line {
        std::uint32_t ptx = 0, file = 0, source = 0;
        std::uint32_t caller_file = 0, caller = 0;  ///< for inlined code: the line that calls it
    };

    /// What an instruction's operands are: after the index of a list, if there is one, `results` places and then `sources`
    /// places of the register file. For checks.
    struct Operands {
        /// The width of a place whose content is the same during the whole launch, or that holds a call's argument.
        static constexpr std::uint8_t fixed = 255;
        std::uint8_t first = 0, results = 0, sources = 0;
        std::uint16_t listed = 0, listed_results = 0;  ///< the list has its results first
        std::array<std::uint8_t, 6> bytes{};           ///< by place: bytes per lane; 0: a predicate
    };

    /// A variable of the module, or a parameter of 64 bits, from which addresses derive. For checks.
    struct Origin {
        enum class Kind : std::uint8_t { none, shared, dynamic_shared, local, global, parameter };
        Kind kind = Kind::none;
        std::uint64_t value = 0;  ///< address in its window, index of the global, or offset of the parameter
        std::uint64_t bytes = 0;  ///< of the variable, if known
        std::string name;         ///< mangled
        bool operator==(const Origin&) const = default;
    };

    /// The location of a value or argument in the register file.
    struct Place {
        std::uint32_t offset = 0;  ///< of the first lane; the other lanes follow
        std::uint32_t bytes = 0;   ///< per lane; 0 for a predicate or an unused result
    };
    /// A function that can be called through a pointer.
    struct Callee {
        std::uint64_t address = 0;
        std::uint32_t start = 0;        ///< its first instruction
        std::uint32_t return_slot = 0;  ///< holds the position at which each lane continues after the call
        std::vector<Place> results, parameters;
    };

    std::vector<Instruction> instructions;
    std::vector<Key> keys;              ///< by instruction
    std::vector<Line> lines;            ///< by instruction
    std::vector<Operands> operands;     ///< by instruction
    std::vector<std::uint16_t> origin;  ///< by instruction: what an access indexes, in `origins`; 0: unknown
    std::vector<Origin> origins{1};
    std::vector<std::string> files;        ///< indexed by Line::file; the first is empty: unknown
    std::vector<std::uint32_t> lists;      ///< operand lists of vector instructions
    std::vector<std::uint8_t> list_bytes;  ///< by entry of `lists`: like Operands::bytes
    std::vector<Constant> constants;
    std::vector<SpecialSlot> specials;
    std::vector<Callee> callees;       ///< sorted by address
    std::uint32_t register_bytes = 0;  ///< of a warp's register file
    std::uint32_t shared_bytes = 0;    ///< static shared memory, including `reserved_shared_bytes`
    std::uint32_t reserved_shared_bytes = 0, reserved_shared_at = 0;
    std::uint32_t local_bytes = 0;  ///< per thread, without the stack
    std::uint32_t caches = 0;
    bool has_barrier = false;
    bool may_spin = false;            ///< a thread may wait for a write of another warp
    bool has_stack = false;           ///< a function can be re-entered before it returns
    bool has_dynamic_shared = false;  ///< an extern __shared__ array
    bool reads_unwritten = false;  ///< a register may be read before it is written, or the check cannot tell
    bool uses_heap = false;        ///< malloc or free
    bool reads_shared_async = false;  ///< bulk or tensor copies, or wgmma, read shared memory

    /// Guards `handler` and the members below, which depend on the processor and are set at the first launch.
    mutable std::once_flag linked;
    mutable std::vector<Instruction> lockstep;  ///< the same instructions, with the handlers for lockstep
    mutable std::uint64_t serial = 0;           ///< unique for each Code

    /// What observers derive from the code (machine::derived).
    mutable std::mutex derived_mutex;
    mutable std::map<std::string, std::shared_ptr<const void>> derived;
};

}  // namespace emulated::program
