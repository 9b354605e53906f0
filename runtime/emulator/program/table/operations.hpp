// The operation table. One row says everything about a family of instructions: which types, which modifiers
// change what it does and which change nothing here, and what its operands are. What no row allows is
// refused.
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

/// What the machine can do. Most are elementwise; the others say so. What has one rule of the lowering stands together.
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
    ld_used,  ///< of which only some bytes count
    st, atom, red,
    load_parameter,  ///< a kernel's, the same for every lane
    load_argument, store_argument,
    copy_argument,  ///< of a call, in the register file
    // between threads
    shfl, vote, match, redux, activemask, bar,
    bar_red,  ///< what bar has counted, after it
    bar_warp, fence, nanosleep,
    // matrices of a warp
    mma,  ///< a product of two, added to a third
    load_matrix, store_matrix,  ///< wmma's: between memory and the registers of a warp
    ldmatrix, stmatrix, movmatrix,
    // control
    bra, branch,
    brx,  ///< lowered to branches
    call,
    call_pointer,  ///< each lane the function that its register names
    take_results,  ///< of the function that the register named
    enter_frame,   ///< of local variables, on the lane's stack
    leave_frame,
    save_frame,  ///< what the caller still needs, before the callee may overwrite it
    restore_frame, ret, exit, trap, guard, unguard,
    compare_branch, compare_guard,  ///< setp, and what looks at its result at once
    clock, global_timer, print, assertion,
    heap_allocate, heap_free,               // malloc and free in kernels
    stack_allocate, stack_save, stack_restore,  // alloca
    // video instructions, of words and of two halves or four bytes
    video_add, video_sub, video_difference, video_min, video_max, video_shl, video_shr, video_mad, video_set,
    video_vector_add, video_vector_sub, video_vector_average, video_vector_difference, video_vector_min,
    video_vector_max, video_vector_set,
    convert_small,  ///< into and from tf32, fp8 and the like
    convert_pack, create_policy, discard,
    atom_vector, red_vector,  ///< lowered to atomics of each element
    atom_wide,                ///< of 128 bits
    // asynchronous copies, barriers in shared memory, clusters (lower_async.cpp)
    copy_async, copy_group, bulk_group, mbarrier, copy_arrive, bulk_copy, bulk_reduce, store_async, reduce_async,
    in_cluster,  ///< faults where an address is not in the cluster's shared memory
    cluster_bar, mapa, getctarank, elect,
    // textures and surfaces
    tex, tld4, suld, sust, sured, txq, suq, istypep,
    // conditional nodes of graphs (external.cpp)
    set_condition,  ///< cudaGraphSetConditional
    count,
    // clang-format on
};

/// A set of types, as bits.
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
/// One row. `operands` has a letter an operand:
///   D  result of the type           A  source of the type           F  source of the second type
///   d  result of twice its width    a  source of twice its width    *  the translator knows
///   u  result .u32                  U  source .u32                 S  result of the type, or _
///   b  result .b32                  B  source .b32                 I  an integer constant that means nothing here
///   V  result .b32, perhaps d|p     W  source .u64                 M  source: the address of [a]
///   v  result .u32, perhaps d|p     C  source .u32, a constant below 256
///   P  result predicate             Q  source predicate
// clang-format on
struct Row {
    std::string_view name;
    Operation operation;
    std::string_view operands;
    TypeSet types;
    TypeSet second = {};     ///< of a second type (cvt, set, slct); empty: there is none
    FlagSet selecting = {};  ///< each changes what is done: the machine has a handler for every combination
    FlagSet neutral = {};  ///< change nothing on this device: cache hints, .rn where it is the default, .uni
    FlagSet one_of = {};   ///< exactly one of these (they are selecting too); empty: no such rule
    FlagSet all_of = {};   ///< must be there
    TypeSet third = {};    ///< of a third type; empty: there is none
    TypeSet fourth = {};   ///< of a fourth type; empty: there is none
};

/// An opcode, taken apart and found in the table.
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
