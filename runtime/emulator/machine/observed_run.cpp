// Runs code for observers: at normal speed up to an instruction that one of them sees, then this one alone. Also finds the
// memory that each instruction accesses.
#include <cstring>
#include <string>
#include <typeinfo>
#include <utility>

#include "machine/groups.hpp"
#include "machine/observer.hpp"
#include "machine/warp.hpp"
#include "program/table/matrices.hpp"

namespace emulated::machine {
namespace {

using program::Code;
using program::Key;
using program::Operation;

const Instruction* stay(Lanes&, const Instruction* i) { return i; }

/// Where an instruction has the address of an access, and what it does there.
struct Form {
    std::uint8_t operand = 0;
    bool reads = false, writes = false, is_atomic = false, is_async = false;
};

// The forms of memory instructions. Generic addresses and windows need no distinction here.
std::uint32_t forms_of(const Key& key, Form (&forms)[2]) {
    switch (key.operation) {
        case Operation::ld:
        case Operation::ld_used:
        case Operation::ldmatrix:
        case Operation::load_matrix:
            forms[0] = {1, true, false};
            return 1;
        case Operation::stmatrix:
        case Operation::store_matrix:
            forms[0] = {1, false, true};
            return 1;
        case Operation::st:
            forms[0] = {1, false, true};
            return 1;
        case Operation::atom:
            forms[0] = {1, true, true, true};
            return 1;
        case Operation::atom_wide:
            forms[0] = {3, true, true, true};
            return 1;
        case Operation::copy_async:
            forms[0] = {0, false, true, false, true};
            forms[1] = {1, true, false, false, true};
            return 2;
        default:
            return 0;
    }
}

// The bytes that each lane accesses.
std::uint32_t bytes_of(const Key& key, const Instruction& i) {
    const std::uint32_t one = ptx::bytes_of(key.type);
    switch (key.operation) {
        case Operation::ld:
        case Operation::ld_used:
        case Operation::st:
            return one * i.count;
        case Operation::atom_wide:
            return 16;
        case Operation::ldmatrix:
        case Operation::stmatrix:
            return 16;
        case Operation::copy_async:
            return static_cast<std::uint32_t>(i.immediate);
        default:
            return one;
    }
}

void read_addresses(const Lanes& s, const Instruction& i, std::uint32_t slot, MemoryAccess& access) {
    const bool has_displacement = !access.is_async;
    const std::byte* at = s.registers + slot;
    if (i.bits & Instruction::narrow) {
        const auto* a = reinterpret_cast<const u32*>(at);
        const u32 add = has_displacement ? static_cast<u32>(i.immediate) : 0;
        for (unsigned l = 0; l < 32; ++l) access.address[l] = static_cast<u32>(a[l] + add);
        return;
    }
    const auto* a = reinterpret_cast<const u64*>(at);
    u64 add = has_displacement ? static_cast<u64>(i.immediate) : 0;
    if (i.bits & Instruction::has_base) add += *reinterpret_cast<const u64*>(s.registers + i.operand[2]);
    for (unsigned l = 0; l < 32; ++l) access.address[l] = a[l] + add;
}

// The lines of a matrix of wmma, which lanes 0, 1, ... stand for: its rows, or its columns if those are contiguous. All lanes
// have the same address and stride.
void find_lines(const Lanes& s, const Instruction& i, MemoryAccess& access) {
    const auto f = program::unpacked<program::Fragment>(&i);
    const std::uint32_t outer = f.outer * 8u, inner = f.inner * 4u * f.per_register * f.registers;
    const std::uint32_t lines = f.inner_contiguous ? outer : inner,
                        length = f.inner_contiguous ? inner : outer;
    std::uint32_t stride = 0;
    std::memcpy(&stride, s.registers + i.operand[2], sizeof stride);
    u64 address = 0, displacement = 0;
    std::memcpy(&address, s.registers + i.operand[1], i.bits & Instruction::narrow ? 4 : 8);
    std::memcpy(&displacement, s.registers + i.operand[3], sizeof displacement);
    access.bytes = length * f.bits / 8;
    access.lanes &= lines == 32 ? ~0u : (1u << lines) - 1;
    for (unsigned l = 0; l < lines; ++l)
        access.address[l] = address + displacement + u64{l} * stride * f.bits / 8;
}

std::uint32_t find_accesses(const Lanes& s, const Key& key, const Instruction& i,
                            MemoryAccess (&accesses)[2]) {
    Form forms[2];
    const std::uint32_t count = forms_of(key, forms);
    for (std::uint32_t k = 0; k < count; ++k) {
        const Form& form = forms[k];
        accesses[k].lanes = s.mask;
        accesses[k].bytes = bytes_of(key, i);
        accesses[k].reads = form.reads;
        accesses[k].writes = form.writes;
        accesses[k].is_atomic = form.is_atomic;
        accesses[k].is_async = form.is_async;
        if (key.operation == Operation::load_matrix || key.operation == Operation::store_matrix) {
            find_lines(s, i, accesses[k]);
            continue;
        }
        if (key.operation == Operation::ldmatrix || key.operation == Operation::stmatrix)
            accesses[k].lanes &= i.count == 4 ? ~0u : (1u << 8 * i.count) - 1;
        read_addresses(s, i, i.operand[form.operand], accesses[k]);
    }
    return count;
}

}  // namespace

std::uint32_t Execution::thread(unsigned lane) const { return 32 * lanes.warp->index + lane; }

bool accesses_memory(const Key& key) noexcept {
    Form forms[2];
    return forms_of(key, forms) != 0;
}

void Observer::follow(Warp& warp) const noexcept { warp.followed |= bit_; }

void Observers::add(std::unique_ptr<Observer> observer) {
    if (observer == nullptr) return;
    observer->bit_ = 1u << all_.size();
    all_.push_back(std::move(observer));
}

void Observers::observe(const Code& code) {
    std::string kinds;
    for (const auto& each : all_) {
        const Observer& observer = *each;
        kinds += typeid(observer).name();
    }
    code_ = derived(code, std::move(kinds), [&] {
        const auto returns = reinterpret_cast<void (*)()>(stay);
        ObservedCode made{std::vector<ObservedCode::Seen>(code.instructions.size()), code.instructions,
                          code.instructions};
        for (std::uint32_t pc = 0; pc < code.instructions.size(); ++pc) {
            ObservedCode::Seen& seen = made.seen[pc];
            for (const auto& each : all_) {
                if (each->sees_before(code, pc)) seen.before |= each->bit_;
                if (each->sees_after(code, pc)) seen.after |= each->bit_;
            }
            made.all[pc].handler = returns;
            if ((seen.before | seen.after) != 0) made.some[pc].handler = returns;
        }
        return made;
    });
}

void Observers::run(Lanes& lanes, std::uint32_t pc) const {
    const Code& code = *lanes.block->grid->code;
    MemoryAccess accesses[2];
    for (;;) {
        const auto handler = reinterpret_cast<Handler>(code.instructions[pc].handler);
        const std::uint32_t followed = lanes.warp->followed, before = code_->seen[pc].before | followed,
                            after = code_->seen[pc].after | followed;
        if ((before | after) == 0) {
            lanes.code = code_->some.data();
            const Instruction* const at = handler(lanes, lanes.code + pc);
            if (at == nullptr) return;
            pc = static_cast<std::uint32_t>(at - lanes.code);
            continue;
        }
        lanes.code = code_->all.data();
        const Instruction* at = lanes.code + pc;
        Execution execution{lanes, code, pc, lanes.mask};
        execution.accesses = {accesses, find_accesses(lanes, code.keys[pc], *at, accesses)};
        for (const unsigned k : LanesOf{before}) all_[k]->before(execution);
        const std::uint32_t mask = lanes.mask;
        at = handler(lanes, at);
        const bool again = at == nullptr && lanes.pc == pc &&
                           (lanes.stop == Stop::meeting || lanes.stop == Stop::cluster_barrier ||
                            lanes.stop == Stop::registers || lanes.stop == Stop::waiting);
        if (lanes.stop == Stop::fault && at == nullptr) return;
        if (again) return;
        // A branch or a guard leaves only some of the lanes in the group; a shuffle may have gathered more.
        execution.mask = mask | (at != nullptr ? lanes.mask : 0);
        for (const unsigned k : LanesOf{after}) all_[k]->after(execution);
        if (at == nullptr) return;
        pc = static_cast<std::uint32_t>(at - lanes.code);
    }
}

FaultPlace place_of(const Code& code, const Dim3& block, std::uint32_t pc, std::uint32_t thread) {
    const Code::Line& line = code.lines[pc];
    FaultPlace made;
    made.file = code.files[line.file];
    made.line = line.source;
    made.thread = {thread % block.x, thread / block.x % block.y, thread / block.x / block.y};
    made.ptx_line = line.ptx;
    made.caller = {code.files[line.caller_file], line.caller};
    return made;
}

}  // namespace emulated::machine
