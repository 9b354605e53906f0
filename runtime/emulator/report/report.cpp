#include "report/report.hpp"

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <iterator>
#include <string_view>

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

using Kind = machine::Fault::Kind;

std::atomic<bool> wanted{false}, has_reader{false};  // print unread reports; a reader exists

/// A kind of fault: its title in reports, what the kernel did if it is not an access, and the driver's code.
struct Row {
    Kind kind;
    const char* title;
    const char* did;
    int code;
};
constexpr Row rows[] = {
    {Kind::illegal_address, "illegal address", "used an illegal address", 700},
    {Kind::bad_image, "bad texture", "misused a texture or surface", 700},
    {Kind::timeout, "timeout", "was ended", 702},
    {Kind::cancelled, "interrupted", "was ended", 702},
    {Kind::assertion, "failed assertion", "stopped", 710},
    {Kind::stack_error, "stack overflow", "overflowed its stack", 700},  // as an H100's driver reports it
    {Kind::illegal_instruction, "illegal instruction", "executed a trap", 715},
    {Kind::bad_tensor, "bad tensor copy", "misused a tensor map", 715},
    {Kind::no_cluster, "illegal instruction", "executed an instruction that needs a cluster", 715},
    {Kind::misaligned_address, "misaligned address", "used a misaligned address", 716},
    {Kind::invalid_address_space, "invalid address space", "used an invalid address space", 717},
    {Kind::invalid_pc, "invalid program counter", "called through an invalid pointer", 718},
    {Kind::invalid_free, "invalid free", "freed memory that it cannot free", 719},
    {Kind::misuse, "launch failure", "misused an instruction", 719},
    {Kind::launch_failed, "launch failure", "cannot go on from a barrier", 719},
};

const Row& row_of(Kind kind) noexcept {
    return *std::ranges::find(std::begin(rows), std::end(rows) - 1, kind, &Row::kind);
}

std::string triple(machine::Dim3 value) { return fmt::format("({},{},{})", value.x, value.y, value.z); }

std::string line_of(const machine::SourceLine& line) {
    return fmt::format("line {} of {}", line.line, line.file.empty() ? "the source" : line.file);
}

std::string place(const machine::FaultPlace& fault) {
    return fault.line == 0 ? fmt::format("PTX line {}", fault.ptx_line) : line_of(fault);
}

/// The memory that was accessed; empty for shared memory, which the message describes.
std::string target_of(const machine::Fault& fault, const memory::Heap& heap) {
    const std::string_view space = fault.space;
    if (space == "shared" && fault.kind == Kind::illegal_address) return "";
    std::string text = fmt::format("\n  address {:#x}", fault.address);
    const bool known = space == "global" || space == "generic" || space == "const" || space == "texture" ||
                       space == "surface";
    if (!known) return text;
    text += ": " + heap.describe(fault.address, fault.access_bytes);
    const memory::Allocation* allocation = heap.find(fault.address);
    if (fault.write && allocation != nullptr && allocation->read_only) text += ", which is constant";
    return text;
}

}  // namespace

std::string describe(const machine::Fault& fault, const memory::Heap& heap) {
    const Row& row = row_of(fault.kind);
    std::string text = fmt::format("{}: kernel '{}' ", row.title, demangled(fault.kernel));
    if (fault.access_bytes > 0) {
        text += fmt::format("{} {} bytes of {} memory", fault.write ? "wrote" : "read", fault.access_bytes,
                            fault.space);
    } else {
        text += row.did;
    }
    if (fault.ptx_line > 0) text += " at " + place(fault);
    if (fault.caller.line > 0) text += "\n  called from " + line_of(fault.caller);
    if (fault.access_bytes > 0) text += target_of(fault, heap);
    if (!fault.message.empty()) text += "\n  " + fault.message;
    if (fault.ptx_line > 0) {
        text += fmt::format("\n  in block {}, thread {}", triple(fault.block), triple(fault.thread));
        if (fault.line > 0) text += fmt::format(", PTX line {}", fault.ptx_line);
    }
    if (fault.loop) text += "\n  in the loop that begins at " + place(*fault.loop);
    for (const machine::FaultPlace& other : fault.waiting) {
        text += fmt::format("\n  thread {} waits at {}", triple(other.thread), place(other));
    }
    if (fault.other_threads > 0) {
        text += fmt::format("\n  {} other {} of the block did the same", fault.other_threads,
                            fault.other_threads == 1 ? "thread" : "threads");
    }
    return text;
}

int driver_code(Kind kind) noexcept { return row_of(kind).code; }

void write_unread_reports() noexcept { wanted.store(true); }

void expect_reader() noexcept { has_reader.store(true); }

void tell(const std::string& report) noexcept {
    if (wanted.load() && !has_reader.load()) std::fprintf(stderr, "bascule: %s\n", report.c_str());
}

}  // namespace emulated::report
