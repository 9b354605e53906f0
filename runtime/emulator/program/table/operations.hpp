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

/// The operations of the machine (rows.hpp).
enum class Operation : std::uint8_t {
#define OPERATION(name, does, lowering) name,
#define STEP(name, does) name,
#include "program/table/rows.hpp"
};

/// What an operation does, beyond computing results: a set of these.
enum class Does : std::uint16_t {
    apart = 0,  ///< lockstep ends before it, and a guard is a branch around it
    /// each lane works for itself and goes on with the next instruction, so a guard is a mask
    by_lane = 1,
    by_warp = 2,    ///< affects no other warp and goes on with the next instruction, as all of `by_lane` do
    jumps = 4,      ///< goes on at a label
    ends_flow = 8,  ///< never goes on with the next instruction
    gathers = 16,   ///< the groups of a warp meet here in any case
    accesses = 32,  ///< looks for a pattern of the lanes' addresses
    lists_places = 64,  ///< its operands are a list of places
    // Types that share a handler:
    wraps = 128,        ///< signed and unsigned integers, unless a flag tells them apart
    reduces = 256,      ///< the same for .add
    copies_bits = 512,  ///< all types of a size
};
constexpr Does operator|(Does a, Does b) noexcept {
    return static_cast<Does>(static_cast<unsigned>(a) | static_cast<unsigned>(b));
}
namespace detail {
using enum Does;
inline constexpr Does deeds[] = {
#define OPERATION(name, does, lowering) does,
#define STEP(name, does) does,
#include "program/table/rows.hpp"
};
}  // namespace detail
/// True if the operation does one of `any`.
constexpr bool does(Operation operation, Does any) noexcept {
    return (static_cast<unsigned>(detail::deeds[static_cast<unsigned>(operation)]) &
            static_cast<unsigned>(any)) != 0;
}

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
    FlagSet one_of = {};     ///< exactly one of these is required; empty: none
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
    FlagSet flags;                         ///< all of them
    std::uint16_t columns = 0, depth = 0;  ///< n and k of a warpgroup's shape
};

std::span<const Row> operation_table() noexcept;

/// Why an opcode is refused, without its line: "redux.sync.f32 is not supported: ...".
struct Refusal {
    std::string reason;
};
std::variant<Opcode, Refusal> find_operation(std::string_view opcode);

}  // namespace emulated::program
