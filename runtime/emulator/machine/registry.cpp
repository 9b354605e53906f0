#include "machine/registry.hpp"

#include <algorithm>
#include <cstdlib>
#include <initializer_list>
#include <string_view>

namespace emulated::machine {
namespace {

// Handlers compiled for one instruction set, and those compiled once.
Registry handlers(std::initializer_list<void (*)(Registry&)> of_the_set) {
    Registry made;
    for (const auto add : of_the_set) add(made);
    for (const auto add : {register_exchange, register_calls, register_control, register_external,
                           register_heap_calls, register_small_formats, register_video, register_async,
                           register_cluster, register_tensor_copies, register_textures})
        add(made);
    return made;
}

struct InstructionSet {
    const char* name;
    bool (*is_here)();
    Registry (*handlers)();
};

#define AVX512(name) avx512::register_##name,
#define AVX2(name) avx2::register_##name,
#define BASELINE(name) baseline::register_##name,
// The compiled instruction sets, the best first (BASCULE_BASELINE in CMake).
constexpr InstructionSet instruction_sets[] = {
#if defined(BASCULE_EMULATED_AVX512)
    // AVX-512 slows earlier processors down, but not those with VBMI2 (Ice Lake, Zen 4 and later).
    {"AVX-512",
     [] {
         return __builtin_cpu_supports("avx512vbmi2") && __builtin_cpu_supports("avx512vl") &&
                __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw");
     },
     [] { return handlers({BASCULE_HANDLERS(AVX2) BASCULE_WIDE_HANDLERS(AVX512)}); }},
#endif
#if defined(BASCULE_EMULATED_AVX2)
    // Every processor with AVX2 has F16C, which clang 14 cannot test for.
    {"AVX2", [] { return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"); },
     [] { return handlers({BASCULE_HANDLERS(AVX2)}); }},
#endif
#if defined(BASCULE_EMULATED_BASELINE)
    {"baseline", [] { return true; }, [] { return handlers({BASCULE_HANDLERS(BASELINE)}); }},
#endif
};
#undef AVX512
#undef AVX2
#undef BASELINE

// The first set that the processor supports, or the one with this name.
const InstructionSet* find_set(std::string_view name) {
    const auto* found = std::ranges::find_if(instruction_sets, [&](const InstructionSet& set) {
        return (name.empty() || set.name == name) && set.is_here();
    });
    return found == std::ranges::end(instruction_sets) ? nullptr : found;
}

const InstructionSet* chosen_set() {
    const char* asked = std::getenv("BASCULE_EMULATED_ISA");
    const std::string_view name = asked ? asked : "";
    return find_set(name == "avx2" ? "AVX2" : name);
}

Registry handlers_of(const InstructionSet* set) { return set ? set->handlers() : Registry(); }

}  // namespace

std::size_t Registry::Hash::operator()(const program::Key& key) const noexcept {
    const std::size_t head = static_cast<std::size_t>(key.operation) << 16 |
                             static_cast<std::size_t>(key.type) << 8 | static_cast<std::size_t>(key.second);
    return (head * 0x9e3779b97f4a7c15ull) ^ key.flags.digest();
}

void Registry::add(Operation operation, Type type, Type second, const FlagSet& flags, Handler handler) {
    handlers_[{operation, type, second, flags}] = {handler, nullptr};
}

void Registry::add(Operation operation, Handler handler, const FlagSet& flags) {
    add(operation, Type::none, Type::none, flags, handler);
}

void Registry::add(Operation operation, Lockstep handler, const FlagSet& flags) {
    add(operation, Type::none, Type::none, flags, handler);
}

void Registry::add(Operation operation, Type type, Type second, const FlagSet& flags, Lockstep handler) {
    handlers_[{operation, type, second, flags}] = {handler.alone, handler.together};
}

Registry::Found Registry::find(const program::Key& key) const {
    const auto found = handlers_.find(key);
    return found == handlers_.end() ? Found{} : found->second;
}

const Registry& registry() {
    static const Registry& made =
        *new Registry(handlers_of(chosen_set()));  // workers may run until the very end
    return made;
}

const Registry& baseline_registry() {
    static const Registry& made = *new Registry(handlers_of(find_set("baseline")));
    return made;
}

const char* instruction_set() { return chosen_set() ? chosen_set()->name : "none"; }

std::string_view why_no_instruction_set() {
    if (chosen_set()) return "";
    if (find_set("AVX2") == nullptr && find_set("baseline") != nullptr)
        return "BASCULE_EMULATED_ISA is 'avx2', which this processor lacks; unset it";
    if (find_set(""))
        return "BASCULE_EMULATED_ISA is 'baseline', which this build of Bascule leaves out; unset it, or install with pip "
               "install . -C cmake.define.BASCULE_BASELINE=ON";
    return "this build of Bascule emulates GPUs only on processors with AVX2 and FMA, which this processor lacks; install "
           "it again on this machine, or with pip install . -C cmake.define.BASCULE_BASELINE=ON";
}

}  // namespace emulated::machine
