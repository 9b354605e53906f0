// Clusters: blocks that run together, access each other's shared memory and wait for each other.
#include <chrono>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "ptx_device.hpp"

using emulated::machine::Dim3;
using emulated::machine::Fault;
using testing::Device;

namespace {

std::string cluster_kernel(const std::string& body) {
    return ".version 9.0\n.target sm_90\n.address_size 64\n"
           ".entry k(.param .u64 pin, .param .u64 pout) {\n.shared .align 16 .b8 s[1024];\n"
           ".shared .align 8 .b64 bar;\n.reg .b64 %in, %out, %first, %far, %at, %state;\n"
           ".reg .b32 %t, %b, %x, %y, %z, %rank, %count;\n.reg .b16 %mask; .reg .pred %p, %q;\n"
           "ld.param.u64 %first, [pin]; ld.param.u64 %out, [pout]; mov.u32 %t, %tid.x; mov.u32 %b, %ctaid.x;\n"
           "mov.u32 %x, %ntid.x; mad.lo.u32 %x, %b, %x, %t; mul.wide.u32 %at, %x, 4; add.u64 %in, %first, %at;\n"
           "add.u64 %out, %out, %at; mov.u32 %rank, %cluster_ctarank; mov.u32 %count, %cluster_nctarank;\n" +
           body + "\nret; }";
}

const std::string sync_cluster = "barrier.cluster.arrive; barrier.cluster.wait;\n";

struct Run {
    std::vector<std::uint32_t> in, out;
    std::optional<Fault> fault;
};

Run run(const std::string& body, std::uint32_t cluster, std::uint32_t blocks, std::uint32_t threads,
        unsigned workers = 2) {
    Run made;
    made.in.resize(blocks * threads);
    made.out.resize(blocks * threads);
    for (std::uint32_t i = 0; i < made.in.size(); ++i) made.in[i] = 1000 + 7 * i;
    Device device(cluster_kernel(body), workers);
    device.cluster = {cluster};
    device.limits.idle = std::chrono::seconds(1);
    made.fault = device.launch("k", {blocks}, {threads}, device.array(made.in), device.array(made.out));
    return made;
}

std::string message_of(const Run& run) { return run.fault ? run.fault->message : "no fault"; }

// Each thread writes its word of `in` to its block's shared memory, and puts the address of the same word in the next
// block's shared memory into %far.
const std::string next_block =
    "ld.global.u32 %x, [%in]; mul.wide.u32 %at, %t, 4; mov.u64 %far, s; add.u64 %far, %far, %at;\n"
    "st.shared.u32 [%far], %x;\nadd.u32 %y, %rank, 1; rem.u32 %y, %y, %count; mapa.u64 %far, %far, %y;\n";

}  // namespace

TEST_CASE("blocks of a cluster read each other's shared memory") {
    for (const std::uint32_t size : {1u, 2u, 3u, 8u, 16u}) {
        for (const std::string access : {"ld.u32", "ld.shared::cluster.u32"}) {
            const auto made = run(next_block + sync_cluster + access +
                                      " %x, [%far]; st.global.u32 [%out], %x;\n" + sync_cluster,
                                  size, 48, 40);
            REQUIRE(message_of(made) == "no fault");
            for (std::uint32_t i = 0; i < made.out.size(); ++i) {
                const std::uint32_t block = i / 40, next = block / size * size + (block % size + 1) % size;
                REQUIRE(made.out[i] == made.in[next * 40 + i % 40]);
            }
        }
    }
}

TEST_CASE("the registers of clusters say where a block is") {
    Device device(
        ".version 9.0\n.target sm_90\n.address_size 64\n.entry k(.param .u64 pout) {\n"
        ".reg .b64 %out, %at; .reg .b32 %x, %y, %z, %n; .reg .pred %p;\nld.param.u64 %out, [pout];\n"
        "mov.u32 %x, %nctaid.x; mov.u32 %y, %nctaid.y; mov.u32 %z, %ctaid.z; mul.lo.u32 %z, %z, %y;\n"
        "mov.u32 %y, %ctaid.y; add.u32 %z, %z, %y; mul.lo.u32 %z, %z, %x; mov.u32 %x, %ctaid.x; add.u32 %z, %z, %x;\n"
        "mul.wide.u32 %at, %z, 64; add.u64 %out, %out, %at;\n" +
            [] {
                std::string text;
                unsigned at = 0;
                for (const char* name :
                     {"%cluster_ctaid.x", "%cluster_ctaid.y", "%cluster_ctaid.z", "%cluster_nctaid.x",
                      "%cluster_nctaid.y", "%cluster_nctaid.z", "%clusterid.x", "%clusterid.y",
                      "%clusterid.z", "%nclusterid.x", "%nclusterid.y", "%nclusterid.z", "%cluster_ctarank",
                      "%cluster_nctarank"}) {
                    text += std::string("mov.u32 %n, ") + name + "; st.global.u32 [%out+" +
                            std::to_string(4 * at++) + "], %n;\n";
                }
                return text;
            }() +
            "mov.pred %p, %is_explicit_cluster; selp.u32 %n, 1, 0, %p; st.global.u32 [%out+56], %n;\nret; }",
        2);
    device.cluster = {2, 3, 2};
    const Dim3 grid{4, 6, 4}, size = device.cluster;
    std::vector<std::uint32_t> out(grid.count() * 16);
    REQUIRE_FALSE(device.launch("k", grid, {1}, device.array(out)));
    for (std::uint32_t z = 0; z < grid.z; ++z) {
        for (std::uint32_t y = 0; y < grid.y; ++y) {
            for (std::uint32_t x = 0; x < grid.x; ++x) {
                const std::uint32_t expected[] = {x % 2,
                                                  y % 3,
                                                  z % 2,
                                                  2,
                                                  3,
                                                  2,
                                                  x / 2,
                                                  y / 3,
                                                  z / 2,
                                                  2,
                                                  2,
                                                  2,
                                                  x % 2 + 2 * (y % 3 + 3 * (z % 2)),
                                                  12,
                                                  0};
                const std::uint32_t* got = out.data() + 16 * ((z * grid.y + y) * grid.x + x);
                CHECK(std::equal(std::begin(expected), std::end(expected), got));
            }
        }
    }
    CHECK(size.count() == 12);
}

TEST_CASE("atomics of all blocks meet in one block's shared memory") {
    const auto made =
        run("setp.eq.u32 %p, %t, 0; @%p st.shared.u32 [s], 0;\n" + sync_cluster +
                "mov.u64 %far, s; mapa.u64 %far, %far, 0; atom.shared::cluster.add.u32 %x, [%far], 1;\n"
                "red.add.u32 [%far], 2;\n" +
                sync_cluster + "ld.shared.u32 %x, [s]; st.global.u32 [%out], %x;\n",
            4, 8, 96);
    REQUIRE(message_of(made) == "no fault");
    for (std::uint32_t i = 0; i < made.out.size(); ++i) {
        const bool first = i / 96 % 4 == 0;
        CHECK(made.out[i] == (first ? 3 * 4 * 96 : 0));
    }
}

TEST_CASE("a cluster's barrier has an arrival apart from the wait, many times, and exited threads count") {
    const auto made =
        run("mov.u32 %z, 0; setp.ge.u32 %p, %t, 70; @%p ret;\n"
            "mul.wide.u32 %at, %t, 4; mov.u64 %far, s; add.u64 %far, %far, %at;\n"
            "add.u32 %y, %rank, 1; rem.u32 %y, %y, %count; mapa.u64 %far, %far, %y; mov.u32 %x, %t;\n"
            "LOOP: st.u32 [%far], %x; barrier.cluster.arrive.release; add.u32 %z, %z, 1;\n"
            "barrier.cluster.wait.acquire; mov.u64 %at, s; mul.wide.u32 %state, %t, 4;\n"
            "add.u64 %at, %at, %state; ld.shared.u32 %x, [%at]; add.u32 %x, %x, %rank;\n" +
                sync_cluster + "setp.lt.u32 %p, %z, 20; @%p bra LOOP;\nst.global.u32 [%out], %x;\n",
            3, 6, 96);
    REQUIRE(message_of(made) == "no fault");
    for (std::uint32_t i = 0; i < made.out.size(); ++i) {
        const std::uint32_t t = i % 96, rank = i / 96 % 3;
        // The value is passed to the next rank twenty times; each rank adds its own number.
        std::uint32_t sum = t;
        for (std::uint32_t step = 0, at = (rank + 3 - 20 % 3) % 3; step < 20; ++step)
            sum += at = (at + 1) % 3;
        CHECK(made.out[i] == (t < 70 ? sum : 0));
    }
}

TEST_CASE("wrong uses of a cluster are reported") {
    // The next block may have ended: no block waits for the reader.
    const auto gone = run(next_block + "setp.ne.u32 %p, %rank, 0; @%p ret;\n" + sync_cluster +
                              "ld.shared::cluster.u32 %x, [%far]; st.global.u32 [%out], %x;\n",
                          2, 2, 32);
    REQUIRE(gone.fault);
    CHECK(gone.fault->kind == Fault::Kind::illegal_address);
    CHECK(message_of(gone).find("has ended: its shared memory is gone") != std::string::npos);
    CHECK(gone.fault->block == Dim3{0, 0, 0});

    const auto beyond = run("mov.u64 %far, s; mapa.u64 %far, %far, 3; ld.u32 %x, [%far];", 2, 2, 32);
    CHECK(message_of(beyond).find("the cluster has 2 blocks, and this is the shared memory of rank 3") !=
          std::string::npos);
    const auto outside = run("mov.u64 %far, s; mapa.u64 %far, %far, 1; ld.u32 %x, [%far+1032];", 2, 2, 32);
    CHECK(message_of(outside).find("byte 1032 of rank 1") != std::string::npos);
    const auto elsewhere = run("ld.shared::cluster.u32 %x, [%in];", 2, 2, 32);
    REQUIRE(elsewhere.fault);
    CHECK(elsewhere.fault->kind == Fault::Kind::illegal_address);
    const auto own = run("mov.u64 %far, s; mapa.u64 %far, %far, 1; ld.shared.u32 %x, [%far];", 2, 2, 32);
    REQUIRE(own.fault);
    CHECK(own.fault->kind == Fault::Kind::illegal_address);

    CHECK(message_of(run("barrier.cluster.arrive; barrier.cluster.arrive;", 2, 2, 32))
              .find("arrived already") != std::string::npos);
    CHECK(message_of(run("barrier.cluster.wait;", 2, 2, 32)).find("has not arrived") != std::string::npos);
    // In each block, thread 0 waits at the block's barrier and the other threads wait at the cluster's.
    const auto stuck =
        run("setp.eq.u32 %p, %t, 0; @%p bar.sync 0;\n@%p bra OVER;\n" + sync_cluster + "OVER:\n", 2, 2, 32);
    REQUIRE(stuck.fault);
    CHECK(stuck.fault->kind == Fault::Kind::launch_failed);
    CHECK(message_of(stuck).find("divergent barrier") != std::string::npos);
}

TEST_CASE("a multicast copies to each block of its mask, and signals there") {
    const auto made = run(
        "setp.eq.u32 %p, %t, 0; @%p mbarrier.init.shared.b64 [bar], 1;\n"
        "fence.mbarrier_init.release.cluster;\n" +
            sync_cluster +
            "@!%p bra WAIT;\nmbarrier.arrive.expect_tx.shared.b64 %state, [bar], 128;\n"
            "setp.ne.u32 %q, %rank, 1; @%q bra WAIT; mov.u16 %mask, 15;\n"
            "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster "
            "[s], [%first], 128, [bar], %mask;\n"
            "WAIT: mbarrier.try_wait.parity.shared.b64 %q, [bar], 0; @!%q bra WAIT;\n"
            "mul.wide.u32 %at, %t, 4; mov.u64 %far, s; add.u64 %far, %far, %at; ld.shared.u32 %x, [%far];\n"
            "st.global.u32 [%out], %x;\n" +
            sync_cluster,
        4, 8, 32);
    REQUIRE(message_of(made) == "no fault");
    for (std::uint32_t i = 0; i < made.out.size(); ++i) CHECK(made.out[i] == made.in[i % 32]);
}

TEST_CASE("a block waits at its mbarrier for arrivals and bytes of another block") {
    const auto made = run(
        "setp.eq.u32 %p, %t, 0; @%p mbarrier.init.shared.b64 [bar], %count;\n"
        "@%p mbarrier.expect_tx.relaxed.cluster.shared::cta.b64 [bar], 128;\n" +
            next_block + "fence.proxy.async;\n" + sync_cluster +
            "mov.u64 %state, bar; mapa.u64 %state, %state, %y;\n@!%p bra WAIT;\n"
            "mov.u64 %far, s; add.u64 %far, %far, 512; mapa.u64 %far, %far, %y;\n"
            "cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes "
            "[%far], [s], 128, [%state];\n"
            "mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%state], %count;\n"
            "WAIT: mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %q, [bar], 0; @!%q bra WAIT;\n"
            "mul.wide.u32 %at, %t, 4; mov.u64 %far, s; add.u64 %far, %far, %at;\n"
            "ld.shared.u32 %x, [%far+512]; st.global.u32 [%out], %x;\n" +
            sync_cluster,
        3, 6, 32);
    REQUIRE(message_of(made) == "no fault");
    for (std::uint32_t i = 0; i < made.out.size(); ++i) {
        const std::uint32_t block = i / 32, before = block / 3 * 3 + (block % 3 + 2) % 3;
        CHECK(made.out[i] == made.in[before * 32 + i % 32]);
    }
}

TEST_CASE("one lane is elected of those that are there") {
    const auto made =
        run("mov.u32 %y, 0; setp.lt.u32 %p, %t, 40; @%p bra LOW;\nelect.sync %x|%q, 0xffffff00; bra OVER;\n"
            "LOW: setp.lt.u32 %p, %t, 32; @!%p bra SOME;\nelect.sync %x|%q, -1; bra OVER;\n"
            "SOME: elect.sync %x|%q, 0xff;\n"
            "OVER: selp.u32 %y, 100, 0, %q; add.u32 %x, %x, %y; st.global.u32 [%out], %x;",
            1, 1, 64);
    REQUIRE(message_of(made) == "no fault");
    for (std::uint32_t t = 0; t < 64; ++t) {
        const std::uint32_t leader = t < 40 ? 0 : 8;
        CHECK(made.out[t] == leader + (t % 32 == leader ? 100 : 0));
    }
}
