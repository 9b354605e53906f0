#include "machine/registry.hpp"

#include <cstdlib>
#include <initializer_list>
#include <string_view>

namespace emulated::machine {
namespace {

bool wants_avx2() {
#if defined(BASCULE_EMULATED_AVX2)
    const char* asked = std::getenv("BASCULE_EMULATED_ISA");
    if (asked && std::string_view(asked) == "baseline") return false;
    // Every processor with AVX2 has F16C, which clang 14 cannot ask for.
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
#else
    return false;
#endif
}

// What is compiled for one instruction set, and the rest.
Registry handlers(std::initializer_list<void (*)(Registry&)> of_the_set) {
    Registry made;
    for (const auto add : of_the_set) add(made);
    for (const auto add :
         {register_exchange, register_calls, register_control, register_external, register_heap_calls,
          register_small_formats, register_video, register_async, register_cluster, register_textures})
        add(made);
    return made;
}

Registry baseline_handlers() {
    return handlers({baseline::register_arithmetic, baseline::register_floats, baseline::register_conversions,
                     baseline::register_memory, baseline::register_atomics, baseline::register_tensor,
                     baseline::register_tensor_memory, baseline::register_shuffles});
}

Registry best_handlers() {
#if defined(BASCULE_EMULATED_AVX2)
    if (wants_avx2()) {
        return handlers({avx2::register_arithmetic, avx2::register_floats, avx2::register_conversions,
                         avx2::register_memory, avx2::register_atomics, avx2::register_tensor,
                         avx2::register_tensor_memory, avx2::register_shuffles});
    }
#endif
    return baseline_handlers();
}

}  // namespace

std::size_t Registry::Hash::operator()(const program::Key& key) const noexcept {
    const std::size_t head = static_cast<std::size_t>(key.operation) << 16 |
                             static_cast<std::size_t>(key.type) << 8 | static_cast<std::size_t>(key.second);
    return (head * 0x9e3779b97f4a7c15ull) ^ key.flags.digest();
}

void Registry::add(program::Operation operation, program::Type type, program::Type second,
                   const program::FlagSet& flags, Handler handler) {
    handlers_[{operation, type, second, flags}] = handler;
}

Handler Registry::find(const program::Key& key) const {
    const auto found = handlers_.find(key);
    return found == handlers_.end() ? nullptr : found->second;
}

const Registry& registry() {
    static const Registry& made = *new Registry(best_handlers());  // a worker may run at the very end
    return made;
}

const Registry& baseline_registry() {
    static const Registry& made = *new Registry(baseline_handlers());
    return made;
}

const char* instruction_set() noexcept { return wants_avx2() ? "AVX2" : "baseline"; }

}  // namespace emulated::machine
