// What an observer sees of a kernel: instructions before and after a warp executes them, blocks, and barriers. Checks and the
// profiler are observers (checks/). Handlers know nothing of them.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "machine/grid.hpp"
#include "machine/lanes.hpp"

namespace emulated::machine {

struct Cluster;

/// The memory that an instruction reads or writes: `bytes` at the address of each lane in `lanes`.
struct MemoryAccess {
    std::uint32_t lanes = 0;
    std::uint32_t bytes = 0;
    bool reads = false, writes = false;
    bool is_atomic = false;
    /// Another unit than the thread accesses it: cp.async, bulk copies, tensor copies, wgmma. The address is that of the
    /// first byte, and `bytes` may be 0 if only the instruction knows them.
    bool is_async = false;
    std::uint64_t address
        [32];  ///< as kernels see it; generic addresses of shared and local memory are in their windows
};

/// One execution of an instruction by the active lanes of a warp.
struct Execution {
    Lanes& lanes;
    const program::Code& code;
    std::uint32_t pc = 0;
    /// The lanes that execute it. After the instruction, those that executed it together, which may be more if it gathers
    /// lanes (shfl, vote, match, redux, bar.warp.sync).
    std::uint32_t mask = 0;
    /// One for ld, st, atom and the rows of a matrix (ldmatrix, wmma), two for cp.async, otherwise none.
    std::span<const MemoryAccess> accesses{};

    const Instruction& instruction() const { return code.instructions[pc]; }
    const program::Key& key() const { return code.keys[pc]; }
    const program::Code::Operands& operands() const { return code.operands[pc]; }
    const program::Code::Line& line() const { return code.lines[pc]; }
    /// The linear index of a lane's thread in its block.
    std::uint32_t thread(unsigned lane) const;
};

/// Called by the one thread that runs the grid. Several blocks run in turns if the grid is cooperative or has clusters, so
/// state of a block is kept by Block or Warp, whose addresses are unique while the block runs.
class Observer {
  public:
    virtual ~Observer() = default;

    /// True if it wants to see this instruction of each warp: `before` or `after` are called. It depends only on the code and
    /// on the kind of observer.
    virtual bool sees_before(const program::Code&, std::uint32_t) const { return true; }
    virtual bool sees_after(const program::Code&, std::uint32_t) const { return true; }

    /// A block starts. `lanes` has its shared and local memory.
    virtual void begin_block(const Block&, const Lanes&) {}
    /// These warps of the block start. Warps that cannot wait for each other start one after another.
    virtual void begin_warps(const Block&, std::span<const Warp>) {}
    virtual void before(const Execution&) {}
    /// Not called for an instruction that faulted, or whose lanes wait for others and will execute it again.
    virtual void after(const Execution&) {}
    /// The threads that wait at barrier `id` (Group::State::barrier) go on.
    virtual void pass_barrier(const Block&, std::span<const Warp>, std::uint32_t) {}
    /// The threads of the cluster that wait at barrier.cluster go on.
    virtual void pass_cluster_barrier(const Cluster&) {}
    /// The waiting threads of the block can never go on.
    virtual void deadlock(const Block&, std::span<const Warp>) {}

  protected:
    /// From now on it sees all instructions of the warp.
    void follow(Warp& warp) const noexcept;

  private:
    friend class Observers;
    std::uint32_t bit_ = 0;
};

/// The instructions of a kernel with the observers that see them. Those that none sees run at normal speed.
struct ObservedCode {
    struct Seen {
        std::uint32_t before = 0, after = 0;  ///< one bit for each observer
    };
    std::vector<Seen> seen;         ///< by instruction
    std::vector<Instruction> some;  ///< those that are seen have a handler that only returns
    std::vector<Instruction> all;   ///< all have that handler
};

/// The observers of a launch, of which it is the owner. Used by one thread.
class Observers {
  public:
    /// Null adds nothing.
    void add(std::unique_ptr<Observer> observer);
    bool empty() const noexcept { return all_.empty(); }
    /// Called when all were added and the code has its handlers.
    void observe(const program::Code& code);

    /// Runs the group from `pc` until it stops, like the loop in run_warp.
    void run(Lanes& lanes, std::uint32_t pc) const;
    void begin_block(const Block& block, const Lanes& lanes) {
        for (const auto& each : all_) each->begin_block(block, lanes);
    }
    void begin_warps(const Block& block, std::span<const Warp> warps) {
        for (const auto& each : all_) each->begin_warps(block, warps);
    }
    void pass_barrier(const Block& block, std::span<const Warp> warps, std::uint32_t id) {
        for (const auto& each : all_) each->pass_barrier(block, warps, id);
    }
    void pass_cluster_barrier(const Cluster& cluster) {
        for (const auto& each : all_) each->pass_cluster_barrier(cluster);
    }
    void deadlock(const Block& block, std::span<const Warp> warps) {
        for (const auto& each : all_) each->deadlock(block, warps);
    }

  private:
    std::vector<std::unique_ptr<Observer>> all_;
    std::shared_ptr<const ObservedCode> code_;
};

/// What make() derives from the code, made once for each key. A type is made in one place.
template <class Make>
auto derived(const program::Code& code, std::string key, const Make& make) {
    using Made = const decltype(make());
    const std::lock_guard lock(code.derived_mutex);
    std::shared_ptr<const void>& known = code.derived[std::move(key)];
    if (known == nullptr) known = std::make_shared<Made>(make());
    return std::static_pointer_cast<Made>(known);
}

/// True if executions of the instruction have accesses.
bool accesses_memory(const program::Key& key) noexcept;

/// The source position of a thread at an instruction.
FaultPlace place_of(const program::Code& code, const Dim3& block, std::uint32_t pc, std::uint32_t thread);

}  // namespace emulated::machine
