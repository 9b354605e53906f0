// Which handler runs which operation, for one instruction set.
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

/// Filled once by the handler files, then read by any thread.
class Registry {
  public:
    void add(Operation operation, Type type, Type second, const FlagSet& flags, Handler handler);
    /// One for all types.
    void add(Operation operation, Handler handler, const FlagSet& flags = {});
    /// Null when there is none: a gap in the machine, which a test looks for.
    Handler find(const program::Key& key) const;

  private:
    struct Hash {
        std::size_t operator()(const program::Key& key) const noexcept;
    };
    std::unordered_map<program::Key, Handler, Hash> handlers_;
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

/// For this processor: AVX2 and FMA where it has them. BASCULE_EMULATED_ISA=baseline asks for the other.
/// Empty where neither was compiled for it: why_no_instruction_set() says what to do then, and nothing otherwise.
const Registry& registry();
const char* instruction_set();
std::string_view why_no_instruction_set();

/// For tests: what runs on any processor. Empty where it was not compiled.
const Registry& baseline_registry();

void register_async(Registry& registry);
void register_calls(Registry& registry);
void register_cluster(Registry& registry);
void register_control(Registry& registry);
void register_exchange(Registry& registry);
void register_external(Registry& registry);
void register_heap_calls(Registry& registry);
void register_small_formats(Registry& registry);
void register_video(Registry& registry);
void register_textures(Registry& registry);

// What is compiled for each instruction set.
#define BASCULE_HANDLERS(FILE) \
    FILE(arithmetic)           \
    FILE(floats) FILE(conversions) FILE(memory) FILE(atomics) FILE(tensor) FILE(tensor_memory) FILE(shuffles)
#define FILE(name) void register_##name(Registry& registry);
namespace baseline {
BASCULE_HANDLERS(FILE)
}
namespace avx2 {
BASCULE_HANDLERS(FILE)
}
#undef FILE

}  // namespace emulated::machine
