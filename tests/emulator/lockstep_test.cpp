// Warps in lockstep: the same results and faults as with warps that run one after another.
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "ptx_device.hpp"

using emulated::machine::Fault;
using emulated::machine::TimeLimits;
using namespace std::chrono_literals;

namespace {

constexpr unsigned warps = 4, block_threads = 32 * warps, blocks = 6, threads = blocks * block_threads;
using Words = std::vector<std::uint32_t>;

// %t is the thread's number, and %in the address of `in`. %at and %where are the addresses of the thread's words in
// `out` and `index`; the word in `index` is read into %i.
std::string kernel(const std::string& body) {
    return testing::sm_80_prologue +
           ".entry k(.param .u64 pin, .param .u64 pindex, .param .u64 pout) {\n"
           ".reg .b64 %in, %where, %at, %a, %b; .reg .b32 %t, %i, %x, %y, %w, %n; .reg .pred %p, %q;\n"
           ".shared .align 4 .b32 s[128];\n"
           "ld.param.u64 %in, [pin]; ld.param.u64 %where, [pindex]; ld.param.u64 %at, [pout];\n"
           "mov.u32 %t, %tid.x; mov.u32 %w, %ctaid.x; mov.u32 %n, %ntid.x; mad.lo.u32 %t, %w, %n, %t;\n"
           "shr.u32 %w, %t, 5; mul.wide.u32 %a, %t, 4; add.u64 %at, %at, %a; add.u64 %where, %where, %a;\n"
           "ld.global.u32 %i, [%where];\n" +
           body + "\nst.global.u32 [%at], %x;\nret;\n}\n";
}

struct Outcome {
    std::optional<Fault> fault;
    Words in, out;
};

// `in` has 2 * threads words, and `index` a word for each thread.
Outcome run(const std::string& body, const Words& index, unsigned block, TimeLimits limits = {}) {
    std::mt19937 random(7);
    Outcome made{{}, Words(2 * threads), Words(threads, 0xa5a5'5a5a)};
    for (auto& word : made.in) word = static_cast<std::uint32_t>(random());
    Words where = index;
    testing::Device device(kernel(body));
    device.limits = limits;
    const std::uint64_t in = device.array(made.in), at = device.array(where), out = device.array(made.out);
    made.fault = device.launch("k", {threads / block}, {block}, in, at, out);
    return made;
}

// An index for each thread. The pattern of a warp: consecutive, all equal, consecutive in each half-warp, equal in each
// half-warp, or random. Blocks 0 and 1 have one pattern; so has block 2, except for one of its warps. In later blocks,
// the pattern changes from warp to warp.
Words indices(unsigned first) {
    std::mt19937 random(first);
    Words made;
    for (unsigned w = 0; w < threads / 32; ++w) {
        const unsigned block = w / warps;
        const unsigned kind = first + (block < 2 ? 0 : block == 2 ? w % warps == 2 : w);
        for (unsigned l = 0; l < 32; ++l) {
            const unsigned each[] = {l, 5, l % 16 + 40 * (l / 16), 3 + l / 16,
                                     static_cast<unsigned>(random()) % 60};
            made.push_back(each[kind % std::size(each)]);
        }
    }
    return made;
}

}  // namespace

TEST_CASE("warps in lockstep give what each gives alone") {
    const char* read = "mul.wide.u32 %a, %i, 4; add.u64 %b, %in, %a; ld.global.u32 %x, [%b];\n";
    const std::string bodies[] = {
        // Addresses that differ by one addend, and a value that overwrites the address.
        std::string(read) +
            "ld.global.u32 %y, [%b+64]; xor.b32 %x, %x, %y; add.u64 %a, %where, 0;\n"
            "ld.global.u32 %i, [%a]; mad.lo.u32 %x, %i, 77, %x;",
        // Two arrays at the same varying address, for which the device's PTX compiler makes one sum each.
        std::string(read) + "add.u64 %b, %where, 0; ld.global.u32 %y, [%b]; mad.lo.u32 %x, %x, %y, %t;",
        // A branch that whole warps take, one that every second lane takes, and one that all take.
        std::string(read) +
            "setp.lt.u32 %p, %w, 2; @%p bra A; mul.lo.u32 %x, %x, 3;\n"
            "A: and.b32 %y, %t, 1; setp.eq.u32 %p, %y, 0; @%p bra B; add.u32 %x, %x, 9;\n"
            "B: setp.ge.u32 %p, %t, 0; @%p bra C; trap; C:",
        // Guarded instructions: for whole warps, for every second lane, for none.
        std::string(read) +
            "setp.lt.u32 %p, %w, 2; and.b32 %y, %t, 1; setp.eq.u32 %q, %y, 0;\n"
            "@%p add.u32 %x, %x, 5; @%q xor.b32 %x, %x, 255; setp.gt.u32 %p, %t, 1000;\n"
            "@%p trap; selp.u32 %y, %x, %i, %q; add.u32 %x, %x, %y;",
        // Loops with the same length for all, for each warp, for each lane.
        std::string(read) +
            "mov.u32 %y, 0; A: mad.lo.u32 %x, %x, 5, 1; add.u32 %y, %y, 1; setp.lt.u32 %p, %y, 7;\n"
            "@%p bra A; B: mad.lo.u32 %x, %x, 3, %y; add.u32 %y, %y, 1; setp.le.u32 %p, %y, %w;\n"
            "@%p bra B; C: mad.lo.u32 %x, %x, 7, %y; add.u32 %y, %y, 1; setp.le.u32 %p, %y, %i;\n"
            "@%p bra C;",
        // Operations among the lanes of a warp, and operations that run for one warp after another.
        std::string(read) +
            "shfl.sync.bfly.b32 %y, %x, 3, 31, -1; add.u32 %x, %x, %y; activemask.b32 %y;\n"
            "xor.b32 %x, %x, %y; setp.lt.u32 %p, %i, 20; vote.sync.ballot.b32 %y, %p, -1;\n"
            "add.u32 %x, %x, %y; lop3.b32 %x, %x, %y, %i, 150; bfi.b32 %x, %i, %x, 4, 9;",
        // Lanes that end early, so that the rest is not a whole warp.
        std::string(read) + "setp.eq.u32 %p, %i, 5; @%p st.global.u32 [%at], %t; @%p ret; add.u32 %x, %x, 1;",
    };
    for (const std::string& body : bodies) {
        for (unsigned first = 0; first < 5; ++first) {
            CAPTURE(body);
            CAPTURE(first);
            const Outcome together = run(body, indices(first), block_threads),
                          alone = run(body, indices(first), 32);
            REQUIRE(!together.fault);
            REQUIRE(!alone.fault);
            CHECK(together.out == alone.out);
        }
    }
}

TEST_CASE("shared memory, barriers and atomics of warps in lockstep") {
    const std::string body =
        "mov.u32 %t, %tid.x; mov.u64 %a, s; cvt.u32.u64 %y, %a; shl.b32 %n, %t, 2; add.u32 %y, %y, %n; st.shared.u32 [%y], %i;\n"
        "bar.sync 0; xor.b32 %n, %n, 508; mov.u64 %a, s; cvt.u32.u64 %y, %a; add.u32 %y, %y, %n;\n"
        "ld.shared.u32 %x, [%y]; bar.sync 0; atom.shared.add.u32 %n, [s], 1; bar.sync 0; ld.shared.u32 %y, [s];\n"
        "bar.sync 0; mad.lo.u32 %x, %x, 1000, %y;";
    for (unsigned first = 0; first < 5; ++first) {
        const Words index = indices(first);

        const Outcome made = run(body, index, block_threads);
        REQUIRE(!made.fault);
        for (unsigned t = 0; t < threads; ++t) {
            const unsigned begin = t / block_threads * block_threads,
                           other = begin + block_threads - 1 - t % block_threads;
            CHECK(made.out[t] == 1000 * index[other] + index[begin] + block_threads);
        }
    }
}

TEST_CASE("warps in lockstep that name different barriers wait for each other in vain") {
    const Outcome made = run("and.b32 %y, %w, 1; bar.sync %y; mov.u32 %x, 1;", indices(0), block_threads);
    REQUIRE(made.fault);
    CHECK(made.fault->message.starts_with("divergent barrier"));
    CHECK(made.fault->waiting.size() == 0);  // all warps are at one instruction
    CHECK(!run("bar.sync 3, 128; mov.u32 %x, 1;", indices(0), block_threads).fault);
}

TEST_CASE("a fault of one of the warps in lockstep is told as if it ran alone") {
    Words index = indices(0);
    index[32 * 2 + 5] = 1u << 28;
    index[32 * 3 + 1] = index[32 * 3 + 2] = 1u << 28;
    struct Case {
        const char* what;
        std::string body;
    };
    const Case cases[] = {
        {"the address is where the value goes",
         "mul.wide.u32 %a, %i, 4; add.u64 %a, %in, %a; ld.global.u32 %x, [%at]; ld.global.u64 %a, [%a]; mov.u32 %x, 1;"},
        {"an atomic", "mul.wide.u32 %a, %i, 4; add.u64 %a, %in, %a; atom.global.add.u32 %x, [%a], 1;"},
        {"a store", "mul.wide.u32 %a, %i, 4; add.u64 %a, %in, %a; mov.u32 %x, 3; st.global.u32 [%a], %x;"},
    };
    for (const Case& each : cases) {
        CAPTURE(each.what);
        Words even = index;
        for (auto& i : even) i = i / 2 * 2;  // aligned for 64-bit loads
        const Outcome made = run(each.body, even, block_threads);
        REQUIRE(made.fault);
        CHECK(made.fault->kind == Fault::Kind::illegal_address);
        CHECK(made.fault->thread.x == 32 * 2 + 5);
        CHECK(made.fault->other_threads == 2);
        CHECK(made.fault->address == 0x7f00'0000'0000 + (std::uint64_t{1} << 30));
    }
    // The two warps before the faulting one have run the atomic once; some lanes of the later warps may have, too.
    const Outcome counted =
        run("mul.wide.u32 %a, %i, 0; setp.gt.u32 %p, %i, 1000; selp.b64 %b, 0, %in, %p;\n"
            "atom.global.inc.u32 %x, [%b], -1;",
            index, block_threads);
    REQUIRE(counted.fault);
    Outcome untouched = run("mov.u32 %x, 0;", index, block_threads);
    CHECK(counted.in[0] - untouched.in[0] <= block_threads - 3);
    CHECK(counted.in[0] - untouched.in[0] >= 64);
}

TEST_CASE("a half of a warp in lockstep that reads out of bounds is noticed") {
    Words index = indices(2);  // halves, in the first two blocks
    for (unsigned l = 16; l < 32; ++l) index[block_threads + 32 + l] = 2 * threads + l;
    const Outcome made =
        run("mul.wide.u32 %a, %i, 4; add.u64 %a, %in, %a; ld.global.u32 %x, [%a];", index, block_threads);
    REQUIRE(made.fault);
    CHECK(made.fault->block.x == 1);
    CHECK(made.fault->thread.x == 32 + 16);
    CHECK(made.fault->other_threads == 15);
}

TEST_CASE("an endless loop of warps in lockstep is found") {
    TimeLimits limits;
    limits.idle = 50ms;
    for (const char* body : {"L: add.u32 %x, %x, 1; bra L;", "L: bar.sync 0; bra L;"}) {
        const Outcome made = run(body, indices(0), block_threads, limits);
        REQUIRE(made.fault);
        CHECK(made.fault->message.starts_with("this looks like an infinite loop"));
    }
}
