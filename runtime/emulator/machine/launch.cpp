// A grid: workers take blocks, a block runs its warps in turns until all have exited.
#include "machine/launch.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <mutex>
#include <new>
#include <thread>
#include <vector>

#include <fmt/format.h>

#include "machine/registry.hpp"
#include "machine/warp.hpp"

namespace emulated::machine {
namespace {

using program::Code;
using program::Special;

// Handlers depend on the processor, so code learns them here and not when it is translated.
void link(const Code& code) {
    std::call_once(code.linked, [&] {
        for (std::size_t i = 0; i < code.instructions.size(); ++i) {
            code.instructions[i].handler = reinterpret_cast<void (*)()>(registry().find(code.keys[i]));
        }
    });
}

/// Memory that grows and is kept from launch to launch. Owned by one thread.
class Arena {
  public:
    std::byte* take(std::size_t bytes) {
        if (bytes > capacity_) {
            data_.reset(static_cast<std::byte*>(::operator new (bytes, std::align_val_t{64})));
            std::memset(data_.get(), 0, bytes);
            capacity_ = bytes;
        }
        return data_.get();
    }

  private:
    struct Free {
        void operator()(std::byte* data) const { ::operator delete (data, std::align_val_t{64}); }
    };
    std::unique_ptr<std::byte, Free> data_;
    std::size_t capacity_ = 0;
};

std::chrono::nanoseconds timeout() {
    const char* text = std::getenv("BASCULE_EMULATED_TIMEOUT");
    const double seconds = text ? std::strtod(text, nullptr) : 0;
    return std::chrono::nanoseconds(static_cast<std::int64_t>((seconds > 0 ? seconds : 10.0) * 1e9));
}

/// What one thread needs to run blocks.
class Worker {
  public:
    // False once a block has failed.
    bool begin(GridState& grid);
    std::optional<Fault> run_block(std::uint64_t linear);

  private:
    void fill_constants(std::byte* registers) const;
    void fill_special(std::byte* registers, const Code::SpecialSlot& slot, std::uint32_t warp) const;
    void fill_specials(Warp& warp) const;
    void start(Warp& warp) const;
    bool run(Warp& warp);
    bool run_in_turns();
    bool release_whole_block();
    bool release_barriers();
    Fault describe() const;
    Fault describe_deadlock() const;
    Dim3 thread_of(std::uint32_t linear) const;
    void locate(Fault& fault, std::uint32_t pc) const;

    GridState* grid_ = nullptr;
    const Code* code_ = nullptr;
    const LaunchRequest* request_ = nullptr;
    Arena registers_, shared_, local_;
    std::vector<AllocationCache> caches_;
    std::vector<Warp> warps_;
    Lanes lanes_;
    Block block_;
    std::vector<std::uint32_t> threads_[3];  ///< coordinates by linear thread index
    bool own_registers_ = false;  ///< each warp has a register file, since a warp may wait for another
};

std::uint32_t round_up(std::uint32_t value, std::uint32_t to) { return (value + to - 1) / to * to; }

bool Worker::begin(GridState& grid) {
    grid_ = &grid;
    code_ = grid.code;
    request_ = grid.request;
    own_registers_ = code_->has_barrier;
    block_.grid = &grid;
    block_.threads = request_->block.x * request_->block.y * request_->block.z;
    const std::uint32_t count = (block_.threads + 31) / 32;

    // An odd number of cache lines between warps keeps equal registers out of equal cache sets.
    const std::size_t file = (round_up(code_->register_bytes, 64) / 64 | 1u) * std::size_t{64};
    std::byte* registers = registers_.take(file * (own_registers_ ? count : 1));
    const std::uint32_t shared_bytes = code_->shared_bytes + request_->dynamic_shared_bytes;
    caches_.assign(code_->caches, {});
    warps_.resize(count);
    for (std::uint32_t w = 0; w < count; ++w) {
        warps_[w].index = w;
        const std::uint32_t left = block_.threads - 32 * w;
        warps_[w].exists = left >= 32 ? ~0u : (1u << left) - 1;
        warps_[w].registers = registers + (own_registers_ ? w * file : 0);
        if (w == 0 || own_registers_) fill_constants(warps_[w].registers);
    }
    for (auto& axis : threads_) axis.resize(32 * count);
    for (std::uint32_t t = 0; t < 32 * count; ++t) {
        const Dim3 thread = thread_of(t);
        threads_[0][t] = thread.x;
        threads_[1][t] = thread.y;
        threads_[2][t] = thread.z;
    }
    for (std::uint32_t w = 0; w < (own_registers_ ? count : 1); ++w) {
        for (const Code::SpecialSlot& slot : code_->specials) fill_special(warps_[w].registers, slot, w);
    }
    lanes_.code = code_->instructions.data();
    lanes_.lists = code_->lists.data();
    lanes_.caches = caches_.data();
    lanes_.memory = request_->memory;
    lanes_.shared = shared_.take(shared_bytes + 1);
    lanes_.shared_bytes = shared_bytes;
    lanes_.local_bytes = code_->local_bytes;
    lanes_.parameters = request_->parameters;
    lanes_.parameter_bytes = request_->kernel->parameter_bytes;
    lanes_.block = &block_;
    local_.take(std::size_t{code_->local_bytes} * 32 * count + 1);
    return true;
}

void Worker::fill_constants(std::byte* registers) const {
    for (const Code::Constant& constant : code_->constants) {
        std::uint64_t value = constant.value;
        if (constant.global >= 0) value += request_->globals[constant.global];
        std::byte* at = registers + constant.offset;
        if (constant.bytes == 0) std::memcpy(at, &value, 4);
        for (std::uint32_t l = 0; l < 32; ++l) std::memcpy(at + l * constant.bytes, &value, constant.bytes);
    }
}

Dim3 Worker::thread_of(std::uint32_t linear) const {
    const Dim3& block = request_->block;
    return {linear % block.x, linear / block.x % block.y, linear / block.x / block.y};
}

void Worker::fill_special(std::byte* registers, const Code::SpecialSlot& slot, std::uint32_t warp) const {
    auto* d = reinterpret_cast<std::uint32_t*>(registers + slot.offset);
    const auto all = [&](std::uint32_t value) { std::fill(d, d + 32, value); };
    const auto each = [&](auto&& value) {
        for (std::uint32_t l = 0; l < 32; ++l) d[l] = value(l);
    };
    const auto thread = [&](unsigned axis) { std::memcpy(d, &threads_[axis][32 * warp], 128); };
    switch (slot.special) {
        case Special::tid_x:
            return thread(0);
        case Special::tid_y:
            return thread(1);
        case Special::tid_z:
            return thread(2);
        case Special::ntid_x:
            return all(request_->block.x);
        case Special::ntid_y:
            return all(request_->block.y);
        case Special::ntid_z:
            return all(request_->block.z);
        case Special::ctaid_x:
            return all(block_.index.x);
        case Special::ctaid_y:
            return all(block_.index.y);
        case Special::ctaid_z:
            return all(block_.index.z);
        case Special::nctaid_x:
            return all(request_->grid.x);
        case Special::nctaid_y:
            return all(request_->grid.y);
        case Special::nctaid_z:
            return all(request_->grid.z);
        case Special::laneid:
            return each([](std::uint32_t l) { return l; });
        case Special::warpid:
            return all(warp);
        case Special::nwarpid:
            return all(32);
        case Special::nsmid:
            return all(1);
        case Special::lanemask_eq:
            return each([](std::uint32_t l) { return 1u << l; });
        case Special::lanemask_lt:
            return each([](std::uint32_t l) { return (1u << l) - 1; });
        case Special::lanemask_le:
            return each([](std::uint32_t l) { return (2u << l) - 1; });
        case Special::lanemask_gt:
            return each([](std::uint32_t l) { return ~((2u << l) - 1); });
        case Special::lanemask_ge:
            return each([](std::uint32_t l) { return ~((1u << l) - 1); });
        case Special::dynamic_smem_size:
            return all(request_->dynamic_shared_bytes);
        case Special::total_smem_size:
            return all(code_->shared_bytes + request_->dynamic_shared_bytes);
        case Special::smid:
        case Special::gridid:
        case Special::zero:
            return all(0);
    }
}

// How long a special register keeps its value in a register file.
enum class Lifetime : std::uint8_t { launch, warp, block };

Lifetime lifetime_of(Special special) {
    switch (special) {
        case Special::tid_x:
        case Special::tid_y:
        case Special::tid_z:
        case Special::warpid:
            return Lifetime::warp;
        case Special::ctaid_x:
        case Special::ctaid_y:
        case Special::ctaid_z:
            return Lifetime::block;
        default:
            return Lifetime::launch;
    }
}

// Only what has changed since this register file last ran.
void Worker::fill_specials(Warp& warp) const {
    for (const Code::SpecialSlot& slot : code_->specials) {
        const Lifetime lifetime = lifetime_of(slot.special);
        const bool stale = lifetime == Lifetime::warp
                               ? !own_registers_
                               : lifetime == Lifetime::block && (own_registers_ || warp.index == 0);
        if (stale) fill_special(warp.registers, slot, warp.index);
    }
}

void Worker::start(Warp& warp) const {
    warp.exited = 0;
    warp.met_after_exits = ~0u;
    warp.groups.clear();
    Group all;
    all.mask = warp.exists;
    warp.groups.push_back(all);
    fill_specials(warp);
}

bool Worker::run(Warp& warp) {
    lanes_.local = local_.take(0) + std::size_t{warp.index} * 32 * code_->local_bytes;
    return run_warp(lanes_, warp);
}

std::optional<Fault> Worker::run_block(std::uint64_t linear) {
    const Dim3& grid = request_->grid;
    block_.index = {static_cast<std::uint32_t>(linear % grid.x),
                    static_cast<std::uint32_t>(linear / grid.x % grid.y),
                    static_cast<std::uint32_t>(linear / grid.x / grid.y)};
    ++block_.steps;
    block_.arrived.fill(0);
    if (own_registers_) {
        for (Warp& warp : warps_) start(warp);
        if (!run_in_turns()) return lanes_.stop == Stop::fault ? describe() : describe_deadlock();
        return std::nullopt;
    }
    for (Warp& warp : warps_) {
        start(warp);
        if (!run(warp)) return describe();
        if (warp.exited != warp.exists) return describe_deadlock();
    }
    return std::nullopt;
}

bool Worker::run_in_turns() {
    for (;;) {
        bool done = true;
        for (Warp& warp : warps_) {
            if (!run(warp)) return false;
            done = done && warp.exited == warp.exists;
        }
        if (done) return true;
        lanes_.stop = Stop::none;
        if (!release_whole_block() && !release_barriers()) return false;
        ++block_.steps;
    }
}

// The common case: every warp that still runs stands at the same barrier as a whole, and nobody arrived from
// afar.
bool Worker::release_whole_block() {
    std::uint32_t id = ~0u;
    for (const Warp& warp : warps_) {
        if (warp.groups.empty()) continue;
        const Group& group = warp.groups.front();
        if (warp.groups.size() != 1 || group.state != Group::State::barrier || group.barrier_count != 0)
            return false;
        if (id != ~0u && group.barrier != id) return false;
        id = group.barrier;
    }
    if (id == ~0u) return false;
    block_.arrived[id] = 0;
    for (Warp& warp : warps_) {
        if (!warp.groups.empty()) warp.groups.front().state = Group::State::ready;
    }
    return true;
}

// Exited threads count as arrived, as on hardware.
bool Worker::release_barriers() {
    std::array<std::uint32_t, 16> waiting{}, wanted{};
    std::uint32_t exited = 0;
    for (const Warp& warp : warps_) {
        exited += static_cast<std::uint32_t>(__builtin_popcount(warp.exited));
        for (const Group& group : warp.groups) {
            if (group.state != Group::State::barrier) continue;
            waiting[group.barrier] += static_cast<std::uint32_t>(__builtin_popcount(group.mask));
            if (group.barrier_count != 0) wanted[group.barrier] = group.barrier_count;
        }
    }
    bool released = false;
    for (std::uint32_t id = 0; id < 16; ++id) {
        if (waiting[id] == 0) continue;
        const bool counted = wanted[id] != 0;
        const std::uint32_t there = waiting[id] + block_.arrived[id] + (counted ? 0 : exited);
        if (there < (counted ? wanted[id] : block_.threads)) continue;
        released = true;
        block_.arrived[id] = 0;
        for (Warp& warp : warps_) {
            for (Group& group : warp.groups) {
                if (group.state == Group::State::barrier && group.barrier == id)
                    group.state = Group::State::ready;
            }
        }
    }
    return released;
}

// --- faults
// --------------------------------------------------------------------------------------------------------

void Worker::locate(Fault& fault, std::uint32_t pc) const {
    const Code::Line& line = code_->lines[pc];
    fault.ptx_line = line.ptx;
    fault.line = line.source;
    fault.file = code_->files[line.file];
}

std::string place(const Fault& fault) {
    const std::string ptx = fmt::format("PTX line {}", fault.ptx_line);
    return fault.line == 0 ? ptx : fmt::format("{}:{} ({})", fault.file, fault.line, ptx);
}

std::string who(const Fault& fault) {
    return fmt::format("kernel '{}', block ({},{},{}), thread ({},{},{})", fault.kernel, fault.block.x,
                       fault.block.y, fault.block.z, fault.thread.x, fault.thread.y, fault.thread.z);
}

Fault Worker::describe() const {
    const LaneFault& lane = lanes_.fault;
    Fault fault;
    fault.kernel = request_->kernel->name;
    fault.block = block_.index;
    const auto first = static_cast<std::uint32_t>(lane.lanes ? __builtin_ctz(lane.lanes) : 0);
    fault.thread = thread_of(32 * lanes_.warp->index + first);
    fault.other_threads = lane.lanes ? static_cast<std::uint64_t>(__builtin_popcount(lane.lanes)) - 1 : 0;
    fault.address = lane.address;
    fault.access_bytes = lane.bytes;
    fault.write = lane.write;
    fault.space = lane.space;
    locate(fault, lane.pc);
    const std::string at = place(fault), thread = who(fault);
    const char* verb = lane.write ? "wrote" : "read";
    using What = LaneFault::What;
    switch (lane.what) {
        case What::misaligned:
            fault.kind = Fault::Kind::misaligned_address;
            fault.message =
                fmt::format("{} {} {} bytes at {:#x} in {} memory, which is no multiple of {}, at {}", thread,
                            verb, lane.bytes, lane.address, lane.space, lane.bytes, at);
            break;
        case What::read_only:
            fault.kind = Fault::Kind::illegal_address;
            fault.message = fmt::format("{} wrote {} bytes at {:#x}, which is constant, at {}", thread,
                                        lane.bytes, lane.address, at);
            break;
        case What::trap:
            fault.kind = Fault::Kind::illegal_instruction;
            fault.message = fmt::format("{} executed a trap at {}", thread, at);
            break;
        case What::assertion:
            fault.kind = Fault::Kind::assertion;
            fault.message = fmt::format("{}: {}", thread, block_.message);
            break;
        case What::timeout:
            fault.kind = Fault::Kind::timeout;
            fault.message = fmt::format(
                "{} is in an infinite loop at {}: its block only went round for {} s; "
                "BASCULE_EMULATED_TIMEOUT sets how many seconds are allowed",
                thread, at, std::chrono::duration<double>(grid_->timeout).count());
            break;
        case What::bad_barrier:
            fault.kind = Fault::Kind::launch_failed;
            fault.message = fmt::format(
                "{} used a barrier above 15, or a thread count that is no multiple of 32, at {}", thread, at);
            break;
        default:
            fault.kind = Fault::Kind::illegal_address;
            fault.message =
                fmt::format("{} {} {} bytes at {:#x} in {} memory, where nothing is allocated, at {}", thread,
                            verb, lane.bytes, lane.address, lane.space, at);
            break;
    }
    return fault;
}

// Nobody can go on: some wait at one place, some at another.
Fault Worker::describe_deadlock() const {
    Fault fault;
    fault.kind = Fault::Kind::launch_failed;
    fault.kernel = request_->kernel->name;
    fault.block = block_.index;
    struct Waiting {
        std::uint32_t pc, thread;
        Group::State state;
    };
    std::vector<Waiting> places;
    for (const Warp& warp : warps_) {
        for (const Group& group : warp.groups) {
            const std::uint32_t pc = group.state == Group::State::barrier ? group.pc - 1 : group.pc;
            const auto known = [&](const Waiting& other) { return other.pc == pc; };
            if (std::any_of(places.begin(), places.end(), known)) continue;
            places.push_back(
                {pc, 32 * warp.index + static_cast<std::uint32_t>(__builtin_ctz(group.mask)), group.state});
        }
    }
    if (places.empty()) places.push_back({0, 0, Group::State::ready});
    fault.thread = thread_of(places[0].thread);
    locate(fault, places[0].pc);
    const char* what =
        places[0].state == Group::State::meeting ? "lanes of its warp" : "the rest of its block";
    fault.message = fmt::format("divergent barrier: {} waits for {} at {}", who(fault), what, place(fault));
    for (std::size_t i = 1; i < places.size() && i < 3; ++i) {
        Fault other = fault;
        locate(other, places[i].pc);
        const Dim3 thread = thread_of(places[i].thread);
        fault.message +=
            fmt::format(", and thread ({},{},{}) waits at {}", thread.x, thread.y, thread.z, place(other));
    }
    if (places.size() == 1) fault.message += ", where not every thread arrives";
    return fault;
}

}  // namespace

std::optional<Fault> launch(const LaunchRequest& request) {
    const Code& code = *request.kernel->code;
    link(code);
    GridState grid;
    grid.request = &request;
    grid.code = &code;
    grid.timeout = timeout();
    const std::uint64_t blocks = std::uint64_t{request.grid.x} * request.grid.y * request.grid.z;

    std::mutex mutex;
    std::optional<Fault> first;
    const auto work = [&] {
        static thread_local Worker worker;  // its memory is used again by the next launch
        worker.begin(grid);
        for (;;) {
            const std::uint64_t block = grid.next_block.fetch_add(1, std::memory_order_relaxed);
            if (block >= blocks || grid.cancelled.load(std::memory_order_relaxed)) return;
            if (auto fault = worker.run_block(block)) {
                const std::lock_guard lock(mutex);
                if (!first) first = std::move(fault);
                grid.cancelled = true;
                return;
            }
        }
    };
    const auto threads =
        static_cast<unsigned>(std::min<std::uint64_t>(std::max(1u, request.workers), blocks));
    std::vector<std::thread> others;
    for (unsigned i = 1; i < threads; ++i) others.emplace_back(work);
    work();
    for (std::thread& other : others) other.join();
    return first;
}

}  // namespace emulated::machine
