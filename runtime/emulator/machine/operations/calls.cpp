// Handlers of calls, direct and through pointers, and the stack frames of functions that can be re-entered.
#include <algorithm>
#include <cstring>

#include "machine/groups.hpp"
#include "machine/registry.hpp"
#include "machine/warp.hpp"

namespace emulated::machine {
namespace {

using program::Code;

// --- calls -------------------------------------------------------------------------------------------------

// Each lane keeps its return position, so that groups from different call sites can run a function together.
const Instruction* enter(Lanes& s, const Instruction* i, u32 return_slot, u32 start) {
    const u32 next = index_of(s, i) + 1;
    u32* back = lanes_at<u32>(s, return_slot);
    for (const unsigned l : LanesOf{s.mask}) back[l] = next;
    ++s.depth;
    s.yield_pc = ~0u;  // no group is deeper, and the deepest runs first
    if (--s.budget == 0) return spent(s, i, start);
    if (!s.alone) return reselect(s, start);
    return s.code + start;
}

const Instruction* call(Lanes& s, const Instruction* i) {
    return enter(s, i, i->operand[0], static_cast<u32>(i->immediate));
}

const Instruction* ret(Lanes& s, const Instruction* i) {
    const u32* back = lanes_at<u32>(s, i->operand[0]);
    --s.depth;
    u32 left = s.mask;
    for (;;) {
        const u32 pc = back[__builtin_ctz(left)];
        u32 same = 0;
        for (unsigned l = 0; l < 32; ++l) same |= static_cast<u32>(back[l] == pc) << l;
        same &= left;
        left &= ~same;
        if (left == 0) {
            s.mask = same;
            s.write_mask = s.mask | s.dead;
            if (s.alone) return s.code + pc;
            return reselect(s, pc);
        }
        part(s, same, pc);
    }
}

// --- calls through pointers --------------------------------------------------------------------------------

const Code::Callee* callee_at(const Lanes& s, u64 address) {
    const auto& callees = s.block->grid->code->callees;
    const auto found = std::ranges::find(callees, address, &Code::Callee::address);
    return found == callees.end() ? nullptr : &*found;
}

// The source or destination registers in a call's list.
struct Places {
    Places(const Lanes& s, const Instruction* i) : at(s.lists + i->operand[0]), count(i->count) {}
    Code::Place operator[](std::size_t k) const { return {at[2 * k], at[2 * k + 1]}; }
    const u32* at;
    unsigned count;
};

void copy_lane(Lanes& s, unsigned lane, const Code::Place& from, u32 to) {
    const std::size_t offset = std::size_t{lane} * from.bytes;
    std::memcpy(s.registers + to + offset, s.registers + from.offset + offset, from.bytes);
}

bool fits(const std::vector<Code::Place>& formals, const Places& given) {
    if (formals.size() != given.count) return false;
    for (unsigned k = 0; k < given.count; ++k) {
        if (given[k].bytes != 0 && formals[k].bytes != given[k].bytes) return false;
    }
    return true;
}

// Calls the function of the first active lane. Lanes with other pointers run this instruction again afterwards.
const Instruction* call_pointer(Lanes& s, const Instruction* i) {
    const u64* pointers = lanes_at<u64>(s, i->operand[1]);
    const u64 address = pointers[__builtin_ctz(s.mask)];
    const u32 same = lanes_where(s.mask, [&](unsigned l) { return pointers[l] == address; });
    const Code::Callee* callee = callee_at(s, address);
    const Places arguments(s, i);
    if (!callee || !fits(callee->parameters, arguments) || callee->results.size() != i->extra)
        return fault(s, i, LaneFault::What::bad_call, same, address);
    if (same != s.mask) {
        part(s, s.mask & ~same, index_of(s, i));
        s.mask = same;
        s.write_mask = s.mask | s.dead;
    }
    for (const unsigned l : LanesOf{s.mask}) {
        for (unsigned k = 0; k < arguments.count; ++k)
            copy_lane(s, l, arguments[k], callee->parameters[k].offset);
    }
    return enter(s, i, callee->return_slot, callee->start);
}

// The lanes may have called different functions.
const Instruction* take_results(Lanes& s, const Instruction* i) {
    const u64* pointers = lanes_at<u64>(s, i->operand[1]);
    const Places results(s, i);
    if (results.count == 0) return i + 1;
    for (const unsigned l : LanesOf{s.mask}) {
        const Code::Callee* callee = callee_at(s, pointers[l]);
        for (unsigned k = 0; k < results.count; ++k)
            copy_lane(s, l, {callee->results[k].offset, results[k].bytes}, results[k].offset);
    }
    return i + 1;
}

// --- frames on the lanes' stacks, which are in local memory -----------------------------------------------

// Lanes whose stack cannot grow by `bytes`.
u32 overflowing(const Lanes& s, const u32* stack, u64 bytes) {
    return lanes_where(s.mask, [&](unsigned l) { return stack[l] + bytes > s.local_bytes; });
}

const Instruction* enter_frame(Lanes& s, const Instruction* i) {
    u64* frame = lanes_at<u64>(s, i->operand[0]);
    u32* stack = lanes_at<u32>(s, i->operand[1]);
    const auto bytes = static_cast<u64>(i->immediate);
    if (const u32 over = overflowing(s, stack, bytes)) return fault(s, i, LaneFault::What::stack, over);
    for (const unsigned l : LanesOf{s.mask}) {
        frame[l] = program::local_window + stack[l];
        stack[l] += static_cast<u32>(bytes);
    }
    return i + 1;
}

const Instruction* leave_frame(Lanes& s, const Instruction* i) {
    u32* stack = lanes_at<u32>(s, i->operand[0]);
    for (const unsigned l : LanesOf{s.mask}) stack[l] -= static_cast<u32>(i->immediate);
    return i + 1;
}

// alloca. A stack overflow is a fault here, before the kernel writes to the memory.
const Instruction* stack_allocate(Lanes& s, const Instruction* i) {
    u64* addresses = lanes_at<u64>(s, i->operand[0]);
    u32* stack = lanes_at<u32>(s, i->operand[1]);
    const u64* bytes = lanes_at<u64>(s, i->operand[2]);
    const auto alignment = static_cast<u64>(i->immediate);
    u32 over = 0;
    for (const unsigned l : LanesOf{s.mask}) {
        const u64 start = (stack[l] + alignment - 1) / alignment * alignment;
        const u64 room = s.local_bytes - std::min<u64>(start, s.local_bytes);
        if (bytes[l] > room) {
            over |= 1u << l;
            continue;
        }
        // Keeps the stack aligned. The result is written last, because its register may be that of the size.
        stack[l] = static_cast<u32>(std::min(start + (bytes[l] + 15) / 16 * 16, s.local_bytes));
        addresses[l] = program::local_window + start;
    }
    return over == 0 ? i + 1 : fault(s, i, LaneFault::What::stack, over);
}

const Instruction* stack_save(Lanes& s, const Instruction* i) {
    u64* saved = lanes_at<u64>(s, i->operand[0]);
    const u32* stack = lanes_at<u32>(s, i->operand[1]);
    for (const unsigned l : LanesOf{s.mask}) saved[l] = program::local_window + stack[l];
    return i + 1;
}

const Instruction* stack_restore(Lanes& s, const Instruction* i) {
    const u64* saved = lanes_at<u64>(s, i->operand[0]);
    u32* stack = lanes_at<u32>(s, i->operand[1]);
    u32 wrong = 0;
    for (const unsigned l : LanesOf{s.mask}) {
        const u64 offset = saved[l] - program::local_window;
        if (offset > stack[l])
            wrong |= 1u << l;
        else
            stack[l] = static_cast<u32>(offset);
    }
    return wrong == 0 ? i + 1 : fault(s, i, LaneFault::What::stack, wrong);
}

// Frame sizes are rounded up, so that local variables above a frame stay aligned.
u32 frame_bytes(const Instruction* i) { return static_cast<u32>((i->immediate + 15) / 16 * 16); }

template <bool Saves>
const Instruction* move_frame(Lanes& s, const Instruction* i) {
    u32* stack = lanes_at<u32>(s, i->operand[1]);
    const Places places(s, i);
    const u32 over = Saves ? overflowing(s, stack, frame_bytes(i)) : 0;
    if (over != 0) return fault(s, i, LaneFault::What::stack, over);
    for (const unsigned l : LanesOf{s.mask}) {
        if (!Saves) stack[l] -= frame_bytes(i);
        std::byte* kept = s.local + l * s.local_bytes + stack[l];
        for (unsigned k = 0; k < places.count; ++k) {
            const auto [offset, bytes] = places[k];
            std::byte* value = s.registers + offset + std::size_t{l} * bytes;
            if (bytes != 0) {
                std::memcpy(Saves ? kept : value, Saves ? value : kept, bytes);
                kept += bytes;
                continue;
            }
            u32& predicate = predicate_at(s, offset);
            if (Saves)
                *kept++ = static_cast<std::byte>(predicate >> l & 1u);
            else
                predicate = (predicate & ~(1u << l)) | (static_cast<u32>(*kept++) & 1u) << l;
        }
        if (Saves) stack[l] += frame_bytes(i);
    }
    return i + 1;
}

}  // namespace

void register_calls(Registry& r) {
    r.add(Operation::call, call);
    r.add(Operation::call_pointer, call_pointer);
    r.add(Operation::take_results, take_results);
    r.add(Operation::ret, ret);
    r.add(Operation::enter_frame, enter_frame);
    r.add(Operation::leave_frame, leave_frame);
    r.add(Operation::stack_allocate, stack_allocate);
    r.add(Operation::stack_save, stack_save);
    r.add(Operation::stack_restore, stack_restore);
    r.add(Operation::save_frame, move_frame<true>);
    r.add(Operation::restore_frame, move_frame<false>);
}

}  // namespace emulated::machine
