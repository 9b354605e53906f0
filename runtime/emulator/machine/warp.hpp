// Warps as groups of lanes that run together, and the block that they belong to.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "machine/grid.hpp"
#include "machine/lanes.hpp"
#include "machine/transfers.hpp"
#include "machine/warpgroups.hpp"
#include "machine/watchdog.hpp"

namespace emulated::machine {

/// Lanes of one warp at the same instruction and call depth, which wait to run or wait for other lanes.
struct Group {
    enum class State : std::uint8_t { ready, barrier, meeting, cluster_barrier, registers };
    std::uint32_t pc = 0;
    std::uint32_t mask = 0;
    std::uint32_t depth = 0;
    State state = State::ready;
    std::uint32_t barrier = 0;
    std::uint32_t barrier_count =
        0;                    ///< threads; 0: the whole block. Of State::registers: how many it waits for
    std::uint64_t stamp = 0;  ///< when it last ran
};

/// One warp of a block. Owned and run by one worker.
struct Warp {
    std::uint32_t index = 0;
    std::uint32_t exists = 0;  ///< lanes that have a thread
    std::uint32_t exited = 0;
    std::uint32_t met_after_exits = ~0u;  ///< the value of `exited` when waiting groups were last tried
    std::byte* registers = nullptr;
    std::uint32_t followed = 0;  ///< the observers that see all its instructions (Observer::follow)
    std::vector<Group> groups;   ///< all groups that are not running
    bool has_transfers = false;  ///< it began asynchronous copies; the next two members are in use
    LaneCopies copies;
    std::array<std::uint32_t, 32> bulk_groups{};  ///< groups that each lane has committed
    /// Lanes that arrived at the cluster's barrier and have not waited since; those of them that arrived in an odd phase.
    std::uint32_t cluster_arrived = 0, arrived_odd = 0;
    std::unique_ptr<WarpgroupProducts> products;  ///< null before the warp's first wgmma instruction
    std::uint32_t thread_registers = 0;           ///< since setmaxnreg; 0: as at the start
};

/// The counts of bar.red over the threads that have arrived.
struct Votes {
    std::uint32_t threads = 0, yes = 0;
};

struct Cluster;

/// A failed test of an mbarrier's phase.
struct OpenPhase {
    std::uint64_t address = 0;
    std::uint32_t pending = 0;
    std::int64_t bytes = 0;
};

/// The block that a worker runs.
struct Block {
    GridState* grid = nullptr;
    Dim3 index;
    Cluster* cluster = nullptr;  ///< each block has one, possibly alone
    std::uint32_t rank = 0;      ///< in the cluster
    std::uint32_t threads = 0;
    std::array<std::uint32_t, 16> arrived{};  ///< by bar.arrive, which does not wait
    std::array<Votes, 16> votes{};            ///< of waiting threads
    std::array<Votes, 16> counted{};          ///< of the last completed phase
    std::uint64_t barriers_passed = 0;
    std::uint32_t free_registers = 0;  ///< per thread of a warp: released by setmaxnreg.dec
    Watchdog watchdog;
    bool warps_take_turns = false;        ///< a warp that only loops lets others run
    std::uint32_t most_rounds = ~0u;      ///< backward branches of a group before it lets others run
    bool counting = false;                ///< a fault was found; other warps run only to be counted
    std::optional<OpenPhase> open_phase;  ///< the last test of an mbarrier, if it failed
    std::string message;                  ///< text of an assertion, a misuse or a texture error
    std::string asserted_file;            ///< the file of the assertion
    std::uint32_t asserted_line = 0;
};

/// Runs every group of the warp until each has exited or waits for other warps, at a barrier or in a loop. Returns false
/// after a fault, which is in lanes.fault.
bool run_warp(Lanes& lanes, Warp& warp);

/// Makes this group the running one. It stops for other groups at `yield_pc`.
void begin_group(Lanes& lanes, const Warp& warp, const Group& chosen, bool alone, std::uint32_t yield_pc);

/// Splits off lanes of the running group as a group that continues at `pc`. The caller updates the remaining lanes.
inline void part(Lanes& s, std::uint32_t lanes, std::uint32_t pc) {
    Group other;
    other.pc = pc;
    other.mask = lanes;
    other.depth = s.depth;
    s.warp->groups.push_back(other);
    s.alone = false;
}

/// Reports a fault of `lanes`, described by `message`.
const Instruction* misuse(Lanes& s, const Instruction* i, std::uint32_t lanes, std::string message,
                          LaneFault::What what = LaneFault::What::misuse);

/// The maximum number of backward branches and calls between two looks at the clock. Long code looks more often, so that
/// about `instructions_between_looks` instructions run in between at most.
inline constexpr std::uint32_t most_alone_budget = 1u << 16;
inline constexpr std::uint32_t instructions_between_looks = 1u << 23;
/// The same between two looks at the other groups of the warp.
inline constexpr std::uint32_t shared_budget = 1u << 10;
/// The same for blocks that wait for each other. A looping group mostly waits for a block that does not run, so the
/// budget starts small; it doubles in each turn in which the block passes no barrier.
inline constexpr std::uint32_t least_cooperative_budget = 1u << 3, most_cooperative_budget = 1u << 10;

}  // namespace emulated::machine
