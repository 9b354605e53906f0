// The text of reports about a fault.
#include "report/report.hpp"

#include <array>
#include <utility>

#include <doctest/doctest.h>

using emulated::machine::Fault;
using emulated::memory::Allocation;
using emulated::memory::Heap;

namespace {

bool contains(const std::string& text, const std::string& part) { return text.find(part) != text.npos; }

/// The fault of thread 255 of block 3, which writes a float at `address`.
Fault past(emulated::memory::DeviceAddress address) {
    Fault fault;
    fault.kind = Fault::Kind::illegal_address;
    fault.kernel = "_Z4pastPf";
    fault.block = {3, 0, 0};
    fault.thread = {255, 0, 0};
    fault.ptx_line = 41;
    fault.file = "saxpy.cu";
    fault.line = 7;
    fault.address = address;
    fault.access_bytes = 4;
    fault.write = true;
    fault.space = "global";
    return fault;
}

}  // namespace

TEST_CASE("a fault tells kernel, block, thread, address, nearest allocation and source line") {
    Heap heap(1, 1 << 20);
    const auto y = *heap.allocate(0, 4096, Allocation::Kind::device);
    heap.set_name(y, "'y'");
    Fault fault = past(y + 4096);
    fault.other_threads = 12;
    const std::string text = emulated::report::describe(fault, heap);
    CAPTURE(text);
    for (const char* part :
         {"past the 4096-byte allocation 'y'", "block (3,0,0), thread (255,0,0), PTX line 41",
          "12 other threads of the block"}) {
        CHECK_MESSAGE(contains(text, part), part);
    }
    CHECK(text.substr(0, text.find('\n')) ==
          "illegal address: kernel 'past' wrote 4 bytes of global memory at line 7 of saxpy.cu");
    CHECK(text.back() != '\n');
}

TEST_CASE("a read is called a read, and what the kernel freed is said to be freed") {
    Heap heap(1, 1 << 20);
    const auto x = *heap.allocate(0, 64, Allocation::Kind::device);
    heap.free(x, Allocation::Kind::device);
    Fault fault = past(x);
    fault.write = false;
    const std::string text = emulated::report::describe(fault, heap);
    CHECK(contains(text, "read 4 bytes"));
    CHECK(contains(text, "inside a freed 64-byte allocation"));
}

TEST_CASE("a write to constant memory is said to be one") {
    Heap heap(1, 1 << 20);
    const auto table = *heap.allocate(0, 64, Allocation::Kind::module_global);
    heap.set_name(table, "'table'");
    heap.set_read_only(table);
    CHECK(contains(emulated::report::describe(past(table + 8), heap),
                   "at byte 8 of the 64-byte allocation 'table', which is constant"));
}

TEST_CASE("of inlined code the line that calls it is named too") {
    Heap heap(1, 1 << 20);
    Fault fault = past(16);
    fault.file = "vector.cuh";
    fault.caller = {"saxpy.cu", 7};
    CHECK(contains(emulated::report::describe(fault, heap),
                   "at line 7 of vector.cuh\n  called from line 7 of saxpy.cu\n"));
}

TEST_CASE("without line information the PTX line is named") {
    Heap heap(1, 1 << 20);
    Fault fault = past(16);
    fault.line = 0;
    CHECK(contains(emulated::report::describe(fault, heap), "PTX line 41"));
}

TEST_CASE("names of kernels are demangled, those that are not mangled stay") {
    Heap heap(1, 1 << 20);
    Fault fault = past(16);
    for (const auto& [mangled, name] :
         {std::pair{"_ZN2ns5scaleIfEEvPT_S1_", "'ns::scale<float>'"}, std::pair{"_Z4pastPf", "'past'"},
          std::pair{"plain", "'plain'"}, std::pair{"f", "'f'"}}) {
        fault.kernel = mangled;
        const std::string text = emulated::report::describe(fault, heap);
        CHECK_MESSAGE(contains(text, name), text);
    }
}

TEST_CASE("a fault that is not a memory access says what happened") {
    Heap heap(1, 1 << 20);
    Fault fault = past(0);
    fault.kind = Fault::Kind::assertion;
    fault.access_bytes = 0;
    fault.message = "assertion n > 0 failed";
    const std::string text = emulated::report::describe(fault, heap);
    CHECK(contains(text, "assertion n > 0 failed"));
    CHECK_FALSE(contains(text, "bytes"));
}

TEST_CASE("each kind of fault has the driver's code") {
    // CUresult in <cuda.h>
    using Kind = Fault::Kind;
    constexpr std::array codes = {std::pair{Kind::illegal_address, 700},
                                  std::pair{Kind::timeout, 702},
                                  std::pair{Kind::assertion, 710},
                                  std::pair{Kind::illegal_instruction, 715},
                                  std::pair{Kind::misaligned_address, 716},
                                  std::pair{Kind::invalid_address_space, 717},
                                  std::pair{Kind::invalid_pc, 718},
                                  std::pair{Kind::launch_failed, 719},
                                  std::pair{Kind::misuse, 719}};
    for (const auto& [kind, code] : codes) CHECK(emulated::report::driver_code(kind) == code);
}
