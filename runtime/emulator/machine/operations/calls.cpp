// Calls: direct, through pointers, and the frames of functions that may be entered again before they return.
#include <algorithm>
#include <cstring>

#include "machine/groups.hpp"
#include "machine/registry.hpp"
#include "machine/warp.hpp"

namespace emulated::machine {
namespace {

using program::Code;

// --- calls -------------------------------------------------------------------------------------------------

// Each lane keeps where it returns to, so groups from different call sites can run a function together.
const Instruction* enter(Lanes& s, const Instruction* i, std::uint32_t return_slot, std::uint32_t start) {
    const std::uint32_t next = index_of(s, i) + 1;
    auto* back = lanes_at<std::uint32_t>(s, return_slot);
    for (const unsigned l : LanesOf{s.mask}) back[l] = next;
    ++s.depth;
    s.yield_pc = ~0u;  // no group is deeper: the deepest run first
    if (--s.budget == 0) return spent(s, i, start);
    if (!s.alone) return reselect(s, start);
    return s.code + start;
}

const Instruction* call(Lanes& s, const Instruction* i) {
    return enter(s, i, i->operand[0], static_cast<std::uint32_t>(i->immediate));
}

const Instruction* ret(Lanes& s, const Instruction* i) {
    const auto* back = lanes_at<std::uint32_t>(s, i->operand[0]);
    --s.depth;
    std::uint32_t left = s.mask;
    for (;;) {
        const std::uint32_t pc = back[__builtin_ctz(left)];
        std::uint32_t same = 0;
        for (unsigned l = 0; l < 32; ++l) same |= static_cast<std::uint32_t>(back[l] == pc) << l;
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

const Code::Callee* callee_at(const Lanes& s, std::uint64_t address) {
    const auto& callees = s.block->grid->code->callees;
    const auto found = std::ranges::find(callees, address, &Code::Callee::address);
    return found == callees.end() ? nullptr : &*found;
}

// Places of a call as the instruction lists them.
struct Places {
    Places(const Lanes& s, const Instruction* i) : at(s.lists + i->operand[0]), count(i->count) {}
    std::uint32_t offset(std::size_t k) const { return at[3 * k]; }
    std::size_t stride(std::size_t k) const { return at[3 * k + 1]; }
    std::uint32_t bytes(std::size_t k) const { return at[3 * k + 2]; }
    const std::uint32_t* at;
    unsigned count;
};

bool fits(const std::vector<Code::Callee::Place>& formals, const Places& given) {
    if (formals.size() != given.count) return false;
    for (unsigned k = 0; k < given.count; ++k) {
        if (given.stride(k) != 0 && formals[k].stride != given.stride(k)) return false;
    }
    return true;
}

// Lanes whose pointers differ call one function after the other: those of another function come here again.
const Instruction* call_pointer(Lanes& s, const Instruction* i) {
    const auto* pointers = lanes_at<std::uint64_t>(s, i->operand[1]);
    const std::uint64_t address = pointers[__builtin_ctz(s.mask)];
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
    for (unsigned k = 0; k < arguments.count; ++k) {
        const std::size_t stride = arguments.stride(k);
        for (const unsigned l : LanesOf{s.mask}) {
            std::memcpy(s.registers + callee->parameters[k].offset + l * stride,
                        s.registers + arguments.offset(k) + l * stride, stride);
        }
    }
    return enter(s, i, callee->return_slot, callee->start);
}

// Lanes that called different functions may stand here together.
const Instruction* take_results(Lanes& s, const Instruction* i) {
    const auto* pointers = lanes_at<std::uint64_t>(s, i->operand[1]);
    const Places results(s, i);
    if (results.count == 0) return i + 1;
    for (const unsigned l : LanesOf{s.mask}) {
        const Code::Callee* callee = callee_at(s, pointers[l]);
        for (unsigned k = 0; k < results.count; ++k) {
            const std::size_t stride = results.stride(k);
            std::memcpy(s.registers + results.offset(k) + l * stride,
                        s.registers + callee->results[k].offset + l * stride, stride);
        }
    }
    return i + 1;
}

// --- frames on the lanes' stacks, which lie in their local memory ------------------------------------------

// Lanes whose stack cannot grow by so much.
std::uint32_t overflowing(const Lanes& s, const std::uint32_t* stack, std::uint64_t bytes) {
    return lanes_where(s.mask, [&](unsigned l) { return stack[l] + bytes > s.local_bytes; });
}

const Instruction* enter_frame(Lanes& s, const Instruction* i) {
    auto* frame = lanes_at<std::uint64_t>(s, i->operand[0]);
    std::uint32_t* stack = lanes_at<std::uint32_t>(s, i->operand[1]);
    const auto bytes = static_cast<std::uint64_t>(i->immediate);
    if (const std::uint32_t over = overflowing(s, stack, bytes))
        return fault(s, i, LaneFault::What::stack, over);
    for (const unsigned l : LanesOf{s.mask}) {
        frame[l] = program::local_window + stack[l];
        stack[l] += static_cast<std::uint32_t>(bytes);
    }
    return i + 1;
}

const Instruction* leave_frame(Lanes& s, const Instruction* i) {
    std::uint32_t* stack = lanes_at<std::uint32_t>(s, i->operand[0]);
    for (const unsigned l : LanesOf{s.mask}) stack[l] -= static_cast<std::uint32_t>(i->immediate);
    return i + 1;
}

// alloca. A stack that would leave its place is a fault, before anything is written there.
const Instruction* stack_allocate(Lanes& s, const Instruction* i) {
    auto* addresses = lanes_at<std::uint64_t>(s, i->operand[0]);
    std::uint32_t* stack = lanes_at<std::uint32_t>(s, i->operand[1]);
    const auto* bytes = lanes_at<std::uint64_t>(s, i->operand[2]);
    const auto alignment = static_cast<std::uint64_t>(i->immediate);
    std::uint32_t over = 0;
    for (const unsigned l : LanesOf{s.mask}) {
        const std::uint64_t start = (stack[l] + alignment - 1) / alignment * alignment;
        const std::uint64_t room = s.local_bytes - std::min<std::uint64_t>(start, s.local_bytes);
        if (bytes[l] > room) {
            over |= 1u << l;
            continue;
        }
        // What comes next keeps its alignment. The result may lie where the size lay: it is written last.
        stack[l] = static_cast<std::uint32_t>(std::min(start + (bytes[l] + 15) / 16 * 16, s.local_bytes));
        addresses[l] = program::local_window + start;
    }
    return over == 0 ? i + 1 : fault(s, i, LaneFault::What::stack, over);
}

const Instruction* stack_save(Lanes& s, const Instruction* i) {
    auto* saved = lanes_at<std::uint64_t>(s, i->operand[0]);
    const std::uint32_t* stack = lanes_at<std::uint32_t>(s, i->operand[1]);
    for (const unsigned l : LanesOf{s.mask}) saved[l] = program::local_window + stack[l];
    return i + 1;
}

const Instruction* stack_restore(Lanes& s, const Instruction* i) {
    const auto* saved = lanes_at<std::uint64_t>(s, i->operand[0]);
    std::uint32_t* stack = lanes_at<std::uint32_t>(s, i->operand[1]);
    std::uint32_t wrong = 0;
    for (const unsigned l : LanesOf{s.mask}) {
        const std::uint64_t offset = saved[l] - program::local_window;
        if (offset > stack[l])
            wrong |= 1u << l;
        else
            stack[l] = static_cast<std::uint32_t>(offset);
    }
    return wrong == 0 ? i + 1 : fault(s, i, LaneFault::What::stack, wrong);
}

// Frames keep their alignment, so that local variables above them have theirs.
std::uint32_t frame_bytes(const Instruction* i) {
    return static_cast<std::uint32_t>((i->immediate + 15) / 16 * 16);
}

const Instruction* save_frame(Lanes& s, const Instruction* i) {
    std::uint32_t* stack = lanes_at<std::uint32_t>(s, i->operand[1]);
    const Places places(s, i);
    if (const std::uint32_t over = overflowing(s, stack, frame_bytes(i)))
        return fault(s, i, LaneFault::What::stack, over);
    for (const unsigned l : LanesOf{s.mask}) {
        std::byte* to = s.local + l * s.local_bytes + stack[l];
        for (unsigned k = 0; k < places.count; ++k) {
            const std::byte* from = s.registers + places.offset(k);
            if (places.bytes(k) == 0) {
                std::uint32_t lanes;
                std::memcpy(&lanes, from, sizeof lanes);
                *to++ = static_cast<std::byte>(lanes >> l & 1u);
            } else {
                std::memcpy(to, from + l * places.stride(k), places.bytes(k));
                to += places.bytes(k);
            }
        }
        stack[l] += frame_bytes(i);
    }
    return i + 1;
}

const Instruction* restore_frame(Lanes& s, const Instruction* i) {
    std::uint32_t* stack = lanes_at<std::uint32_t>(s, i->operand[1]);
    const Places places(s, i);
    for (const unsigned l : LanesOf{s.mask}) {
        stack[l] -= frame_bytes(i);
        const std::byte* from = s.local + l * s.local_bytes + stack[l];
        for (unsigned k = 0; k < places.count; ++k) {
            std::byte* to = s.registers + places.offset(k);
            if (places.bytes(k) == 0) {
                std::uint32_t lanes;
                std::memcpy(&lanes, to, sizeof lanes);
                lanes = (lanes & ~(1u << l)) | (static_cast<std::uint32_t>(*from++) & 1u) << l;
                std::memcpy(to, &lanes, sizeof lanes);
            } else {
                std::memcpy(to + l * places.stride(k), from, places.bytes(k));
                from += places.bytes(k);
            }
        }
    }
    return i + 1;
}

}  // namespace

void register_calls(Registry& r) {
    const auto none = Type::none;
    r.add(Operation::call, none, none, {}, call);
    r.add(Operation::call_pointer, none, none, {}, call_pointer);
    r.add(Operation::take_results, none, none, {}, take_results);
    r.add(Operation::ret, none, none, {}, ret);
    r.add(Operation::enter_frame, none, none, {}, enter_frame);
    r.add(Operation::leave_frame, none, none, {}, leave_frame);
    r.add(Operation::stack_allocate, none, none, {}, stack_allocate);
    r.add(Operation::stack_save, none, none, {}, stack_save);
    r.add(Operation::stack_restore, none, none, {}, stack_restore);
    r.add(Operation::save_frame, none, none, {}, save_frame);
    r.add(Operation::restore_frame, none, none, {}, restore_frame);
}

}  // namespace emulated::machine
