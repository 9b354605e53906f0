#include "checks/profile.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <map>
#include <mutex>
#include <nlohmann/json.hpp>
#include <string>
#include <tuple>
#include <vector>

#include "machine/groups.hpp"
#include "machine/warp.hpp"
#include "program/loaded_module.hpp"
#include "report/json.hpp"

namespace emulated::checks {
namespace {

using machine::Execution;
using machine::MemoryAccess;
using program::Flag;
using program::Operation;

constexpr std::uint32_t warp_lanes = 32;
constexpr std::uint64_t sector_bytes = 32;
constexpr std::uint64_t banks = 32, word_bytes = 4;

// --- The counts of all launches ------------------------------------------------------------------------------

/// The file and line of code, and those of the call if the code is inlined.
using SourcePlace = std::tuple<std::string, std::uint32_t, std::string, std::uint32_t>;

struct ProfiledKernel {
    std::uint64_t launches = 0;
    std::map<SourcePlace, Counters> lines;
};

struct ProfileSoFar {
    std::mutex mutex;  // guards the next two
    std::map<std::string, ProfiledKernel> kernels;
    std::uint64_t starts = 0;
    std::atomic<std::uint64_t> running{0};  ///< the number of the start; 0: stopped
};

ProfileSoFar& profile_so_far() {
    static ProfileSoFar& made = *new ProfileSoFar;  // launches may run until the very end
    return made;
}

void add(Counters& to, const Counters& more) {
#define COUNTER(name, counts) to.name += more.name;
    BASCULE_COUNTERS(COUNTER)
#undef COUNTER
}

nlohmann::json counts_of(const Counters& counters) {
    nlohmann::json made;
#define COUNTER(name, counts) made[#name] = counters.name;
    BASCULE_COUNTERS(COUNTER)
#undef COUNTER
    return made;
}

// --- The counts of one access --------------------------------------------------------------------------------

/// Values of the lanes of a warp: sectors, words or addresses.
struct LaneValues {
    std::array<std::uint64_t, warp_lanes> values;
    std::uint32_t count = 0;

    void add(std::uint64_t value) { values[count++] = value; }
    /// Sorts the values, keeps each once, and returns their number.
    std::uint32_t make_unique() {
        std::sort(values.begin(), values.begin() + count);
        count =
            static_cast<std::uint32_t>(std::unique(values.begin(), values.begin() + count) - values.begin());
        return count;
    }
};

// The values address / unit of some lanes.
LaneValues values_of(const MemoryAccess& access, std::uint32_t lanes, std::uint64_t unit) {
    LaneValues made;
    for (const unsigned l : machine::LanesOf{lanes}) made.add(access.address[l] / unit);
    return made;
}

// The number of passes beyond the first. In each pass every bank delivers one word, to any number of lanes. Accesses of 8 and
// 16 bytes are made for one half or one quarter of the warp after another, without conflicts between these.
std::uint64_t bank_conflicts_of(const MemoryAccess& access, std::uint32_t lanes) {
    const std::uint32_t words = std::max(access.bytes / static_cast<std::uint32_t>(word_bytes), 1u);
    const std::uint32_t together = std::max(warp_lanes / words, 1u);
    const std::uint32_t part = together == warp_lanes ? ~0u : (1u << together) - 1;
    std::uint64_t conflicts = 0;
    for (std::uint32_t first = 0; first < warp_lanes; first += together) {
        const std::uint32_t active = lanes & (part << first);
        if (active == 0) continue;
        LaneValues found;
        for (const unsigned l : machine::LanesOf{active}) {
            for (std::uint32_t k = 0; k < words; ++k) found.add(access.address[l] / word_bytes + k);
        }
        found.make_unique();
        std::array<std::uint32_t, banks> passes{};
        for (std::uint32_t k = 0; k < found.count; ++k) ++passes[found.values[k] % banks];
        conflicts += *std::ranges::max_element(passes) - 1;
    }
    return conflicts;
}

/// The lanes of an access by the memory that they access. Parameters are in none.
struct LanesBySpace {
    std::uint32_t global = 0, shared = 0, local = 0;
};

LanesBySpace spaces_of(const program::Key& key, const MemoryAccess& access) {
    if (access.is_async)
        return access.reads ? LanesBySpace{access.lanes, 0, 0} : LanesBySpace{0, access.lanes, 0};
    if (key.flags.has(Flag::global)) return {access.lanes, 0, 0};
    if (key.flags.has(Flag::shared)) return {0, access.lanes, 0};
    if (key.flags.has(Flag::local)) return {0, 0, access.lanes};
    LanesBySpace made;
    if (key.flags.has(Flag::param)) return made;
    for (const unsigned l : machine::LanesOf{access.lanes}) {
        const auto is_in = [&](std::uint64_t window) {
            return access.address[l] - window < program::window_bytes;
        };
        const std::uint32_t lane = 1u << l;
        if (is_in(program::shared_window)) {
            made.shared |= lane;
        } else if (is_in(program::local_window)) {
            made.local |= lane;
        } else if (!is_in(program::param_window)) {
            made.global |= lane;
        }
    }
    return made;
}

// --- The observer --------------------------------------------------------------------------------------------

class Profiler final : public machine::Observer {
  public:
    Profiler(const machine::LaunchRequest& request, const LaunchName& launch, std::uint64_t start)
        : launch_(launch), code_(*request.kernel->code), start_(start), counts_(code_.instructions.size()) {}
    ~Profiler() override;
    Profiler(const Profiler&) = delete;
    Profiler& operator=(const Profiler&) = delete;

    bool sees_before(const program::Code&, std::uint32_t) const override { return false; }
    void after(const Execution& execution) override;

  private:
    void count_access(const Execution& execution, const MemoryAccess& access, Counters& counters) const;

    const LaunchName& launch_;
    const program::Code& code_;
    const std::uint64_t start_;
    std::vector<Counters> counts_;  // by instruction
};

bool is_conditional_branch(Operation operation) noexcept {
    return operation == Operation::branch || operation == Operation::compare_branch ||
           operation == Operation::guard || operation == Operation::compare_guard;
}

// Accesses of wmma are lines of unknown requests, so they count only as instructions.
bool moves_lines(Operation operation) noexcept {
    return operation == Operation::load_matrix || operation == Operation::store_matrix;
}

void Profiler::after(const Execution& execution) {
    const Operation operation = execution.key().operation;
    if (operation == Operation::unguard) return;  // PTX has no such instruction
    Counters& counters = counts_[execution.pc];
    ++counters.instructions;
    counters.thread_instructions += static_cast<std::uint64_t>(std::popcount(execution.mask));
    if (is_conditional_branch(operation)) {
        ++counters.branches;
        counters.divergent_branches += execution.lanes.mask != execution.mask ? 1 : 0;
    }
    if (moves_lines(operation)) return;
    for (const MemoryAccess& access : execution.accesses) count_access(execution, access, counters);
}

void Profiler::count_access(const Execution& execution, const MemoryAccess& access,
                            Counters& counters) const {
    const LanesBySpace lanes = spaces_of(execution.key(), access);
    if (lanes.shared != 0) {
        ++counters.shared_requests;
        counters.bank_conflicts += bank_conflicts_of(access, lanes.shared);
    }
    if (lanes.local != 0) ++counters.local_requests;
    if (access.is_atomic) {
        const auto total = static_cast<std::uint32_t>(std::popcount(lanes.global | lanes.shared));
        counters.atomic_conflicts += total - values_of(access, lanes.global | lanes.shared, 1).make_unique();
    }
    if (lanes.global == 0) return;
    // A GPU reads constant memory through another cache.
    const std::uint64_t first = access.address[std::countr_zero(lanes.global)];
    const memory::Allocation* found = execution.lanes.memory->find(first);
    if (found != nullptr && found->read_only) return;
    const std::uint32_t sectors = values_of(access, lanes.global, sector_bytes).make_unique();
    if (access.is_atomic) {
        ++counters.global_atomics;
        counters.global_atomic_sectors += sectors;
    } else if (access.writes) {
        ++counters.global_stores;
        counters.global_store_sectors += sectors;
    } else {
        ++counters.global_loads;
        counters.global_load_sectors += sectors;
    }
}

Profiler::~Profiler() {
    ProfileSoFar& all = profile_so_far();
    const std::lock_guard lock(all.mutex);
    if (all.starts != start_) return;
    ProfiledKernel& kernel = all.kernels[launch_.kernel];
    ++kernel.launches;
    for (std::size_t pc = 0; pc < counts_.size(); ++pc) {
        if (counts_[pc].instructions == 0) continue;
        const program::Code::Line& line = code_.lines[pc];
        add(kernel.lines[{code_.files[line.file], line.source, code_.files[line.caller_file], line.caller}],
            counts_[pc]);
    }
}

}  // namespace

void start_profile() {
    ProfileSoFar& all = profile_so_far();
    const std::lock_guard lock(all.mutex);
    all.kernels.clear();
    all.running = ++all.starts;
}

void stop_profile() noexcept { profile_so_far().running = 0; }

std::string read_profile() {
    ProfileSoFar& all = profile_so_far();
    const std::lock_guard lock(all.mutex);
    auto made = nlohmann::json::array();
    for (const auto& [name, kernel] : all.kernels) {
        auto lines = nlohmann::json::array();
        for (const auto& [place, counters] : kernel.lines) {
            const auto& [file, line, caller_file, caller] = place;
            lines.push_back({{"file", file},
                             {"line", line},
                             {"caller_file", caller_file},
                             {"caller_line", caller},
                             {"counts", counts_of(counters)}});
        }
        made.push_back({{"kernel", name}, {"launches", kernel.launches}, {"lines", std::move(lines)}});
    }
    return report::to_text(made);
}

std::unique_ptr<machine::Observer> make_profiler(const machine::LaunchRequest& request,
                                                 const LaunchName& launch) {
    const std::uint64_t start = profile_so_far().running;
    return start == 0 ? nullptr : std::make_unique<Profiler>(request, launch, start);
}

}  // namespace emulated::checks
