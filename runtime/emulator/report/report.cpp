#include "report/report.hpp"

#include <fmt/format.h>

#include "ptx/names.hpp"

namespace emulated::report {

std::string demangled(const std::string& kernel) {
    std::string name = ptx::demangled(kernel);
    if (name.starts_with("void ")) name.erase(0, 5);  // a template's result is part of its mangled name
    // The parameter list starts at the parenthesis that closes last.
    int depth = 0;
    for (std::size_t i = name.size(); i-- > 0;) {
        if (name[i] == ')') ++depth;
        if (name[i] == '(' && --depth == 0) return name.substr(0, i);
    }
    return name;
}

namespace {

const char* title(machine::Fault::Kind kind) noexcept {
    using Kind = machine::Fault::Kind;
    switch (kind) {
        case Kind::illegal_address:
            return "illegal address";
        case Kind::misaligned_address:
            return "misaligned address";
        case Kind::invalid_address_space:
            return "invalid address space";
        case Kind::invalid_pc:
            return "invalid program counter";
        case Kind::stack_error:
            return "stack error";
        case Kind::launch_failed:
            return "launch failure";
        case Kind::assertion:
            return "assertion";
        case Kind::illegal_instruction:
            return "illegal instruction";
        case Kind::timeout:
            return "timeout";
        case Kind::cancelled:
            return "interrupted";
    }
    return "fault";
}

std::string triple(machine::Dim3 value) { return fmt::format("({},{},{})", value.x, value.y, value.z); }

std::string place(const machine::FaultPlace& fault) {
    if (fault.line == 0) return fmt::format("PTX line {}", fault.ptx_line);
    return fmt::format("line {} of {} (PTX line {})", fault.line,
                       fault.file.empty() ? "the source" : fault.file, fault.ptx_line);
}

}  // namespace

std::string describe(const machine::Fault& fault, const memory::Heap& heap) {
    std::string text = fmt::format("{}: kernel '{}'", title(fault.kind), demangled(fault.kernel));
    if (fault.access_bytes > 0) {
        text += fmt::format(" {} {} bytes of {} memory at {:#x}", fault.write ? "wrote" : "read",
                            fault.access_bytes, fault.space, fault.address);
        const std::string space = fault.space;
        if (space == "global" || space == "generic" || space == "const") {
            text += ", " + heap.describe(fault.address, fault.access_bytes);
            const memory::Allocation* allocation = heap.find(fault.address);
            if (fault.write && allocation != nullptr && allocation->read_only) text += ", which is constant";
        }
    }
    if (fault.ptx_line > 0) {
        text += fmt::format("\n  in block {}, thread {}", triple(fault.block), triple(fault.thread));
        text += "\n  at " + place(fault);
    }
    if (fault.loop) text += "\n  in the loop that begins at " + place(*fault.loop);
    if (!fault.message.empty()) text += "\n  " + fault.message;
    for (const machine::FaultPlace& other : fault.waiting) {
        text += fmt::format("\n  thread {} waits at {}", triple(other.thread), place(other));
    }
    if (fault.other_threads > 0) {
        text += fmt::format("\n  {} other {} of the block did the same", fault.other_threads,
                            fault.other_threads == 1 ? "thread" : "threads");
    }
    return text;
}

int driver_code(machine::Fault::Kind kind) noexcept {
    using Kind = machine::Fault::Kind;
    switch (kind) {
        case Kind::illegal_address:
            return 700;
        case Kind::timeout:
        case Kind::cancelled:
            return 702;
        case Kind::assertion:
            return 710;
        case Kind::illegal_instruction:
            return 715;
        case Kind::misaligned_address:
            return 716;
        case Kind::invalid_address_space:
            return 717;
        case Kind::invalid_pc:
            return 718;
        case Kind::stack_error:
            return 714;
        case Kind::launch_failed:
            return 719;
    }
    return 719;
}

}  // namespace emulated::report
