// The state that a handler sees: the running group of lanes of one warp. It is plain data without standard library
// functions, because handlers are compiled for several instruction sets and inline functions must not be shared between
// them.
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

/// Runs one or more instructions for the active lanes. Returns the instruction to continue with, or null after setting
/// `Lanes::stop`.
using Handler = const Instruction* (*)(Lanes&, const Instruction*);

/// The allocation that an instruction accessed last. If empty, `bytes` is 0, so that every access misses.
struct AllocationCache {
    std::uint64_t base = 0;
    std::uint64_t bytes = 0;
    std::byte* host = nullptr;
    bool read_only = false;
    static constexpr std::uint8_t no_pattern = 4;
    std::uint8_t pattern = 0;   ///< the last pattern of the lanes' addresses (handlers/memory.cpp)
    std::uint8_t patience = 1;  ///< how many scattered accesses until patterns are tried again
};

enum class Stop : std::uint8_t {
    none,
    reselect,         ///< another group may run first; this one continues at `pc`
    barrier,          ///< parked until the block arrives
    meeting,          ///< parked until the lanes of a shuffle or vote arrive
    cluster_barrier,  ///< parked until the cluster arrives
    registers,        ///< parked until other warps release registers
    waiting,          ///< the group waits for something: others may have to run first
    parted,           ///< warps in lockstep continue alone, at `pc` or after it
    exited,
    fault,
};

/// A fault in a handler, from which the worker makes a Fault.
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
        misuse,      ///< Block::message says what
        no_cluster,  ///< needs a cluster; Block::message says why
        stack,
        incomplete_warp,  ///< a matrix instruction without all lanes
        bad_free,
        bad_image,   ///< not a texture or surface of the expected kind: Block::message
        bad_tensor,  ///< a wrong use of a tensor map: Block::message
    };
    What what = What::none;
    std::uint32_t lanes = 0;  ///< that caused it
    std::uint32_t pc = 0;
    std::uint64_t address = 0;  ///< of the first such lane
    std::uint32_t bytes = 0;
    bool write = false;
    const char* space = "";
};

struct Block;
struct Warp;
class Observers;

/// Owned by a worker, which initialises it for each warp that it runs. Not thread-safe.
struct alignas(64) Lanes {
    std::byte* registers = nullptr;
    std::uint32_t mask = 0;  ///< active lanes
    /// Active lanes and those whose registers are not read again because they exited or never existed.
    std::uint32_t write_mask = 0;
    std::uint32_t dead = 0;
    std::uint32_t unguarded = 0;     ///< the active lanes outside the guarded instructions that run
    std::uint32_t depth = 0;         ///< call depth
    std::uint32_t yield_pc = ~0u;    ///< other lanes wait here: stop at or after it
    std::uint32_t budget = 0;        ///< backward branches until the next look at the clock or other lanes
    bool alone = true;               ///< no other group in the warp
    std::uint32_t alone_budget = 0;  ///< the value of `budget` while no other group waits
    std::int64_t until_look = 0;     ///< branches and group changes until the watchdog checks the clock
    bool rotated = false;            ///< runs out of order so that the holder of a lock makes progress
    std::uint32_t in_step = 0;       ///< further warps that run in lockstep with this one
    std::uint32_t file_bytes = 0;    ///< distance between their register files
    std::uint32_t went_on = 0;       ///< after Stop::parted: warps that have executed the instruction at `pc`
    Stop stop = Stop::none;
    std::uint32_t pc = 0;  ///< where a stopped group continues
    std::uint32_t barrier = 0, barrier_count = 0;

    const Instruction* code = nullptr;
    const Instruction* alone_code = nullptr;  ///< for warps outside lockstep; otherwise equals `code`
    const std::uint32_t* lists = nullptr;
    AllocationCache* caches = nullptr;
    const memory::Memory* memory = nullptr;
    std::byte* shared = nullptr;
    std::byte* local = nullptr;  ///< of lane 0; other lanes follow at multiples of `local_bytes`
    const std::byte* parameters = nullptr;
    std::uint64_t shared_bytes = 0, local_bytes = 0, parameter_bytes = 0;
    Warp* warp = nullptr;
    Block* block = nullptr;
    int* wide_lock = nullptr;         ///< for 128-bit atomics, one per process
    races::AccessLog* log = nullptr;  ///< receives accesses to memory that others see; null if not logged
    Observers* observers = nullptr;   ///< null if nothing is checked

    /// Host addresses of the lanes' accesses: base + offset[lane]. Filled by locate().
    std::uintptr_t base = 0;
    alignas(64) std::uint64_t offset[32];
    /// Results of an instruction before they are copied to the active lanes.
    alignas(64) std::byte aside[256];
    LaneFault fault;
};

/// For operations that need several lanes at once. Returns true if the running group, including lanes that waited here, has
/// all of `required`. Otherwise the group parks and the handler returns null.
bool meet(Lanes& lanes, const Instruction* at, std::uint32_t required);

}  // namespace emulated::machine
