// What a handler sees: the running group of lanes of one warp. Plain data and no functions of the standard
// library: the handlers are compiled for several instruction sets, and an inline function must not leak from
// one into another.
#pragma once

#include <cstddef>
#include <cstdint>

#include "memory/memory.hpp"
#include "program/code.hpp"

namespace emulated::races {
class AccessLog;
}

namespace emulated::machine {

using program::Instruction;

using u8 = std::uint8_t;
using u16 = std::uint16_t;
using u32 = std::uint32_t;
using u64 = std::uint64_t;
using s8 = std::int8_t;
using s16 = std::int16_t;
using s32 = std::int32_t;
using s64 = std::int64_t;

struct Lanes;

/// Runs one instruction for the active lanes, or several. Returns the one to go on with, or null after
/// setting `Lanes::stop`.
using Handler = const Instruction* (*)(Lanes&, const Instruction*);

/// The allocation that an instruction touched last. Empty ones have bytes = 0, so every access misses.
struct AllocationCache {
    std::uint64_t base = 0;
    std::uint64_t bytes = 0;
    std::byte* host = nullptr;
    bool read_only = false;
    static constexpr std::uint8_t no_pattern = 4;
    std::uint8_t pattern = 0;   ///< how the lanes' addresses lay the last time (handlers/memory.cpp)
    std::uint8_t patience = 1;  ///< how often to take scattered addresses for granted
};

enum class Stop : std::uint8_t {
    none,
    reselect,         ///< other lanes wait at or before `pc`
    barrier,          ///< parked until the block arrives
    meeting,          ///< parked until the lanes of a shuffle or vote arrive
    cluster_barrier,  ///< parked until the cluster arrives
    waiting,          ///< what it asked for has not happened: others may have to run first
    parted,           ///< warps that ran in lockstep go on alone, at `pc` or after it
    exited,
    fault,
};

/// What went wrong in a handler; the warp makes a Fault of it.
struct LaneFault {
    enum class What : std::uint8_t {
        none,
        out_of_bounds,
        misaligned,
        read_only,
        trap,
        assertion,
        idle,       ///< the block makes no progress
        over_time,  ///< the grid has run for longer than it may
        cancelled,
        bad_barrier,
        bad_call,
        misuse,      ///< as Block::message says
        no_cluster,  ///< what a block alone may not do: Block::message
        stack,
        incomplete_warp,  ///< a matrix instruction without all lanes
        bad_free,
        bad_image,  ///< a texture or surface that is not what the kernel takes it for: Block::message
    };
    What what = What::none;
    std::uint32_t lanes = 0;  ///< that did it
    std::uint32_t pc = 0;
    std::uint64_t address = 0;  ///< of the first such lane
    std::uint32_t bytes = 0;
    bool write = false;
    const char* space = "";
};

struct Block;
struct Warp;

/// Owned by a worker, which sets it up for each warp it runs. Not thread-safe.
struct alignas(64) Lanes {
    std::byte* registers = nullptr;
    std::uint32_t mask = 0;  ///< active lanes
    /// Active lanes, and those whose registers are not read again: exited, or never there.
    std::uint32_t write_mask = 0;
    std::uint32_t dead = 0;
    std::uint32_t unguarded = 0;     ///< while guarded instructions run: the active lanes around them
    std::uint32_t depth = 0;         ///< of calls
    std::uint32_t yield_pc = ~0u;    ///< others wait here: stop at or after it
    std::uint32_t budget = 0;        ///< backward branches until the next look at the clock or at other lanes
    bool alone = true;               ///< no other group in the warp
    std::uint32_t alone_budget = 0;  ///< what `budget` begins with while no other group waits
    std::int64_t until_look = 0;     ///< so many branches and changes of groups later the watchdog looks
    bool rotated = false;            ///< runs out of order for a while, so that a lock's holder gets on
    std::uint32_t in_step = 0;       ///< further warps that run in lockstep with this one
    std::uint32_t file_bytes = 0;    ///< between their register files
    std::uint32_t went_on = 0;       ///< parted: so many of them have done the instruction at `pc`
    Stop stop = Stop::none;
    std::uint32_t pc = 0;  ///< where a stopped group continues
    std::uint32_t barrier = 0, barrier_count = 0;

    const Instruction* code = nullptr;
    const Instruction* alone_code = nullptr;  ///< of warps that are not in lockstep; otherwise `code`
    const std::uint32_t* lists = nullptr;
    AllocationCache* caches = nullptr;
    const memory::Memory* memory = nullptr;
    std::byte* shared = nullptr;
    std::byte* local = nullptr;  ///< of lane 0; the others follow at `local_bytes`
    const std::byte* parameters = nullptr;
    std::uint64_t shared_bytes = 0, local_bytes = 0, parameter_bytes = 0;
    Warp* warp = nullptr;
    Block* block = nullptr;
    int* wide_lock = nullptr;         ///< of atomics of 128 bits, for the whole process
    races::AccessLog* log = nullptr;  ///< of accesses to memory that others see; null: not asked for

    /// Where the lanes' accesses lie in this process: base + offset[lane]. Filled by locate().
    std::uintptr_t base = 0;
    alignas(64) std::uint64_t offset[32];
    /// Results of one instruction while only some lanes take them.
    alignas(64) std::byte aside[256];
    LaneFault fault;
};

/// For operations that a set of lanes does together: true when the running group has all of `required`, after
/// taking in those that wait here. Otherwise the group parks, and the handler returns null.
bool meet(Lanes& lanes, const Instruction* at, std::uint32_t required);

}  // namespace emulated::machine
