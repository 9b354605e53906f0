// Each warp has a mask of lanes for each register: those whose value is partly undefined. As long as the sources of an
// instruction are defined, its results are, and nothing else is done. The undefined bits themselves are kept in a second
// register file and in a second copy of shared and local memory; those of device memory are in memory/shadow.
#include <algorithm>
#include <bit>
#include <cstring>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "checks/init_memory.hpp"
#include "checks/init_plan.hpp"
#include "checks/kernel_checks.hpp"
#include "machine/cluster.hpp"
#include "machine/groups.hpp"
#include "machine/warp.hpp"
#include "memory/shadow.hpp"
#include "races/access_log.hpp"

namespace emulated::checks {
namespace values {
namespace {

using machine::Execution;
using machine::Lanes;
using machine::LanesOf;
using program::Code;
using program::Flag;
using program::Instruction;
using program::Operation;
using u32 = std::uint32_t;
using u64 = std::uint64_t;

/// Where an undefined value was read last.
struct Origin {
    u32 load = 0;            ///< the instruction + 1; 0: from a register that was not written
    bool computed = false;   ///< an instruction has computed the value, so it is no padding
    bool untouched = false;  ///< nothing has written the memory around it either
};

/// The memory that a load read.
struct Source {
    u64 address = 0;
    std::string_view space = "";
};

/// What is known of the registers of a warp.
struct WarpShadow {
    bool fresh = true;
    std::vector<u32> masks;       ///< by slot: the lanes whose value is partly undefined
    std::vector<Origin> origins;  ///< by slot, of these lanes
    std::vector<std::byte> bits;  ///< like the register file: the undefined bits of these lanes
    // Operands of an instruction that gathers lanes, because it may overwrite them: by lane.
    u32 kept[2][32] = {};
};

/// True if each byte has an undefined bit.
bool wholly_undefined(u64 value, u32 bytes) {
    for (; bytes > 0; --bytes, value >>= 8) {
        if ((value & 0xff) == 0) return false;
    }
    return true;
}

// --- the check ---------------------------------------------------------------------------------------------

class Init final : public machine::Observer {
  public:
    Init(const machine::LaunchRequest& request, const LaunchName& launch)
        : request_(request),
          launch_(launch),
          plan_of_code_(
              machine::derived(*request.kernel->code, "values", [&] { return Plan(*request.kernel->code); })),
          plan_(*plan_of_code_),
          memory_(*request.shadow) {}

    // While all registers of a warp are defined, which is so from its start unless the code reads unwritten ones, only
    // instructions that access memory matter.
    bool sees_before(const Code& code, u32 pc) const override {
        const Kind kind = plan_[pc].kind;
        return code.reads_unwritten || kind == Kind::load || kind == Kind::store || kind == Kind::atomic ||
               kind == Kind::copy || kind == Kind::writes;
    }
    bool sees_after(const Code& code, u32 pc) const override {
        return code.reads_unwritten ? plan_[pc].kind >= Kind::shuffle : plan_[pc].kind == Kind::writes;
    }

    ~Init() override {
        for (const auto& [pc, threads] : repeated_) {
            Finding finding;
            finding.check = Check::init;
            finding.pc = pc;
            if (threads != 0) report(launch_, std::move(finding), threads);
        }
    }

    void begin_block(const machine::Block&, const Lanes& lanes) override {
        memory_.begin_block(lanes, *request_.kernel->code);
    }

    void begin_warps(const machine::Block&, std::span<const machine::Warp> warps) override {
        for (const machine::Warp& warp : warps) warps_[&warp].fresh = true;
        warp_ = nullptr;
    }

    void before(const Execution& e) override {
        if (e.lanes.warp != warp_) enter(e.lanes);
        if (logs_) [[unlikely]]
            stop_logging(e.lanes);
        const Step& step = plan_[e.pc];
        const Slot* results = plan_.slots(step);
        const Slot* sources = results + step.results;
        u32 undefined = 0;
        for (u32 k = 0; k < step.sources; ++k) undefined |= now_->masks[sources[k].index];
        undefined &= e.mask;
        if (undefined == 0 && step.kind <= Kind::compares) {
            define(step, e.mask);
            return;
        }
        observe(e, step, undefined);
    }

    void after(const Execution& e) override {
        const Step& step = plan_[e.pc];
        if (step.kind < Kind::shuffle) return;
        if (logs_) stop_logging(e.lanes);
        if (step.kind <= Kind::exchange) exchange(e, step);
    }

  private:
    // Finds what is known of the warp that runs now.
    void enter(const Lanes& lanes) {
        warp_ = lanes.warp;
        now_ = &warps_[warp_];
        if (!std::exchange(now_->fresh, false)) return;
        now_->masks.assign(plan_.count(), request_.kernel->code->reads_unwritten ? ~0u : 0);
        now_->masks[0] = 0;
        now_->origins.assign(plan_.count(), {});
        now_->bits.assign(request_.kernel->code->register_bytes, std::byte{0xff});
        memory_.begin_warp(lanes);
    }

    void observe(const Execution& e, const Step& step, u32 undefined) {
        const Slot* results = plan_.slots(step);
        const Slot* sources = results + step.results;
        switch (step.kind) {
            case Kind::propagates:
                return propagate(e, step, undefined);
            case Kind::compares:
                propagate(e, step, undefined);
                return require(e, results[0], "branched on a value that nothing has written");
            case Kind::decides:
                require(e, sources[0], "branched on a value that nothing has written");
                return define(step, e.mask);
            case Kind::load:
                return load(e, step);
            case Kind::store:
                return store(e, step, undefined);
            case Kind::atomic:
                return atomic(e, step);
            case Kind::copy:
                return copy(e, step);
            case Kind::shuffle:
                require_index(e, sources[1]);
                keep(e, sources[1], 0);
                return keep(e, sources[2], 1);
            case Kind::exchange:
                return keep(e, sources[1], 0);
            case Kind::barrier:
                if ((e.instruction().bits & Instruction::counts) != 0)
                    require(e, sources[2], "counted a value that nothing has written at a barrier");
                return;
            case Kind::image:
                for (u32 k = 0; k < step.sources; ++k) require_index(e, sources[k]);
                return define(step, e.mask);
            case Kind::writes:
                define(step, e.mask);
                memory_.define_shared(e.lanes);
                return start_logging(e.lanes);
            case Kind::load_argument:
                return load_argument(e, results[0], sources[0]);
            case Kind::store_argument:
                return store_argument(e, sources[0], sources[1]);
            case Kind::copy_argument:
                return copy_place(e.mask, sources[0].offset, results[0].offset, e.instruction().extra);
            case Kind::defines:
                return define(step, e.mask);
        }
    }

    // --- registers ---

    LaneValue read(const Execution& e, const Slot& slot, unsigned lane) const {
        const bool undefined = (now_->masks[slot.index] >> lane & 1) != 0;
        if (slot.bytes == 0) return {machine::predicate_at(e.lanes, slot.offset) >> lane & 1, undefined};
        LaneValue made;
        const std::size_t at = slot.offset + std::size_t{lane} * slot.bytes;
        std::memcpy(&made.bits, e.lanes.registers + at, slot.bytes);
        if (undefined) std::memcpy(&made.undefined, now_->bits.data() + at, slot.bytes);
        return made;
    }

    // Returns true if some of the bits that the register has are undefined. The caller sets the mask.
    bool write(const Slot& slot, unsigned lane, u64 undefined) {
        if (slot.bytes == 0) return (undefined & 1) != 0;
        std::memcpy(now_->bits.data() + slot.offset + std::size_t{lane} * slot.bytes, &undefined, slot.bytes);
        return slot.bytes == 8 ? undefined != 0 : (undefined & ((u64{1} << 8 * slot.bytes) - 1)) != 0;
    }

    void set(const Slot& slot, u32 lanes, u32 undefined, Origin origin) {
        if (slot.index == 0) return;
        u32& mask = now_->masks[slot.index];
        mask = (mask & ~lanes) | undefined;
        if (undefined == 0) return;
        follow(*warp_);
        Origin& known = now_->origins[slot.index];
        if (mask != undefined && known.load != 0) {  // one origin for all lanes: it must be true of each
            origin.computed &= known.computed;
            origin.untouched &= known.untouched;
        }
        known = origin;
    }

    Origin origin_of(std::span<const Slot> slots, u32 lanes) const {
        for (const Slot& slot : slots) {
            if ((now_->masks[slot.index] & lanes) != 0) return now_->origins[slot.index];
        }
        return {};
    }

    void define(const Step& step, u32 lanes) {
        for (u32 k = 0; k < step.results; ++k) now_->masks[plan_.slots(step)[k].index] &= ~lanes;
    }

    void propagate(const Execution& e, const Step& step, u32 undefined) {
        const Slot* results = plan_.slots(step);
        const std::span<const Slot> sources(results + step.results, step.sources);
        LaneValue values[8];
        u32 made[8] = {};
        Origin origin = origin_of(sources, undefined);
        origin.computed |= step.how.computes;
        for (const unsigned l : LanesOf{undefined}) {
            for (std::size_t k = 0; k < sources.size() && k < 8; ++k) values[k] = read(e, sources[k], l);
            for (u32 k = 0; k < step.results && k < 8; ++k) {
                const LaneStep lane{e.key(), e.instruction(), {values, sources.size()}, k};
                if (write(results[k], l, step.how.undefined(lane))) made[k] |= 1u << l;
            }
        }
        for (u32 k = 0; k < step.results && k < 8; ++k) set(results[k], e.mask, made[k], origin);
    }

    // --- reports ---

    // The first report of each instruction has all details; others are only counted, because loops repeat them.
    void report_lanes(const Execution& e, u32 lanes, std::string what, Origin origin) {
        const auto [known, is_new] = repeated_.try_emplace(e.pc);
        if (!is_new) {
            known->second += static_cast<u64>(std::popcount(lanes));
            return;
        }
        const auto first = static_cast<unsigned>(std::countr_zero(lanes));
        Finding finding;
        finding.check = Check::init;
        finding.pc = e.pc;
        finding.first = deed_of(e, first, request_.block);
        finding.first.what = std::move(what);
        finding.advice = "give the variable a value before it is used";
        if (const auto found = sources_.find(origin.load); found != sources_.end()) {
            const Source& source = found->second;
            finding.other = finding.first;
            static_cast<machine::FaultPlace&>(*finding.other) =
                machine::place_of(e.code, request_.block, origin.load - 1, e.thread(first));
            finding.other->what = "read the value from " + std::string(source.space) + " memory";
            finding.address = source.address;
            finding.bytes = 1;
            finding.space = source.space;
            finding.advice = source.space == "global"
                                 ? "fill the array before the launch, or write each element before it is read"
                                 : "write each element before it is read; if another thread writes it, "
                                   "__syncthreads() must come in between";
        }
        report(launch_, std::move(finding), static_cast<u64>(std::popcount(lanes)));
    }

    // Reports the lanes in which the register is undefined. It counts as defined afterwards, to be reported once.
    void require(const Execution& e, const Slot& slot, const char* what) {
        u32& mask = now_->masks[slot.index];
        const u32 undefined = mask & e.mask;
        if (undefined == 0) return;
        report_lanes(e, undefined, what, now_->origins[slot.index]);
        mask &= ~undefined;
    }
    void require_index(const Execution& e, const Slot& slot) {
        require(e, slot, "used a value that nothing has written as an index");
    }

    // --- memory ---

    // Remembers what a load read. A value that is only copied may be padding or an unused member; it is certainly none if
    // nothing was written in a wide range around it.
    Origin remember(const Execution& e, u64 address, unsigned lane) {
        u64 first = 0, bytes = 0;
        Source source{address, "global"};
        if (address - program::local_window < program::window_bytes) {
            source = {0, "local"};
            std::tie(first, bytes) = std::pair(program::local_window, e.lanes.local_bytes);
        } else if (!is_device_address(address)) {
            source = {address - program::shared_window, "shared"};
            std::tie(first, bytes) = std::pair(program::shared_window, e.lanes.shared_bytes);
        } else if (const memory::Allocation* found = e.lanes.memory->find(address)) {
            std::tie(first, bytes) = std::pair(found->base, found->bytes);
        }
        sources_.try_emplace(e.pc + 1, source);
        constexpr u64 wide = 32 * 1024;
        const u64 from = std::max(first, address - std::min(address, wide));
        const auto size = static_cast<u32>(std::min(first + bytes - from, 2 * wide));
        const std::byte* bits = memory_.at(e.lanes, from, size, lane);
        // Equal to itself one byte later: all bytes are the same.
        const bool untouched =
            bits != nullptr && *bits == std::byte{0xff} && std::memcmp(bits, bits + 1, size - 1) == 0;
        return {e.pc + 1, false, untouched};
    }

    static bool is_certain(Origin origin) { return origin.computed || origin.untouched; }

    void load(const Execution& e, const Step& step) {
        const Slot* results = plan_.slots(step);
        require_index(e, results[step.results]);
        const machine::MemoryAccess& access = e.accesses[0];
        const u32 each = ptx::bytes_of(e.key().type);
        const u32 used = e.key().operation == Operation::ld_used ? e.instruction().operand.back() : ~0u;
        bool any = false;
        const bool usual = memory_.for_words(e, access, [&]<class Word>(const std::byte* at) {
            Word word;
            std::memcpy(&word, at, sizeof word);
            any |= static_cast<bool>(word);
        });
        if (usual && !any) return define(step, e.mask);
        const std::byte* at[32];
        u32 lanes = 0;
        for (const unsigned l : LanesOf{e.mask}) {
            at[l] = memory_.at(e.lanes, access.address[l], access.bytes, l);
            const auto is_defined = [](std::byte bits) { return bits == std::byte{0}; };
            if (at[l] != nullptr && !std::all_of(at[l], at[l] + access.bytes, is_defined)) lanes |= 1u << l;
        }
        if (lanes == 0) return define(step, e.mask);
        const auto first = static_cast<unsigned>(std::countr_zero(lanes));
        const Origin origin = remember(e, access.address[first], first);
        for (u32 k = 0; k < step.results; ++k) {
            u32 undefined = 0;
            for (const unsigned l : LanesOf{lanes}) {
                u64 bits = 0;
                for (u32 b = 0; b < each; ++b) {
                    if ((used >> (k * each + b) & 1) != 0)
                        bits |= static_cast<u64>(at[l][k * each + b]) << (8 * b);
                }
                if (write(results[k], l, extended(bits, e.key().type))) undefined |= 1u << l;
            }
            set(results[k], e.mask, undefined, origin);
        }
    }

    void store(const Execution& e, const Step& step, u32 undefined) {
        const Slot* values = plan_.slots(step);
        const u32 count = e.instruction().count;
        require_index(e, values[count]);
        const machine::MemoryAccess& access = e.accesses[0];
        const u32 each = ptx::bytes_of(e.key().type);
        const auto clear = []<class Word>(std::byte* at) { std::memset(at, 0, sizeof(Word)); };
        if (undefined == 0 && memory_.for_words(e, access, clear)) return;
        u32 wrong = 0;
        for (const unsigned l : LanesOf{e.mask}) {
            std::byte* at = memory_.at(e.lanes, access.address[l], access.bytes, l);
            if ((undefined >> l & 1) == 0) {
                if (at != nullptr) std::memset(at, 0, access.bytes);
                continue;
            }
            bool whole = is_device_address(access.address[l]);
            for (u32 k = 0; k < count; ++k) {
                const u64 bits = read(e, values[k], l).undefined;
                whole = whole && wholly_undefined(bits, each);
                if (at != nullptr) std::memcpy(at + k * each, &bits, each);
            }
            if (whole && is_certain(origin_of({values, count}, 1u << l))) {
                wrong |= 1u << l;
                if (at != nullptr) std::memset(at, 0, access.bytes);
            }
        }
        if (wrong != 0)
            report_lanes(e, wrong, "stored a value that nothing has written",
                         origin_of({values, count}, wrong));
    }

    void atomic(const Execution& e, const Step& step) {
        const Slot* results = plan_.slots(step);
        const Slot* sources = results + step.results;  // the address and two operands
        require_index(e, sources[0]);
        const machine::MemoryAccess& access = e.accesses[0];
        const program::FlagSet& flags = e.key().flags;
        const bool by_bits = !(flags & program::FlagSet{Flag::and_, Flag::or_, Flag::xor_}).empty();
        const bool replaces = flags.has(Flag::exch);
        u32 undefined = 0, operand = 0, memory = 0;
        Origin origin;
        for (const unsigned l : LanesOf{e.mask}) {
            u64 old = 0, given = 0;
            const std::span operands(sources + 1, 2);
            for (const Slot& each : operands) given |= read(e, each, l).undefined;
            if (wholly_undefined(given, access.bytes) && is_certain(origin_of(operands, 1u << l)))
                operand |= 1u << l;
            std::byte* at = memory_.at(e.lanes, access.address[l], access.bytes, l);
            if (at == nullptr) continue;
            std::memcpy(&old, at, access.bytes);
            if (old != 0) origin = remember(e, access.address[l], l);
            if (!replaces && !by_bits && wholly_undefined(old, access.bytes)) memory |= 1u << l;
            if (write(results[0], l, (memory >> l & 1) != 0 ? 0 : old)) undefined |= 1u << l;
            const u64 left = replaces ? given : by_bits ? old | given : 0;
            std::memcpy(at, &left, access.bytes);
        }
        if (operand != 0)
            report_lanes(e, operand, "passed a value that nothing has written to an atomic operation",
                         origin_of({sources + 1, 2}, operand));
        if (memory != 0)
            report_lanes(e, memory, "changed memory that nothing has written by an atomic operation", origin);
        set(results[0], e.mask, undefined, origin);
    }

    // cp.async copies some bytes, and zeros follow.
    void copy(const Execution& e, const Step& step) {
        const Slot* sources = plan_.slots(step);
        require_index(e, sources[0]);
        require_index(e, sources[1]);
        const u32 bytes = e.accesses[0].bytes;
        for (const unsigned l : LanesOf{e.mask}) {
            std::byte* to = memory_.at(e.lanes, e.accesses[0].address[l], bytes, l);
            if (to == nullptr) continue;
            std::memset(to, 0, bytes);
            const auto valid = std::min(static_cast<u32>(read(e, sources[2], l).bits), bytes);
            const std::byte* from = memory_.at(e.lanes, e.accesses[1].address[l], valid, l);
            if (from != nullptr) std::memcpy(to, from, valid);
        }
    }

    // Handlers log what they access in device memory. What they wrote is defined afterwards.
    void start_logging(Lanes& lanes) {
        usual_log_ = std::exchange(lanes.log, &log_);
        logs_ = true;
    }
    void stop_logging(Lanes& lanes) {
        logs_ = false;
        lanes.log = std::exchange(usual_log_, nullptr);
        using races::Access;
        for (auto& [number, page] : log_.pages()) {
            for (u32 word = 0; word < races::Page::words; ++word) {
                const u64 written = page->of[static_cast<unsigned>(Access::write)][word] |
                                    page->of[static_cast<unsigned>(Access::strong_write)][word];
                for (u64 left = written; left != 0; left &= left - 1)
                    request_.shadow->define(
                        number * races::page_bytes + word * 64 + static_cast<u64>(std::countr_zero(left)), 1);
            }
        }
        if (lanes.log != nullptr)
            lanes.log->take(log_);
        else
            log_.clear();
    }

    // --- calls ---

    // Copies what is known of an argument of `bytes` for each lane.
    void copy_place(u32 lanes, u32 from, u32 to, u32 bytes) {
        const u32 source = plan_.index_at(from), target = plan_.index_at(to);
        const u32 undefined = now_->masks[source] & lanes;
        set({to, target, 0}, lanes, undefined, now_->origins[source]);
        for (const unsigned l : LanesOf{undefined}) {
            const std::size_t offset = std::size_t{l} * bytes;
            std::memcpy(now_->bits.data() + to + offset, now_->bits.data() + from + offset, bytes);
        }
    }

    void load_argument(const Execution& e, const Slot& result, const Slot& place) {
        const u32 bytes = ptx::bytes_of(e.key().type), stride = e.instruction().extra;
        u32 undefined = 0;
        for (const unsigned l : LanesOf{now_->masks[place.index] & e.mask}) {
            u64 bits = 0;
            std::memcpy(
                &bits, now_->bits.data() + place.offset + e.instruction().immediate + std::size_t{l} * stride,
                bytes);
            if (write(result, l, extended(bits, e.key().type))) undefined |= 1u << l;
        }
        set(result, e.mask, undefined, now_->origins[place.index]);
    }

    void store_argument(const Execution& e, const Slot& place, const Slot& value) {
        const u32 bytes = ptx::bytes_of(e.key().type), stride = e.instruction().extra;
        const u32 given = now_->masks[value.index] & e.mask, known = now_->masks[place.index] & e.mask;
        for (const unsigned l : LanesOf{given | known}) {
            std::byte* at = now_->bits.data() + place.offset + std::size_t{l} * stride;
            if ((known >> l & 1) == 0) std::memset(at, 0, stride);
            const u64 bits = read(e, value, l).undefined;
            std::memcpy(at + e.instruction().immediate, &bits, bytes);
        }
        const Origin origin = given != 0 ? now_->origins[value.index] : now_->origins[place.index];
        set(place, e.mask, bytes == stride ? given : given | known, origin);
    }

    // --- operations of several lanes ---

    // Keeps the operands of all lanes: some may have begun to wait here before the check followed the warp.
    void keep(const Execution& e, const Slot& slot, unsigned which) {
        for (unsigned l = 0; l < 32; ++l) now_->kept[which][l] = static_cast<u32>(read(e, slot, l).bits);
    }

    // After the instruction, because only then all lanes are known.
    void exchange(const Execution& e, const Step& step) {
        const Slot* results = plan_.slots(step);
        const Slot& source = results[step.results];
        const u32 unknown = now_->masks[source.index] & e.mask;
        Origin origin = now_->origins[source.index];
        origin.computed |= step.kind != Kind::shuffle;
        u64 bits[32] = {};
        for (const unsigned l : LanesOf{unknown != 0 ? e.mask : 0})
            bits[l] = step.kind == Kind::shuffle          ? shuffled(e, source, l)
                      : (unknown & now_->kept[0][l]) == 0 ? 0
                      : e.key().flags.has(Flag::ballot)   ? unknown & now_->kept[0][l]
                                                          : ~u64{0};
        for (u32 k = 0; k < step.results; ++k) {
            u32 undefined = 0;
            const bool inside = step.kind == Kind::shuffle && k == 1;  // whether the source lane is one
            for (const unsigned l : LanesOf{inside ? 0 : e.mask}) {
                if (bits[l] != 0 && write(results[k], l, bits[l])) undefined |= 1u << l;
            }
            set(results[k], e.mask, undefined, origin);
        }
    }

    // As in handlers/shuffle.cpp.
    u64 shuffled(const Execution& e, const Slot& source, unsigned lane) const {
        const u32 distance = now_->kept[0][lane] & 31, segment = now_->kept[1][lane] >> 8 & 31;
        const u32 clamp = now_->kept[1][lane] & 31, low = lane & segment, bound = low | (clamp & ~segment);
        const program::FlagSet& mode = e.key().flags;
        const int at = static_cast<int>(mode.has(Flag::up)     ? lane - distance
                                        : mode.has(Flag::down) ? lane + distance
                                        : mode.has(Flag::bfly) ? lane ^ distance
                                                               : low | (distance & ~segment));
        const bool inside =
            mode.has(Flag::up) ? at >= static_cast<int>(bound) : at <= static_cast<int>(bound);
        const unsigned from = inside ? static_cast<unsigned>(at) : lane;
        if ((e.mask >> from & 1) == 0 || (now_->masks[source.index] >> from & 1) == 0) return 0;
        u32 undefined = 0;
        std::memcpy(&undefined, now_->bits.data() + source.offset + std::size_t{from} * 4, 4);
        return undefined;
    }

    const machine::LaunchRequest& request_;
    const LaunchName& launch_;
    const std::shared_ptr<const Plan> plan_of_code_;
    const Plan& plan_;
    UndefinedMemory memory_;
    std::unordered_map<const machine::Warp*, WarpShadow> warps_;
    std::unordered_map<u32, u64> repeated_;    ///< by instruction: threads that are not reported yet
    std::unordered_map<u32, Source> sources_;  ///< by Origin::load
    machine::Warp* warp_ = nullptr;            ///< the warp of `now_`
    WarpShadow* now_ = nullptr;
    races::AccessLog log_;
    races::AccessLog* usual_log_ = nullptr;  ///< what `log_` stands for
    bool logs_ = false;
};

}  // namespace
}  // namespace values

MadeCheck make_init_check(const Request& request, const LaunchName& launch) {
    return std::make_unique<values::Init>(request, launch);
}

}  // namespace emulated::checks
