// The operation table. One row describes a family of instructions: its types, the modifiers that change its result, those
// that have no effect here, and its operands. An instruction that no row allows is refused.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <variant>

#include "program/table/flags.hpp"
#include "ptx/types.hpp"

namespace emulated::program {

using ptx::Type;

/// The operations of the machine. Most are elementwise. Operations with the same lowering function are adjacent.
enum class Operation : std::uint8_t {
    // clang-format off
    // elementwise arithmetic
    add, sub, mul, mad, fma, mul24, mad24, sad, div, rem, abs, neg, min, max, add_carry, sub_borrow,
    mad_carry,  ///< the carry is a predicate operand
    popc, clz, bfind, brev, bfe, bfi, bmsk, szext, fns, prmt, lop3, shf, shl, shr, dp4a, dp2a, and_, or_,
    xor_, not_, cnot, copysign, testp, rcp, sqrt, rsqrt, sin, cos, lg2, ex2, tanh,
    // selection and movement
    setp, set, selp, slct, mov, cvt, cvta, isspacep, pack, unpack,
    // memory
    ld,
    ld_used,  ///< a load of which only some bytes are used
    st, atom, red,
    load_parameter,  ///< a kernel's, the same for every lane
    load_argument, store_argument,
    copy_argument,  ///< the argument of a call, in the register file
    // between threads
    shfl, vote, match, redux, activemask, bar,
    bar_red,  ///< reads the count after bar
    bar_warp, fence, nanosleep,
    // matrices of a warp
    mma,  ///< multiplies two matrices and adds a third
    load_matrix, store_matrix,  ///< wmma: between memory and the registers of a warp
    ldmatrix, stmatrix, movmatrix,
    // control
    bra, branch,
    brx,  ///< lowered to branches
    call,
    call_pointer,  ///< each lane calls the function in its register
    take_results,  ///< results of that function
    enter_frame,   ///< for local variables, on the lane's stack
    leave_frame,
    save_frame,  ///< saves the caller's live registers before the callee overwrites them
    restore_frame, ret, exit, trap, guard, unguard,
    compare_branch, compare_guard,  ///< setp fused with the instruction that uses its result
    clock, global_timer, print, assertion,
    heap_allocate, heap_free,               // malloc and free in kernels
    stack_allocate, stack_save, stack_restore,  // alloca
    // video instructions, of words and of two halves or four bytes
    video_add, video_sub, video_difference, video_min, video_max, video_shl, video_shr, video_mad, video_set,
    video_vector_add, video_vector_sub, video_vector_average, video_vector_difference, video_vector_min,
    video_vector_max, video_vector_set,
    convert_small,  ///< to and from tf32, fp8 and the like
    convert_pack, create_policy, discard,
    atom_vector, red_vector,  ///< lowered to atomics of each element
    atom_wide,                ///< 128 bits
    // asynchronous copies, barriers in shared memory, clusters (lower_async.cpp)
    copy_async, copy_group, bulk_group, mbarrier, copy_arrive, bulk_copy, bulk_reduce, store_async, reduce_async,
    in_cluster,  ///< faults if an address is not in the cluster's shared memory
    cluster_bar, mapa, getctarank, elect,
    // textures and surfaces
    tex, tld4, suld, sust, sured, txq, suq, istypep,
    // conditional nodes of graphs (external.cpp)
    set_condition,  ///< cudaGraphSetConditional
    count,
    // clang-format on
};

/// A set of types as a bit mask.
class TypeSet {
  public:
    constexpr TypeSet() = default;
    constexpr TypeSet(std::initializer_list<Type> types) {
        for (const Type type : types) bits_ |= bit(type);
    }
    constexpr bool has(Type type) const { return (bits_ & bit(type)) != 0; }
    constexpr bool empty() const { return bits_ == 0; }
    constexpr TypeSet operator|(TypeSet other) const {
        other.bits_ |= bits_;
        return other;
    }
    template <class Visit>
    constexpr void each(Visit&& visit) const {
        for (unsigned i = 0; i < static_cast<unsigned>(Type::count); ++i) {
            if (has(static_cast<Type>(i))) visit(static_cast<Type>(i));
        }
    }

  private:
    static_assert(static_cast<unsigned>(Type::count) <= 64);
    static constexpr std::uint64_t bit(Type type) { return std::uint64_t{1} << static_cast<unsigned>(type); }
    std::uint64_t bits_ = 0;
};

// clang-format off
/// One row. `operands` has one letter per operand:
///   D  result of the type           A  source of the type           F  source of the second type
///   d  result of twice its width    a  source of twice its width    *  the lowering has a function
///   u  result .u32                  U  source .u32                 S  result of the type, or _
///   b  result .b32                  B  source .b32                 I  an integer constant without effect
///   V  result .b32, or d|p          W  source .u64                 M  source: the address of [a]
///   v  result .u32, or d|p          C  source .u32, a constant below 256
///   P  result predicate             Q  source predicate
// clang-format on
struct Row {
    std::string_view name;
    Operation operation;
    std::string_view operands;
    TypeSet types;
    TypeSet second = {};     ///< the second type (cvt, set, slct); empty: none
    FlagSet selecting = {};  ///< flags that change the result; each combination has a handler
    FlagSet neutral = {};    ///< flags without effect here: cache hints, .rn where it is the default, .uni
    FlagSet one_of = {};     ///< exactly one of these is required (they are selecting too); empty: none
    FlagSet all_of = {};     ///< all of these are required
    TypeSet third = {};      ///< the third type; empty: none
    TypeSet fourth = {};     ///< the fourth type; empty: none
};

/// An opcode with its row in the table.
struct Opcode {
    const Row* row = nullptr;
    Type type = Type::none;
    Type second = Type::none;
    Type third = Type::none;
    Type fourth = Type::none;
    FlagSet flags;  ///< all of them
};

std::span<const Row> operation_table() noexcept;

/// Why an opcode is refused, without its line: "redux.sync.f32 is not supported: ...".
struct Refusal {
    std::string reason;
};
std::variant<Opcode, Refusal> find_operation(std::string_view opcode);

}  // namespace emulated::program
