// Which handler runs which operation, for one instruction set.
#pragma once

#include <cstddef>
#include <string_view>
#include <unordered_map>

#include "machine/lanes.hpp"

namespace emulated::machine {

/// Filled once by the handler files, then read by any thread.
class Registry {
  public:
    void add(program::Operation operation, program::Type type, program::Type second,
             const program::FlagSet& flags, Handler handler);
    /// Null when there is none: a gap in the machine, which a test looks for.
    Handler find(const program::Key& key) const;

  private:
    struct Hash {
        std::size_t operator()(const program::Key& key) const noexcept;
    };
    std::unordered_map<program::Key, Handler, Hash> handlers_;
};

/// Calls visit.operator()<flag>() for each flag.
template <program::Flag... Flags, class Visit>
void for_flags(const Visit& visit) {
    (visit.template operator()<Flags>(), ...);
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

namespace baseline {
void register_arithmetic(Registry& registry);
void register_floats(Registry& registry);
void register_conversions(Registry& registry);
void register_memory(Registry& registry);
void register_atomics(Registry& registry);
void register_tensor(Registry& registry);
void register_tensor_memory(Registry& registry);
void register_shuffles(Registry& registry);
}  // namespace baseline
namespace avx2 {
void register_arithmetic(Registry& registry);
void register_floats(Registry& registry);
void register_conversions(Registry& registry);
void register_memory(Registry& registry);
void register_atomics(Registry& registry);
void register_tensor(Registry& registry);
void register_tensor_memory(Registry& registry);
void register_shuffles(Registry& registry);
}  // namespace avx2

}  // namespace emulated::machine
