// Warps as groups of lanes that run together, and the block they belong to.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "machine/grid.hpp"
#include "machine/lanes.hpp"
#include "machine/transfers.hpp"
#include "machine/watchdog.hpp"

namespace emulated::machine {

/// Lanes of one warp that stand at the same instruction and call depth, and wait for their turn or for
/// others.
struct Group {
    enum class State : std::uint8_t { ready, barrier, meeting, cluster_barrier };
    std::uint32_t pc = 0;
    std::uint32_t mask = 0;
    std::uint32_t depth = 0;
    State state = State::ready;
    std::uint32_t barrier = 0;
    std::uint32_t barrier_count = 0;  ///< of threads; 0: the whole block
    std::uint64_t stamp = 0;          ///< when it last ran
};

/// One warp of a block. Owned and run by one worker.
struct Warp {
    std::uint32_t index = 0;
    std::uint32_t exists = 0;  ///< lanes that have a thread
    std::uint32_t exited = 0;
    std::uint32_t met_after_exits = ~0u;  ///< meeting groups were tried again when these lanes had exited
    std::byte* registers = nullptr;
    std::vector<Group> groups;   ///< those that do not run
    bool has_transfers = false;  ///< it has begun asynchronous copies, and what follows is in use
    LaneCopies copies;
    std::array<std::uint32_t, 32> bulk_groups{};  ///< that each lane has committed
    /// Lanes that have arrived at the cluster's barrier and not waited since; of those, whose phase was odd.
    std::uint32_t cluster_arrived = 0, arrived_odd = 0;
};

/// What bar.red counts of the threads that have arrived.
struct Votes {
    std::uint32_t threads = 0, yes = 0;
};

struct Cluster;

/// A test of an mbarrier's phase that was not over.
struct OpenPhase {
    std::uint64_t address = 0;
    std::uint32_t pending = 0;
    std::int64_t bytes = 0;
};

/// The block that a worker runs.
struct Block {
    GridState* grid = nullptr;
    Dim3 index;
    Cluster* cluster = nullptr;  ///< it is in one, if alone
    std::uint32_t rank = 0;      ///< in the cluster
    std::uint32_t threads = 0;
    std::array<std::uint32_t, 16> arrived{};  ///< by bar.arrive, which does not wait
    std::array<Votes, 16> votes{};            ///< of those that wait
    std::array<Votes, 16> counted{};          ///< of the last time everybody had arrived
    std::uint64_t barriers_passed = 0;
    Watchdog watchdog;
    bool warps_take_turns = false;        ///< a warp that only repeats itself lets the others run
    std::uint32_t most_rounds = ~0u;      ///< backward branches of a group before it lets others run
    bool counting = false;                ///< a fault was found; the other warps run on only to be counted
    std::optional<OpenPhase> open_phase;  ///< the last test of an mbarrier, if it failed
    std::string message;                  ///< of an assertion, or of a misuse, or of a misused texture
    std::string asserted_file;            ///< where it stands
    std::uint32_t asserted_line = 0;
};

/// Runs every group of the warp until each has exited or waits for other warps: at a barrier, or repeating itself
/// where warps take turns. False: lanes.fault says why.
bool run_warp(Lanes& lanes, Warp& warp);

/// This group of the warp is the one that runs. It stops for others at `yield_pc`.
void begin_group(Lanes& lanes, const Warp& warp, const Group& chosen, bool alone, std::uint32_t yield_pc);

/// These lanes of the running group go on at `pc` as a group of their own. Those that stay are the caller's to set.
inline void part(Lanes& s, std::uint32_t lanes, std::uint32_t pc) {
    Group other;
    other.pc = pc;
    other.mask = lanes;
    other.depth = s.depth;
    s.warp->groups.push_back(other);
    s.alone = false;
}

/// A fault of `lanes` that this sentence describes.
const Instruction* misuse(Lanes& s, const Instruction* i, std::uint32_t lanes, std::string message,
                          LaneFault::What what = LaneFault::What::misuse);

/// Backward branches and calls between two looks at the clock at most, however short the code. Longer code looks
/// after fewer, so that no more than `instructions_between_looks` or so run in between.
inline constexpr std::uint32_t most_alone_budget = 1u << 16;
inline constexpr std::uint32_t instructions_between_looks = 1u << 23;
/// The same between two looks at the other groups of the warp.
inline constexpr std::uint32_t shared_budget = 1u << 10;
/// And where blocks wait for each other: a group that repeats itself mostly waits for a block that does
/// not run, so at first it gives way soon, and later the longer nothing else happens.
inline constexpr std::uint32_t least_cooperative_budget = 1u << 3, most_cooperative_budget = 1u << 10;

}  // namespace emulated::machine
