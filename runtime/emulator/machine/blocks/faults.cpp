// Describes the faults and deadlocks of a block.
#include <algorithm>
#include <iterator>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "machine/blocks/block.hpp"
#include "machine/observer.hpp"

namespace emulated::machine {
namespace {

using What = LaneFault::What;

struct Row {
    What what;
    Fault::Kind kind = Fault::Kind::illegal_address;
    const char* message = "";  ///< if it is the same for every fault of this kind
};
constexpr Row rows[] = {
    {What::misaligned, Fault::Kind::misaligned_address},
    {What::trap, Fault::Kind::illegal_instruction},
    {What::assertion, Fault::Kind::assertion},
    {What::idle, Fault::Kind::timeout},
    {What::over_time, Fault::Kind::timeout},
    {What::cancelled, Fault::Kind::cancelled},
    {What::bad_barrier, Fault::Kind::launch_failed,
     "barriers are numbered 0 to 15, and their thread counts are multiples of 32"},
    {What::misuse, Fault::Kind::misuse},
    {What::no_cluster, Fault::Kind::no_cluster},
    {What::bad_call, Fault::Kind::invalid_pc},
    {What::stack, Fault::Kind::stack_error},
    {What::incomplete_warp, Fault::Kind::illegal_instruction,
     "a matrix instruction needs all 32 threads of the warp, and some have ended or never were"},
    {What::bad_free, Fault::Kind::invalid_free},
    {What::bad_image, Fault::Kind::bad_image},
    {What::bad_tensor, Fault::Kind::bad_tensor},
};

Row row_of(What what) {
    const auto* found = std::ranges::find(rows, what, &Row::what);
    return found == std::end(rows) ? Row{what} : *found;
}

// The start of the smallest loop around `pc`. A loop is the code between a backward branch and its target.
std::optional<std::uint32_t> innermost_loop(const program::Code& code, std::uint32_t pc) {
    for (std::size_t i = pc; i < code.instructions.size(); ++i) {
        const Instruction& branch = code.instructions[i];
        const auto start = static_cast<std::uint32_t>(branch.immediate);
        const bool jumps = does(code.keys[i].operation, program::Does::jumps);
        if (jumps && (branch.bits & Instruction::backward) && start <= pc) return start;
    }
    return std::nullopt;
}

}  // namespace

Dim3 Worker::thread_of(std::uint32_t linear) const {
    const Dim3& block = request_->block;
    return {linear % block.x, linear / block.x % block.y, linear / block.x / block.y};
}

Fault::Place Worker::place_of(std::uint32_t pc, std::uint32_t thread) const {
    const program::Code::Line& line = code_->lines[pc];
    Fault::Place made;
    made.file = code_->files[line.file];
    made.line = line.source;
    made.thread = thread_of(thread);
    made.ptx_line = line.ptx;
    made.caller = {code_->files[line.caller_file], line.caller};
    return made;
}

Fault Worker::describe() {
    const LaneFault lane = lanes_.fault;
    const auto first = static_cast<std::uint32_t>(lane.lanes ? __builtin_ctz(lane.lanes) : 0);
    Fault fault;
    static_cast<Fault::Place&>(fault) = place_of(lane.pc, 32 * lanes_.warp->index + first);
    fault.kind = row_of(lane.what).kind;
    fault.message = row_of(lane.what).message;
    fault.kernel = request_->kernel->name;
    fault.block = block_.index;
    fault.address = lane.address;
    fault.access_bytes = lane.bytes;
    fault.write = lane.write;
    fault.space = lane.space;
    const auto is = [&](auto... whats) { return ((lane.what == whats) || ...); };
    if (is(What::idle, What::over_time, What::cancelled)) {
        describe_endless(fault, lane.pc);
        return fault;
    }
    if (is(What::trap)) describe_trap(fault);
    if (is(What::out_of_bounds)) describe_shared(fault);
    if (is(What::assertion, What::bad_free, What::bad_image, What::bad_tensor, What::misuse,
           What::no_cluster))
        fault.message = std::move(block_.message);
    if (is(What::assertion) && block_.asserted_line != 0) {
        fault.file = std::move(block_.asserted_file);
        fault.line = block_.asserted_line;
    }
    if (is(What::misaligned))
        fault.message = fmt::format("an access of {} bytes needs an address that is a multiple of {}",
                                    lane.bytes, lane.bytes);
    if (is(What::bad_call))
        fault.message = fmt::format(
            "a call through the pointer {:#x}, which is not a function that takes these arguments",
            lane.address);
    if (is(What::stack))
        fault.message = fmt::format(
            "stack overflow: nested calls and alloca need more than {} bytes of stack. Is there a recursion "
            "without an end? CU_LIMIT_STACK_SIZE, which is a bascule.Device's stack_bytes, makes the stack larger",
            lanes_.local_bytes - code_->local_bytes);
    fault.other_threads = lane.lanes ? static_cast<std::uint64_t>(__builtin_popcount(lane.lanes)) - 1 : 0;
    fault.other_threads += count_others(lane);
    return fault;
}

// cooperative_groups traps if a grid synchronises and was not launched cooperatively.
void Worker::describe_trap(Fault& fault) const {
    using program::Special;
    const bool asks_for_workspace = std::ranges::any_of(code_->specials, [](const auto& slot) {
        return slot.special == Special::workspace_high || slot.special == Special::workspace_low;
    });
    const bool in_library = fault.line == 0 || fault.file.find("cooperative_groups") != fault.file.npos;
    if (request_->workspace != 0 || !asks_for_workspace || !in_library) return;
    fault.lack = Fault::Lack::cooperation;
    fault.message =
        "the kernel synchronises its grid (cooperative_groups), and this launch was not cooperative";
    if (fault.caller.line != 0) static_cast<SourceLine&>(fault) = std::exchange(fault.caller, {});
}

// If the access was to shared memory, describes how much of it there is.
void Worker::describe_shared(Fault& fault) const {
    const auto offset = static_cast<std::int64_t>(fault.address - program::shared_window);
    const bool in_window = offset >= 0 && static_cast<std::uint64_t>(offset) < program::window_bytes;
    const std::string_view space = fault.space;
    if (space != "shared" && !(space == "generic" && in_window)) return;
    fault.space = "shared";
    const auto slot = static_cast<std::uint64_t>(offset) / program::cluster_stride;
    if (slot > 0 && request_->cluster.count() > 1) return describe_cluster(fault, slot - 1);
    fault.message = fmt::format("the block has {} bytes of shared memory, and this access is at byte {}",
                                code_->shared_bytes + request_->dynamic_shared_bytes, offset);
    if (!code_->has_dynamic_shared) return;
    fault.message =
        fmt::format("the kernel has an extern __shared__ array, and the launch gave it {} bytes: {}",
                    request_->dynamic_shared_bytes, fault.message);
    fault.lack = Fault::Lack::dynamic_shared_bytes;
}

// Describes an access to the shared memory of the cluster's block with this rank.
void Worker::describe_cluster(Fault& fault, std::uint64_t rank) const {
    const auto& members = block_.cluster->members;
    if (rank >= members.size()) {
        fault.message = fmt::format("the cluster has {} blocks, and this is the shared memory of rank {}",
                                    members.size(), rank);
        return;
    }
    fault.message = fmt::format(
        "each block of the cluster has {} bytes of shared memory, and this access is "
        "at byte {} of rank {}",
        members[rank].shared_bytes, (fault.address - program::shared_window) % program::cluster_stride, rank);
    if (members[rank].ended) {
        fault.message +=
            ", which has ended: its shared memory is gone. Let all blocks wait for each other "
            "before they end (cluster.sync())";
    }
}

// Describes for how long a block ran and what it did, to show why it does not end.
void Worker::describe_endless(Fault& fault, std::uint32_t pc) const {
    const auto seconds = [](std::chrono::nanoseconds limit) {
        return std::chrono::duration<double>(limit).count();
    };
    if (lanes_.fault.what == What::idle) {
        fault.message = fmt::format(
            "this looks like an infinite loop: for {} s no thread of the block has ended, and the block has "
            "written no memory that it had not written before. If the kernel only needs longer, set "
            "BASCULE_EMULATED_TIMEOUT to the seconds that it may run ('inf': without a limit)",
            seconds(request_->limits.idle));
    } else if (lanes_.fault.what == What::over_time) {
        fault.message = fmt::format(
            "the kernel has run for {} s, as long as BASCULE_EMULATED_TIMEOUT allows: it has an infinite "
            "loop, or needs a higher limit",
            seconds(request_->limits.total));
    }
    const auto say = [&](const std::string& words) {
        fault.message += (fault.message.empty() ? "" : "\n  ") + words;
    };
    if (lanes_.depth > 0) say(fmt::format("calls are nested {} deep here", lanes_.depth));
    if (block_.open_phase) {
        const auto& [address, pending, bytes] = *block_.open_phase;
        say(fmt::format(
            "the block waits for the mbarrier at byte {} of shared memory, whose phase still expects "
            "{} arrivals and {} bytes",
            address - program::shared_window, pending, bytes));
    }
    if (block_.barriers_passed > 0)
        say(fmt::format("the block has passed {} barriers", block_.barriers_passed));
    if (const auto loop = innermost_loop(*code_, pc)) fault.loop = place_of(*loop, 0);
}

// Counts the threads with the same fault. Warps run one after another, but on a device all would have reached the fault, so
// each of the others runs until it stops.
std::uint64_t Worker::count_others(const LaneFault& first) {
    std::uint64_t same = 0;
    block_.counting = true;
    for (std::size_t w = lanes_.warp->index + std::size_t{1}; w < warps_.size(); ++w) {
        Warp& warp = warps_[w];
        if (!own_registers_) start({&warp, 1});
        // After lockstep, the cached pattern may hold only for another warp.
        for (AllocationCache& cache : caches_) cache.pattern = AllocationCache::no_pattern;
        lanes_.stop = Stop::none;
        if (run(warp) || lanes_.fault.what != first.what || lanes_.fault.pc != first.pc) continue;
        same += static_cast<std::uint64_t>(__builtin_popcount(lanes_.fault.lanes));
    }
    block_.counting = false;
    return same;
}

// No thread can continue: the threads wait at different places.
Fault Worker::describe_deadlock() const {
    struct Waiting {
        std::uint32_t pc, thread;
        Group::State state;
    };
    if (request_->observers != nullptr) request_->observers->deadlock(block_, warps_);
    std::vector<Waiting> places;
    for (const Warp& warp : warps_) {
        for (const Group& group : warp.groups) {
            const std::uint32_t pc = group.state == Group::State::barrier ? group.pc - 1 : group.pc;
            if (std::ranges::find(places, pc, &Waiting::pc) != places.end()) continue;
            places.push_back(
                {pc, 32 * warp.index + static_cast<std::uint32_t>(__builtin_ctz(group.mask)), group.state});
        }
    }
    // Threads that wait for registers come first: they are the reason why the others wait.
    std::stable_partition(places.begin(), places.end(),
                          [](const Waiting& place) { return place.state == Group::State::registers; });
    if (places.empty()) places.push_back({0, 0, Group::State::ready});
    Fault fault;
    static_cast<Fault::Place&>(fault) = place_of(places[0].pc, places[0].thread);
    fault.kind = Fault::Kind::launch_failed;
    fault.kernel = request_->kernel->name;
    fault.block = block_.index;
    const char* others = places[0].state == Group::State::meeting           ? "lanes of its warp"
                         : places[0].state == Group::State::cluster_barrier ? "the rest of its cluster"
                                                                            : "the rest of its block";
    fault.message =
        places[0].state == Group::State::registers
            ? fmt::format(
                  "setmaxnreg.inc waits for registers that other warps of the block release with setmaxnreg.dec: {} "
                  "per thread are free, and no warp that could release more goes on",
                  block_.free_registers)
            : fmt::format("divergent barrier: this thread waits for {}, and not all of them can arrive",
                          others);
    for (std::size_t i = 1; i < places.size(); ++i)
        fault.waiting.push_back(place_of(places[i].pc, places[i].thread));
    return fault;
}

}  // namespace emulated::machine
