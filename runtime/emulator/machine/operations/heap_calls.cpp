// malloc and free in kernels; new and delete call them.
#include <bit>

#include <fmt/format.h>

#include "machine/groups.hpp"
#include "machine/registry.hpp"
#include "machine/warp.hpp"

namespace emulated::machine {
namespace {

SourceLine line_of(const Lanes& s, const Instruction* i) {
    const program::Code& code = *s.block->grid->code;
    const program::Code::Line& line = code.lines[index_of(s, i)];
    return {code.files[line.file], line.source};
}

// A lane gets null if its alignment is not a power of two, if the launch has no heap, or if the heap is full.
const Instruction* allocate(Lanes& s, const Instruction* i) {
    DeviceHeap* heap = s.block->grid->request->heap;
    u64* results = lanes_at<u64>(s, i->operand[0]);
    const u64* bytes = lanes_at<u64>(s, i->operand[1]);
    const u64* alignments = lanes_at<u64>(s, i->operand[2]);
    const SourceLine line = line_of(s, i);
    for (const unsigned l : LanesOf{s.mask}) {
        const bool possible = heap != nullptr && std::has_single_bit(alignments[l]);
        results[l] = possible ? heap->allocate(bytes[l], alignments[l], line) : 0;
    }
    return i + 1;
}

const Instruction* release(Lanes& s, const Instruction* i) {
    DeviceHeap* heap = s.block->grid->request->heap;
    const u64* addresses = lanes_at<u64>(s, i->operand[0]);
    const SourceLine line = line_of(s, i);
    u32 wrong = 0;
    std::string message;
    for (const unsigned l : LanesOf{s.mask}) {
        if (addresses[l] == 0) continue;
        std::string why = heap == nullptr ? "there is no heap" : heap->free(addresses[l], line);
        if (why.empty()) continue;
        if (wrong == 0) message = fmt::format("free({:#x}): {}", addresses[l], why);
        wrong |= 1u << l;
    }
    if (wrong == 0) return i + 1;
    return misuse(s, i, wrong, std::move(message), LaneFault::What::bad_free);
}

}  // namespace

void register_heap_calls(Registry& r) {
    r.add(Operation::heap_allocate, allocate);
    r.add(Operation::heap_free, release);
}

}  // namespace emulated::machine
