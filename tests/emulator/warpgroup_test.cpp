// What wgmma and setmaxnreg do in addition to computing: outstanding results, waits, misuse. vectors_warpgroup.cpp compares
// the results.
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "ptx_device.hpp"

// Named, because its names are common ones.
namespace warpgroup {
namespace {

using emulated::machine::Fault;
using testing::Device;

constexpr std::uint32_t poison = ~0u;
const std::string wgmma = "wgmma.mma_async.sync.aligned.m64n8k32.s32.s8.s8 ";
const std::string product = wgmma + "{%d0, %d1, %d2, %d3}, %da, %db, %p;\n";

// A and B are 64 and 8 rows of 32 ones in shared memory, D is 5; every element of A B is 32. Each thread stores %d0 at
// the end.
std::string kernel_with(const std::string& body, bool is_fenced = true) {
    return ".version 9.0\n.target sm_90a\n.address_size 64\n.shared .align 1024 .b8 sh[8192];\n"
           ".visible .entry k(.param .u64 po) .maxntid 256 .minnctapersm 2 {\n.reg .b64 %o, %x, %da, %db, %e;\n"
           ".reg .b32 %t, %s, %i, %ones, %d<4>, %c<8>;\n.reg .pred %p, %q;\nld.param.u64 %o, [po];\nmov.u32 %t, %tid.x;\n"
           "mul.wide.u32 %x, %t, 4;\nadd.u64 %o, %o, %x;\nmov.u32 %s, sh;\nmul.lo.u32 %i, %t, 16;\nadd.u32 %s, %s, %i;\n"
           "mov.u32 %ones, 0x01010101;\nst.shared.v4.b32 [%s], {%ones, %ones, %ones, %ones};\n"
           "st.shared.v4.b32 [%s+2048], {%ones, %ones, %ones, %ones};\n" +
           (is_fenced ? "fence.proxy.async;\n" : std::string()) +
           "bar.sync 0;\nsetp.eq.u32 %p, 0, 0;\n"
           "mov.u32 %d0, 5;\nmov.u32 %d1, 5;\nmov.u32 %d2, 5;\nmov.u32 %d3, 5;\n"
           // no swizzle, 128 bytes from one core matrix to the next along K, 256 along M
           "mov.u64 %da, 0x1000080000;\nmov.u64 %db, 0x1000080000;\n" +
           body + "st.global.b32 [%o], %d0;\nret;\n}\n";
}

struct Result {
    std::vector<std::uint32_t> out;
    std::string message;  // of the fault
    bool all(std::uint32_t value) const { return out == std::vector<std::uint32_t>(out.size(), value); }
};

Result run(const std::string& body, std::uint32_t threads = 128, bool is_fenced = true) {
    Device device(kernel_with(body, is_fenced));
    Result made;
    made.out.assign(threads, 0);
    if (const auto fault = device.launch("k", {1}, {threads}, device.array(made.out)))
        made.message = fault->message + ".";
    return made;
}

const std::string fence = "wgmma.fence.sync.aligned;\n", commit = "wgmma.commit_group.sync.aligned;\n";
std::string wait(int recent) { return "wgmma.wait_group.sync.aligned " + std::to_string(recent) + ";\n"; }

}  // namespace

TEST_CASE("an accumulator of wgmma is poison until the wait") {
    CHECK(run(fence + product + commit + wait(0)).all(5 + 32));
    CHECK(run(fence + product + commit).all(poison));
    CHECK(run(fence + product + wait(0)).all(poison));           // no commit
    CHECK(run(fence + product + commit + wait(1)).all(poison));  // one group may be outstanding
    CHECK(run(fence + product + product + commit + wait(0)).all(5 + 64));
    // The second product of the accumulators is outstanding, so neither is visible.
    CHECK(run(fence + product + commit + product + commit + wait(1)).all(poison));
    CHECK(run(fence + product + commit + product + commit + wait(1) + wait(0)).all(5 + 64));
    // A sum of an accumulator before the wait is a sum of poison.
    CHECK(run(fence + product + commit + "add.u32 %c0, %d0, 1;\n" + wait(0) + "mov.u32 %d0, %c0;\n")
              .all(poison + 1));
}

TEST_CASE("groups of wgmma complete in their order") {
    const std::string other = wgmma + "{%c0, %c1, %c2, %c3}, %da, %db, 0;\n";
    CHECK(run(fence + product + commit + other + commit + wait(1)).all(5 + 32));
    CHECK(run(fence + other + commit + product + commit + wait(1) + "mov.u32 %d0, %c0;\n").all(32));
    CHECK(run(fence + product + commit + other + commit + wait(1) + "mov.u32 %d0, %c0;\n").all(poison));
}

TEST_CASE("a copy of an outstanding accumulator receives its result") {
    std::string copies, back;
    for (const char* i : {"0", "1", "2", "3"}) {
        copies += std::string("mov.b32 %c") + i + ", %d" + i + ";\n";
        back += std::string("mov.b32 %d") + i + ", %c" + i + ";\n";
    }
    const std::string on_copies = wgmma + "{%c0, %c1, %c2, %c3}, %da, %db, %p;\n";
    CHECK(run(fence + product + copies + commit + wait(0) + back).all(5 + 32));
    CHECK(run(fence + product + copies + on_copies + commit + wait(0) + back).all(5 + 64));
    CHECK(run(fence + product + copies + on_copies + copies + commit + wait(0) + "mov.b32 %d0, %c0;\n")
              .all(5 + 64) == false);
    // A constant that is moved to an accumulator replaces the result.
    CHECK(run(fence + product + commit + "mov.b32 %d0, 9;\n" + wait(0)).all(9));
}

TEST_CASE("wgmma reads shared memory at the wait") {
    const std::string refill = "bar.sync 0;\nst.shared.v4.b32 [%s], {0, 0, 0, 0};\nbar.sync 0;\n";
    CHECK(run(fence + product + commit + refill + wait(0)).all(5));
    CHECK(run(fence + product + commit + wait(0) + refill).all(5 + 32));
}

TEST_CASE("wgmma of what threads wrote needs a fence.proxy.async") {
    const auto says = [](const Result& result, const char* words) {
        INFO(result.message);
        CHECK(result.message.find(words) != std::string::npos);
    };
    const std::string all = fence + product + commit + wait(0);
    says(run(all, 128, false), "wgmma.mma_async reads byte 0 of shared memory, which was written by an");
    CHECK(run("fence.proxy.async;\nbar.sync 0;\n" + all, 128, false).all(5 + 32));
    // B is written again between two products.
    const std::string again = "st.shared.v4.b32 [%s], {0, 0, 0, 0};\n";
    says(run(all + "bar.sync 0;\n" + again + "bar.sync 0;\n" + all), "reads byte 0 of shared memory");
    CHECK(run(all + "bar.sync 0;\n" + again + "fence.proxy.async;\nbar.sync 0;\n" + all).all(5 + 32));
    says(run("st.shared.b8 [%s+1], 3;\n" + all), "reads byte 1 of shared memory");
}

TEST_CASE("two warpgroups compute their own rows") {
    CHECK(run(fence + product + commit + wait(0), 256).all(5 + 32));
}

TEST_CASE("misuse of wgmma is a fault") {
    const auto says = [](const Result& result, const char* words) {
        INFO(result.message);
        CHECK(result.message.find(words) != std::string::npos);
    };
    const std::string all = fence + product + commit + wait(0);
    says(run(product + commit + wait(0)), "the warp has executed no wgmma.fence");
    says(run(all, 64), "needs the four warps of a warpgroup, threads 0 to 127, and the block has 64 threads");
    says(run(all, 192), "threads 128 to 255, and the block has 192 threads");
    says(run("setp.lt.u32 %q, %t, 16;\n@%q ret;\n" + all), "needs all 32 threads of the warp");
    says(run("or.b64 %da, %da, 0x400000000000;\n" + all),
         "descriptor of A is 0x401000080000, which has bits set");
    says(run("cvt.u64.u32 %da, %t;\n" + all), "descriptor of A differs between threads of the warp");
    says(run("mov.u64 %db, 0x1000080200;\n" + all),
         "has 8192 bytes of shared memory, and this access is at byte 8192");
    says(run("setp.lt.u32 %p, %t, 16;\n" + all), "scale-d differs between threads");
    const std::string sparse =
        "wgmma.mma_async.sp.sync.aligned.m64n8k64.s32.s8.s8 {%d0, %d1, %d2, %d3}, %da, %db, %c0, 0, %p;\n";
    says(run("mov.u64 %db, 0xc000001000000000;\n" + fence + sparse),
         "of B has a swizzle of 32 bytes, and a row of 64 bytes");
}

TEST_CASE("setmaxnreg counts the registers of the block") {
    const auto says = [](const Result& result, const char* words) {
        INFO(result.message);
        CHECK(result.message.find(words) != std::string::npos);
    };
    const std::string inc = "setmaxnreg.inc.sync.aligned.u32 ", dec = "setmaxnreg.dec.sync.aligned.u32 ";
    // 65,536 registers for two blocks of 256 threads: 128 for each.
    CHECK(run(dec + "40;\n" + inc + "128;\n", 256).all(5));
    says(run(dec + "40;\n" + dec + "64;\n"), "setmaxnreg.dec 64: the threads of this warp have 40 registers");
    says(run(inc + "96;\n"), "setmaxnreg.inc 96: the threads of this warp have 128 registers");
    const auto specialised = [&](const std::string& least, const std::string& most) {
        return run("setp.ge.u32 %q, %t, 128;\n@%q bra LESS;\n" + inc + most + ";\nbra END;\nLESS:\n" + dec +
                       least + ";\nEND:\n",
                   256);
    };
    CHECK(specialised("24", "232").all(5));
    says(specialised("24", "240"),
         "setmaxnreg.inc waits for registers that other warps of the block release");
    says(run(inc + "136;\n"), "0 per thread are free");
}

}  // namespace warpgroup
