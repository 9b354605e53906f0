// The table of handlers by operation, for one instruction set.
#pragma once

#include <cstddef>
#include <string_view>
#include <unordered_map>

#include "machine/lanes.hpp"

namespace emulated::machine {

using program::Flag;
using program::FlagSet;
using program::Operation;
using program::Type;

/// A pair of handlers: for one warp or a part of it, and for warps in lockstep (machine/lockstep.hpp).
struct Lockstep {
    Handler alone, together;
    constexpr explicit Lockstep(Handler both) : alone(both), together(both) {}
    constexpr Lockstep(Handler for_one, Handler for_all) : alone(for_one), together(for_all) {}
    constexpr operator Handler() const { return alone; }
};

/// Filled once by the handler files, then read by any thread.
class Registry {
  public:
    struct Found {
        Handler handler = nullptr;   ///< null if the operation is not implemented, which a test detects
        Handler together = nullptr;  ///< null if it runs for one warp at a time
        Found() = default;
        Found(Handler alone) : handler(alone) {}
        Found(Lockstep both) : handler(both.alone), together(both.together) {}
        explicit operator bool() const { return handler != nullptr; }
    };

    void add(Operation operation, Type type, Type second, const FlagSet& flags, Found handlers);
    /// Registers one handler for all types.
    void add(Operation operation, Found handlers, const FlagSet& flags = {});
    Found find(const program::Key& key) const;

  private:
    struct Hash {
        std::size_t operator()(const program::Key& key) const noexcept;
    };
    std::unordered_map<program::Key, Found, Hash> handlers_;
};

/// Calls visit.operator()<flag>() for each flag.
template <Flag... Flags, class Visit>
void for_flags(const Visit& visit) {
    (visit.template operator()<Flags>(), ...);
}

/// Calls visit.operator()<T>() for each T.
template <class... Ts, class Visit>
inline void for_types(const Visit& visit) {
    (visit.template operator()<Ts>(), ...);
}

/// The handlers for this processor, of the best compiled instruction set. BASCULE_EMULATED_ISA selects a lesser one: avx2
/// or baseline. Empty if none fits the processor; then why_no_instruction_set() returns what to do, otherwise nothing.
const Registry& registry();
const char* instruction_set();
std::string_view why_no_instruction_set();

/// Handlers that run on any processor, for tests. Empty if they were not compiled.
const Registry& baseline_registry();

// Handler files that are compiled once, and those that are compiled for each instruction set.
#define BASCULE_COMMON_HANDLERS(FILE) \
    FILE(async)                       \
    FILE(calls)                       \
    FILE(cluster)                     \
    FILE(control)                     \
    FILE(exchange)                    \
    FILE(external)                    \
    FILE(heap_calls) FILE(small_formats) FILE(tensor_copies) FILE(video) FILE(textures) FILE(warpgroup_order)
#define BASCULE_HANDLERS(FILE) \
    FILE(arithmetic)           \
    FILE(floats)               \
    FILE(conversions)          \
    FILE(memory) FILE(atomics) FILE(tensor) FILE(tensor_memory) FILE(shuffles) FILE(warpgroup)
#define FILE(name) void register_##name(Registry& registry);
BASCULE_COMMON_HANDLERS(FILE)
namespace baseline {
BASCULE_HANDLERS(FILE)
}
namespace avx2 {
BASCULE_HANDLERS(FILE)
}
// Files that gain from AVX-512; the others use the AVX2 handlers.
#define BASCULE_WIDE_HANDLERS(FILE) FILE(arithmetic) FILE(floats) FILE(memory) FILE(shuffles)
namespace avx512 {
BASCULE_WIDE_HANDLERS(FILE)
}
#undef FILE

}  // namespace emulated::machine
