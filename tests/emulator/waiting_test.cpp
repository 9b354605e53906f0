// Warps of one block that wait for each other without a barrier.
#include <chrono>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "ptx_device.hpp"

using emulated::machine::Fault;
using testing::Device;

namespace {

// Each thread of warps 0 to 2 waits until `flag` is 1000 plus the number of its warp, and lane 0 then adds one to it.
// Warp 3, which runs last, starts the chain. `load` is the instruction that reads the flag.
std::string chain(const std::string& load, const std::string& before) {
    return testing::sm_80_prologue +
           ".entry k(.param .u64 pout) {\n.shared .align 4 .b32 flag;\n"
           ".reg .b64 %out; .reg .b32 %t, %w, %l, %f, %last, %turns; .reg .pred %p, %q;\n"
           "ld.param.u64 %out, [pout]; mov.u32 %t, %tid.x; shr.u32 %w, %t, 5; and.b32 %l, %t, 31;\n"
           "mov.u32 %turns, 0; setp.ne.u32 %q, %l, 0;\n" +
           before +
           "setp.ne.u32 %p, %w, 3; @%p bra WAIT; @!%q st.volatile.shared.u32 [flag], 1000; bra OVER;\n"
           "WAIT: add.u32 %turns, %turns, 1;\n" +
           load +
           " %f, [flag]; sub.u32 %f, %f, 1000; setp.ne.u32 %p, %f, %w; @%p bra WAIT;\n"
           "add.u32 %f, %f, 1001; @!%q st.volatile.shared.u32 [flag], %f;\n"
           "OVER: mad.wide.u32 %out, %t, 4, %out; st.global.u32 [%out], %turns; ret; }";
}

}  // namespace

TEST_CASE("a warp that waits for another one lets it run, with a barrier in the kernel or without") {
    for (const char* load :
         {"ld.volatile.shared.u32", "ld.relaxed.cta.shared.u32", "ld.acquire.gpu.shared.u32"}) {
        for (const char* before : {"", "st.shared.u32 [flag], 0; bar.sync 0;\n"}) {
            CAPTURE(load);
            CAPTURE(before);
            Device device(chain(load, before));
            std::vector<int> turns(128, -1);
            const auto fault = device.launch("k", {1}, {128}, device.array(turns));
            REQUIRE_FALSE(fault);
            CHECK(turns[0] > 1);
            CHECK(turns[95] >= 1);
            CHECK(turns[127] == 0);
        }
    }
}

TEST_CASE("a lock is passed from warp to warp, and from lane to lane") {
    Device device(testing::sm_80_prologue +
                  ".entry k(.param .u64 pcount) {\n.reg .b64 %c; .reg .b32 %old, %v; .reg .pred %p;\n"
                  "ld.param.u64 %c, [pcount];\n"
                  "AGAIN: atom.global.cas.b32 %old, [%c], 0, 1; setp.ne.u32 %p, %old, 0; @%p bra AGAIN;\n"
                  "ld.volatile.global.u32 %v, [%c+4]; add.u32 %v, %v, 1; st.volatile.global.u32 [%c+4], %v;\n"
                  "membar.gl; atom.global.exch.b32 %old, [%c], 0; ret; }");
    std::vector<int> lock_and_count(2, 0);
    REQUIRE_FALSE(device.launch("k", {2}, {40}, device.array(lock_and_count)));
    CHECK(lock_and_count[0] == 0);
    CHECK(lock_and_count[1] == 80);
}

TEST_CASE("warps that wait for what nobody writes are an infinite loop") {
    Device device(chain("ld.volatile.shared.u32", ""));
    device.limits.idle = std::chrono::milliseconds(50);
    std::vector<int> turns(64, -1);
    const auto fault = device.launch("k", {1}, {64}, device.array(turns));  // the warp that starts is missing
    REQUIRE(fault);
    CHECK(fault->kind == Fault::Kind::timeout);
}
