// The table agrees with ptxas of CUDA 13.0, as tests/emulator/ptxas.py checks. Only requirements beyond PTX 6.3 and
// sm_75 are listed.
#include "program/table/versions.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace emulated::program {
namespace {

/// One requirement of instructions that begin with `name` and have all modifiers of `parts`, but none of `without`.
struct Need {
    std::string_view name, parts;
    int version;
    int architecture = 0;
    std::string_view without = {};
};

// clang-format off
constexpr Need needs[] = {
    // types
    {"", "bf16", 70, 80}, {"", "bf16x2", 70, 80}, {"", "tf32", 70, 80}, {"", "b128", 83}, {"", "b128 sys", 84},
    // modifiers of any instruction
    {"", "NaN", 70, 80}, {"", "relu", 70, 80}, {"", "xorsign", 72, 86}, {"", "oob", 81, 90}, {"", "mmio", 82},
    {"", "cluster", 78, 90}, {"", "shared::cluster", 78, 90}, {"", "shared::cta", 78}, {"", "param::entry", 83},
    {"", "L1::evict_first", 74}, {"", "L1::evict_last", 74}, {"", "L1::evict_normal", 74}, {"", "L1::evict_unchanged", 74},
    {"", "L1::no_allocate", 74}, {"", "L2::64B", 74}, {"", "L2::128B", 74}, {"", "L2::256B", 74, 80},
    {"", "L2::cache_hint", 74, 80},
    // arithmetic
    {"add", "bf16", 78, 90}, {"add", "bf16x2", 78, 90}, {"sub", "bf16", 78, 90}, {"sub", "bf16x2", 78, 90},
    {"mul", "bf16", 78, 90}, {"mul", "bf16x2", 78, 90}, {"min", "f16", 70, 80}, {"min", "f16x2", 70, 80},
    {"max", "f16", 70, 80}, {"max", "f16x2", 70, 80}, {"min", "s16x2", 80, 90}, {"min", "u16x2", 80, 90},
    {"max", "s16x2", 80, 90}, {"max", "u16x2", 80, 90}, {"add", "s16x2", 80, 90}, {"add", "u16x2", 80, 90},
    {"min", "relu s32", 80, 90}, {"max", "relu s32", 80, 90}, {"abs", "f16", 65}, {"abs", "f16x2", 65}, {"ex2", "f16", 70},
    {"ex2", "f16x2", 70}, {"ex2", "bf16", 78, 90}, {"ex2", "bf16x2", 78, 90}, {"tanh", "", 70}, {"tanh", "bf16", 78, 90},
    {"tanh", "bf16x2", 78, 90}, {"szext", "", 76}, {"bmsk", "", 76}, {"set", "bf16", 78, 90}, {"set", "bf16x2", 78, 90},
    {"setp", "bf16", 78, 90}, {"setp", "bf16x2", 78, 90}, {"set", "s16.f16", 65}, {"set", "u16.f16", 65},
    {"set", "s32.f16", 65}, {"set", "u32.f16", 65}, {"set", "s32.f16x2", 65}, {"set", "u32.f16x2", 65},
    // conversions
    {"cvt", "bf16", 78, 90, "bf16.f32 f32.bf16"}, {"cvt", "f32.bf16 ftz", 78}, {"cvt", "tf32 rz", 78, 90},
    {"cvt", "tf32 rn", 78, 90}, {"cvt", "f16x2.f32", 70, 80}, {"cvt", "e4m3x2", 78, 89}, {"cvt", "e5m2x2", 78, 89},
    {"cvt.pack", "", 65}, {"cvt", "satfinite f16.f32", 81}, {"cvt", "satfinite f16x2.f32", 81},
    {"cvt", "satfinite bf16.f32", 81}, {"cvt", "satfinite bf16x2.f32", 81}, {"cvt", "satfinite tf32.f32", 81},
    {"cvta", "param", 77}, {"cvta", "param::entry", 83}, {"isspacep", "param", 77},
    // memory
    {"atom", "bf16", 78, 90}, {"atom", "bf16x2", 78, 90}, {"red", "bf16", 78, 90}, {"red", "bf16x2", 78, 90},
    {"atom", "b128", 83, 90}, {"atom", "v2", 81, 90}, {"atom", "v4", 81, 90}, {"atom", "v8", 81, 90}, {"red", "v2", 81, 90},
    {"red", "v4", 81, 90}, {"red", "v8", 81, 90}, {"red.async", "", 81, 90}, {"st.async", "", 81, 90},
    {"prefetch", "L2::evict_last", 74, 80}, {"prefetch", "L2::evict_normal", 74, 80}, {"applypriority", "", 74, 80},
    {"discard", "", 74, 80}, {"createpolicy", "", 74, 80}, {"alloca", "", 73}, {"stacksave", "", 73},
    {"stackrestore", "", 73},
    // between threads, order
    {"redux", "", 70, 80}, {"bar.cta", "", 78}, {"barrier.cta", "", 78}, {"elect", "", 80, 90}, {"fence.proxy", "", 75},
    {"fence.proxy.async", "", 80, 90}, {"fence.mbarrier_init", "", 80, 90}, {"fence", "sync_restrict::shared::cta", 86, 90}, {"fence", "sync_restrict::shared::cluster", 86, 90},
    {"barrier.cluster", "acquire", 80}, {"barrier.cluster", "release", 80}, {"barrier.cluster", "relaxed", 80},
    {"mapa", "", 78, 90}, {"getctarank", "", 78, 90}, {"griddepcontrol", "", 78, 90},
    // asynchronous copies, barriers in shared memory
    {"cp.async", "", 70, 80}, {"cp.async.bulk", "", 80, 90}, {"cp.reduce", "", 80, 90}, {"cp.async.bulk.shared::cta", "", 86},
    {"cp.async.bulk.tensor", "shared::cta mbarrier::complete_tx::bytes", 86},
    {"prefetch", "tensormap", 80, 90}, {"fence", "tensormap::generic", 83, 90}, {"tensormap", "", 83, 90},
    {"mbarrier", "", 70, 80}, {"mbarrier", "parity", 71}, {"mbarrier.try_wait", "", 78, 90}, {"mbarrier", "expect_tx", 80, 90},
    {"mbarrier", "complete_tx", 80, 90}, {"mbarrier", "cta", 80}, {"mbarrier", "cluster", 80}, {"mbarrier", "acquire", 80},
    {"mbarrier", "release", 80}, {"mbarrier.arrive", "relaxed", 86, 90}, {"mbarrier.arrive_drop", "relaxed", 86, 90},
    {"mbarrier.test_wait", "relaxed", 86, 90}, {"mbarrier.try_wait", "relaxed", 86, 90}, {"mbarrier", "shared::cluster", 80, 90},
    // matrices of a warp
    {"ldmatrix", "", 65}, {"movmatrix", "", 78}, {"stmatrix", "", 78, 90}, {"mma", "m16n8k8", 65}, {"mma", "m8n8k16", 65},
    {"mma", "m8n8k32", 65}, {"mma", "m8n8k128", 70}, {"mma", "m16n8k16", 70, 80}, {"mma", "m16n8k32", 70, 80},
    {"mma", "m16n8k64", 70, 80}, {"mma", "m16n8k128", 70, 80}, {"mma", "m16n8k256", 70, 80}, {"mma", "m16n8k4", 70, 80},
    {"mma", "and", 71, 80}, {"mma", "f64", 70, 80}, {"mma", "m16n8k4 f64", 78, 90}, {"mma", "m16n8k8 f64", 78, 90},
    {"mma", "m16n8k16 f64", 78, 90}, {"mma", "e4m3", 84, 89}, {"mma", "e5m2", 84, 89}, {"mma.sp", "", 71, 80},
    {"mma.sp::ordered_metadata", "", 85, 80}, {"wmma", "f64", 70, 80}, {"wmma.mma", "and", 71, 80},
};
// clang-format on

/// Whether `modifier`, which may be two types with a dot between, stands in the opcode as a whole.
bool has_part(std::string_view opcode, std::string_view modifier) {
    for (std::size_t at = opcode.find(modifier); at != opcode.npos; at = opcode.find(modifier, at + 1)) {
        const std::size_t end = at + modifier.size();
        if (at > 0 && opcode[at - 1] == '.' && (end == opcode.size() || opcode[end] == '.')) return true;
    }
    return false;
}

template <class Test>
bool all_words(std::string_view words, const Test& test) {
    while (!words.empty()) {
        const std::string_view word = words.substr(0, words.find(' '));
        if (!test(word)) return false;
        words.remove_prefix(std::min(words.size(), word.size() + 1));
    }
    return true;
}

bool applies(const Need& need, std::string_view opcode) {
    if (!opcode.starts_with(need.name)) return false;
    if (!need.name.empty() && opcode.size() > need.name.size() && opcode[need.name.size()] != '.')
        return false;
    return all_words(need.parts, [&](std::string_view part) { return has_part(opcode, part); }) &&
           all_words(need.without, [&](std::string_view part) { return !has_part(opcode, part); });
}

}  // namespace

std::string why_too_new(std::string_view opcode, const Dialect& dialect) {
    for (const Need& need : needs) {
        const bool old = dialect.version < need.version;
        if ((!old && dialect.architecture >= need.architecture) || !applies(need, opcode)) continue;
        return old ? fmt::format("{} needs PTX of .version {}.{} or newer", opcode, need.version / 10,
                                 need.version % 10)
                   : fmt::format("{} needs .target sm_{} or newer", opcode, need.architecture);
    }
    return {};
}

}  // namespace emulated::program
