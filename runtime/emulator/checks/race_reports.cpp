#include "checks/race_reports.hpp"

#include <algorithm>
#include <bit>
#include <string>

#include <fmt/format.h>

#include "machine/observer.hpp"

namespace emulated::checks {
namespace {

using program::Flag;
using program::Instruction;
using program::Operation;

// The plain load before a loop of compare-and-swap, which compares with what was loaded: CUDA's manual writes it so.
bool is_guess(const program::Code& code, std::uint32_t pc) {
    const Instruction& load = code.instructions[pc];
    if (code.keys[pc].operation != Operation::ld || load.count != 1) return false;
    constexpr std::size_t farthest = 128;
    const std::size_t end = std::min(code.keys.size(), pc + farthest);
    for (std::size_t i = pc + 1; i < end; ++i) {
        const Instruction& cas = code.instructions[i];
        if (code.keys[i].operation == Operation::atom && code.keys[i].flags.has(Flag::cas) &&
            cas.operand[1] == load.operand[1] && cas.immediate == load.immediate &&
            ((cas.bits ^ load.bits) & Instruction::has_base) == 0 &&
            ((cas.bits & Instruction::has_base) == 0 || cas.operand[2] == load.operand[2]))
            return true;
    }
    return false;
}

// Cooperative groups exchange values of a warp without __syncwarp; their users cannot change it.
bool is_of_groups(const program::Code& code, std::uint32_t pc) {
    return code.files[code.lines[pc].file].find("cooperative_groups") != std::string::npos;
}

machine::Dim3 position(std::uint64_t linear, const machine::Dim3& shape) {
    return {static_cast<std::uint32_t>(linear % shape.x),
            static_cast<std::uint32_t>(linear / shape.x % shape.y),
            static_cast<std::uint32_t>(linear / shape.x / shape.y)};
}

std::string bytes_text(const program::Code& code, std::uint32_t pc) {
    const program::Key& key = code.keys[pc];
    const Instruction& i = code.instructions[pc];
    switch (key.operation) {
        case Operation::ld:
        case Operation::ld_used:
        case Operation::st:
        case Operation::atom: {
            const std::uint32_t count = key.operation == Operation::atom ? 1 : i.count;
            const std::uint32_t bytes = ptx::bytes_of(key.type) * count;
            return bytes == 1 ? "1 byte" : fmt::format("{} bytes", bytes);
        }
        case Operation::atom_wide:
            return "16 bytes";
        case Operation::mbarrier:
        case Operation::copy_arrive:
            return "an mbarrier";
        default:
            return "bytes";
    }
}

bool copies(const program::Code& code, std::uint32_t pc) {
    const Operation operation = code.keys[pc].operation;
    return operation == Operation::copy_async || operation == Operation::bulk_copy ||
           operation == Operation::bulk_reduce;
}

std::string deed_text(const program::Code& code, const Accesses& accesses) {
    const std::string bytes = bytes_text(code, accesses.pc);
    const Operation operation = code.keys[accesses.pc].operation;
    if (operation == Operation::mbarrier || operation == Operation::copy_arrive)
        return (accesses.kind & Accesses::strong) != 0 ? "used " + bytes : "initialised " + bytes;
    if ((accesses.kind & Accesses::is_atomic) != 0) return "changed " + bytes + " atomically";
    if (copies(code, accesses.pc))
        return (accesses.kind & Accesses::writes) != 0 ? "copied to " + bytes : "copied from " + bytes;
    return ((accesses.kind & Accesses::writes) != 0 ? "wrote " : "read ") + bytes;
}

}  // namespace

Finding describe_race(const program::Code& code, const machine::LaunchRequest& request,
                      const Accesses& earlier, const Accesses& mine, std::uint64_t at, bool is_shared) {
    const auto deed = [&](const Accesses& of, unsigned lane) {
        Deed made;
        static_cast<machine::FaultPlace&>(made) =
            machine::place_of(code, request.block, of.pc, 32u * of.warp + lane);
        made.block = position(of.block, request.grid);
        made.what = deed_text(code, of);
        return made;
    };
    const bool same_block = earlier.block == mine.block, same_warp = same_block && earlier.warp == mine.warp;
    const std::uint32_t others = same_warp ? earlier.lanes & ~mine.lanes : earlier.lanes;
    Finding made;
    made.check = is_shared ? Check::shared_races : Check::global_races;
    made.pc = mine.pc;
    made.other_pc = earlier.pc;
    made.first = deed(mine, static_cast<unsigned>(std::countr_zero(mine.lanes)));
    made.other = deed(earlier, static_cast<unsigned>(std::countr_zero(others)));
    const bool other_writes = (earlier.kind & Accesses::writes) != 0;
    const bool both_strong = (mine.kind & earlier.kind & Accesses::strong) != 0;
    const bool one_instruction = same_warp && mine.pc == earlier.pc && mine.epoch == earlier.epoch &&
                                 (mine.kind & Accesses::writes) != 0;
    made.first.what +=
        fmt::format(" of {} memory, unordered with {} that {} them,", is_shared ? "shared" : "global",
                    same_warp    ? "a thread of its warp"
                    : same_block ? "a thread of its block"
                                 : "a thread of another block",
                    other_writes ? "wrote" : "read");
    made.address = is_shared ? at + static_cast<unsigned>(std::countr_zero(unsigned{mine.bytes})) : at;
    made.bytes = static_cast<std::uint32_t>(std::popcount(unsigned{mine.bytes}));
    made.space = is_shared ? "shared" : "global";
    if (one_instruction)
        made.advice =
            "which of the different values stays is undefined; let one thread write, or use an atomic operation";
    else if (copies(code, mine.pc) || copies(code, earlier.pc))
        made.advice = "wait for the asynchronous copy, and let the threads that use its data wait for that";
    else if (both_strong)
        made.advice =
            "operations of block scope do not order blocks; use the operation without _block or .cta";
    else if (same_warp)
        made.advice = "put __syncwarp() between the two accesses";
    else if (same_block)
        made.advice = "put __syncthreads() between the two accesses, or make both atomic";
    else if (is_shared)
        made.advice = "put cluster.sync() between the two accesses";
    else
        made.advice =
            "make both accesses atomic, or hand the data over: __threadfence() after the first access and before a "
            "strong write to a flag, and after the strong read of the flag and before the second access";
    return made;
}

bool is_intended(const program::Code& code, const Accesses& earlier, const Accesses& mine) {
    if (is_of_groups(code, mine.pc) && is_of_groups(code, earlier.pc)) return true;
    const bool has_atomic = ((mine.kind | earlier.kind) & Accesses::is_atomic) != 0;
    return has_atomic && (is_guess(code, mine.pc) || is_guess(code, earlier.pc));
}

}  // namespace emulated::checks
