// Kernels that never end, and long ones that do.
#include <atomic>
#include <chrono>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "ptx_device.hpp"
#include "report/report.hpp"

using emulated::machine::Fault;
using emulated::machine::TimeLimits;
using testing::Device;
using namespace std::chrono_literals;

namespace {

std::string watched_kernel(const std::string& body, const std::string& before = "") {
    return testing::sm_80_prologue + before +
           ".entry k(.param .u64 pout) {\n.reg .b64 %out, %clock, %next, %end; .reg .b32 %t, %x, %i; .reg "
           ".pred %p;\n"
           "ld.param.u64 %out, [pout]; mov.u32 %t, %tid.x;\n" +
           body + "\nret; }";
}

// Calls itself twice, `depth` deep: more than 2^depth calls, and no loop.
const std::string twice =
    ".func f(.param .b32 pn) {\n.reg .b32 %n; .reg .pred %p;\n"
    "ld.param.u32 %n, [pn]; setp.eq.u32 %p, %n, 0; @%p ret; sub.u32 %n, %n, 1;\n"
    "{ .param .b32 a; st.param.b32 [a], %n; call.uni f, (a); }\n"
    "{ .param .b32 b; st.param.b32 [b], %n; call.uni f, (b); } ret; }\n";
std::string recursion(int depth) {
    return watched_kernel("mov.u32 %x, " + std::to_string(depth) +
                              ";\n{ .param .b32 a; st.param.b32 [a], %x; call.uni f, (a); }",
                          twice);
}

struct Endless {
    const char* what;
    std::string ptx;
};

std::vector<Endless> endless_kernels() {
    return {
        {"a loop", watched_kernel("L: add.u32 %x, %x, 1; bra L;")},
        {"a loop with a barrier", watched_kernel("L: bar.sync 0; bra L;")},
        {"a loop with a barrier that leaves by what nobody writes",
         watched_kernel(
             "L: bar.sync 0; ld.volatile.global.u32 %x, [%out+40]; setp.eq.u32 %p, %x, 0; @%p bra L;")},
        {"a loop that diverges",
         watched_kernel("and.b32 %x, %t, 1; setp.eq.u32 %p, %x, 0;\n"
                        "L: @%p bra E; add.u32 %x, %x, 1; bra M; E: add.u32 %x, %x, 2; M: bra L;")},
        {"a loop that shuffles", watched_kernel("L: shfl.sync.bfly.b32 %x, %t, 1, 31, -1; bra L;")},
        {"a loop that prints",
         watched_kernel("L: { .param .b64 a; .param .b64 b; .param .b32 r; .reg .b64 %f;\n"
                        "mov.u64 %f, format; cvta.global.u64 %f, %f; st.param.b64 [a], %f; mov.u64 %f, 0;\n"
                        "st.param.b64 [b], %f; call.uni (r), vprintf, (a, b); } bra L;",
                        ".global .align 1 .b8 format[3] = {120, 10, 0};\n"
                        ".extern .func (.param .b32 r) vprintf (.param .b64 a, .param .b64 b);\n")},
        {"a recursion that doubles", recursion(60)},
        {"writes of the same memory",
         watched_kernel("mad.wide.u32 %out, %t, 4, %out; L: st.global.u32 [%out], %x;\n"
                        "add.u32 %x, %x, 1; bra L;")},
        {"atomics on one word", watched_kernel("L: atom.global.add.u32 %x, [%out], 1; bra L;")},
        {"a lock that nobody releases",
         watched_kernel(
             "L: atom.global.cas.b32 %x, [%out+4], 0, 1; setp.ne.u32 %p, %x, 0; @%p bra L; bra L;")},
        {"warps that wait for each other",
         watched_kernel("shr.u32 %i, %t, 5; xor.b32 %i, %i, 1; mad.wide.u32 %out, %i, 4, %out;\n"
                        "L: ld.volatile.global.u32 %x, [%out]; setp.eq.u32 %p, %x, 0; @%p bra L;")},
    };
}

}  // namespace

TEST_CASE("a kernel that never ends is found, whatever it does") {
    for (const Endless& endless : endless_kernels()) {
        for (const unsigned workers : {1u, 2u}) {
            CAPTURE(endless.what);
            CAPTURE(workers);
            Device device(endless.ptx, workers);
            device.limits.idle = 20ms;
            std::vector<int> out(64);
            const auto fault = device.launch("k", {2}, {64}, device.array(out));
            REQUIRE(fault);
            CHECK(fault->kind == Fault::Kind::timeout);
            CHECK(fault->message.find("this looks like an infinite loop") != std::string::npos);
        }
    }
}

TEST_CASE("a kernel that waits for another block of its cooperative grid for ever is found") {
    for (const unsigned workers : {1u, 2u}) {
        Device device(
            watched_kernel("L: ld.volatile.global.u32 %x, [%out]; setp.eq.u32 %p, %x, 0; @%p bra L;"),
            workers);
        device.limits.idle = 20ms;
        device.cooperative = true;
        std::vector<int> out(64);
        const auto fault = device.launch("k", {3}, {32}, device.array(out));
        REQUIRE(fault);
        CHECK(fault->kind == Fault::Kind::timeout);
    }
}

TEST_CASE("a block that passes barriers while it waits lets the block that it waits for run") {
    Device device(watched_kernel(
        "mov.u32 %i, %ctaid.x; setp.eq.u32 %p, %i, 1; @%p st.volatile.global.u32 [%out], 1; @%p ret;\n"
        "L: bar.sync 0; ld.volatile.global.u32 %x, [%out]; setp.eq.u32 %p, %x, 0; @%p bra L;"));
    device.cooperative = true;
    std::vector<int> out(64);
    CHECK_FALSE(device.launch("k", {2}, {64}, device.array(out)));
}

TEST_CASE("a block may run for longer than the limit while it writes memory that it had not written") {
    // Thread 0 writes the next byte every 50 ms, 30 times, and passes no barrier.
    Device device(watched_kernel(
        "mov.u32 %i, 0; mov.u64 %next, %clock64;\n"
        "NEXT: st.global.u8 [%out], 1; add.u64 %out, %out, 1; add.u64 %next, %next, 50000000;\n"
        "WAIT: mov.u64 %clock, %clock64; setp.lt.u64 %p, %clock, %next; @%p bra WAIT;\n"
        "add.u32 %i, %i, 1; setp.lt.u32 %p, %i, 30; @%p bra NEXT;"));
    device.limits.idle = 1s;
    std::vector<char> out(30);
    const auto fault = device.launch("k", {1}, {1}, device.array(out));
    CAPTURE((fault ? fault->message : ""));
    REQUIRE_FALSE(fault);
    CHECK(out == std::vector<char>(30, 1));
}

TEST_CASE("a finite recursion, and a long loop without writes, end by themselves") {
    for (const std::string& ptx :
         {recursion(12), watched_kernel("L: add.u32 %x, %x, 1; setp.lt.u32 %p, %x, 1000000; @%p bra L;")}) {
        Device device(ptx);
        std::vector<int> out(64);
        CHECK_FALSE(device.launch("k", {2}, {64}, device.array(out)));
    }
}

TEST_CASE("a limit of the whole kernel counts whatever the kernel does, and nothing else counts then") {
    const std::string until_clock =
        "mov.u64 %end, %clock64; add.u64 %end, %end, 300000000;\n"
        "WAIT: mov.u64 %clock, %clock64; setp.lt.u64 %p, %clock, %end; @%p bra WAIT;";
    Device device(watched_kernel(until_clock));
    std::vector<int> out(64);
    device.limits = {.idle = 1ms, .total = 1h};
    CHECK_FALSE(device.launch("k", {1}, {32}, device.array(out)));
    device.limits = {.idle = 1h, .total = 30ms};
    const auto fault = device.launch("k", {1}, {32}, device.array(out));
    REQUIRE(fault);
    CHECK(fault->kind == Fault::Kind::timeout);
    CHECK(fault->message.find("the kernel has run for 0.03 s, as long as BASCULE_EMULATED_TIMEOUT allows") !=
          std::string::npos);
}

TEST_CASE("a limit of the whole kernel counts for many short blocks together") {
    Device device(
        watched_kernel("mov.u64 %end, %clock64; add.u64 %end, %end, 100000;\n"
                       "WAIT: mov.u64 %clock, %clock64; setp.lt.u64 %p, %clock, %end; @%p bra WAIT;"));
    std::vector<int> out(64);
    device.limits.total = 30ms;
    const auto fault = device.launch("k", {1000000}, {1}, device.array(out));
    REQUIRE(fault);
    CHECK(fault->kind == Fault::Kind::timeout);
}

TEST_CASE("a kernel that is no longer wanted ends, whatever it does, and says where it was") {
    for (const Endless& endless : endless_kernels()) {
        for (const unsigned workers : {1u, 2u}) {
            CAPTURE(endless.what);
            Device device(endless.ptx, workers);
            device.limits = TimeLimits::unlimited();
            std::atomic<int> asked = 0;
            device.cancelled = [&] { return ++asked > 3; };
            std::vector<int> out(64);
            const auto fault = device.launch("k", {2}, {64}, device.array(out));
            REQUIRE(fault);
            CHECK(fault->kind == Fault::Kind::cancelled);
            CHECK(fault->ptx_line > 0);
        }
    }
}

TEST_CASE("the report of an endless kernel names the loop, the depth of calls and the barriers") {
    const auto report = [](const std::string& ptx) {
        Device device(ptx);
        device.limits.idle = 20ms;
        std::vector<int> out(64);
        emulated::memory::Heap heap(1, 1 << 20);
        return emulated::report::describe(device.launch("k", {1}, {64}, device.array(out)).value(), heap);
    };
    const std::string barriers =
        report(watched_kernel("add.u32 %x, %x, 1;\nL: bar.sync 0;\nadd.u32 %x, %x, 1;\nbra L;"));
    CAPTURE(barriers);
    CHECK(barriers.find("in the loop that begins at PTX line 8") != std::string::npos);
    CHECK(barriers.find("the block has passed ") != std::string::npos);
    const std::string calls = report(recursion(60));
    CAPTURE(calls);
    CHECK(calls.find("calls are nested ") != std::string::npos);
    CHECK(calls.find("loop that begins") == std::string::npos);
}
