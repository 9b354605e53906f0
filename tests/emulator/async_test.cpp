// Asynchronous copies and barriers in shared memory, compared with models of the PTX ISA; and reports of errors.
#include <algorithm>
#include <chrono>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "machine/mbarrier.hpp"
#include "ptx_device.hpp"
#include "report/report.hpp"

using emulated::machine::Fault;
using testing::Device;

namespace {

const std::string async_prologue = ".version 9.0\n.target sm_90\n.address_size 64\n";
constexpr std::uint32_t poison = 0xffff'ffff;

// A kernel whose threads each have 256 bytes of `in`, of shared memory and of `out`.
std::string async_kernel(const std::string& body) {
    return async_prologue +
           ".entry k(.param .u64 pin, .param .u64 pout) {\n.shared .align 16 .b8 s[16384];\n"
           ".shared .align 8 .b64 bar;\n.reg .b64 %in, %out, %first, %mine, %at, %state;\n"
           ".reg .b32 %t, %x, %y, %z;\n.reg .pred %p, %q;\n"
           "ld.param.u64 %first, [pin]; ld.param.u64 %out, [pout]; mov.u32 %t, %tid.x;\n"
           "mul.wide.u32 %at, %t, 256; add.u64 %in, %first, %at; add.u64 %out, %out, %at;\n"
           "mov.u64 %mine, s; add.u64 %mine, %mine, %at;\n" +
           body + "\nret; }";
}

std::vector<std::uint32_t> random_words(std::size_t count, std::mt19937& random) {
    std::vector<std::uint32_t> made(count);
    for (auto& word : made)
        word = random() | 1;  // never 0, because copies of fewer bytes than their size write zeros
    return made;
}

// A model of correctly synchronized copies of a few bytes within a thread's own memory, with groups and waits. The
// model delays every copy until a wait covers it.
class CopyModel {
  public:
    struct Copy {
        unsigned to = 0, words = 0, group = 0;
        std::vector<std::uint32_t> values;
    };
    void copy(unsigned to, std::vector<std::uint32_t> values) {
        std::fill_n(memory.begin() + to, values.size(), poison);
        pending_.push_back({to, static_cast<unsigned>(values.size()), committed_, std::move(values)});
    }
    void commit() { ++committed_; }
    void wait(unsigned recent) {
        std::erase_if(pending_, [&](const Copy& copy) {
            if (copy.group + recent >= committed_) return false;
            std::ranges::copy(copy.values, memory.begin() + copy.to);
            return true;
        });
    }
    std::vector<std::uint32_t> memory = std::vector<std::uint32_t>(64);

  private:
    std::vector<Copy> pending_;
    unsigned committed_ = 0;
};

std::string message_of(const std::optional<Fault>& fault) { return fault ? fault->message : "no fault"; }

}  // namespace

TEST_CASE("random copies are there after the wait that covers them, and not before") {
    constexpr unsigned threads = 64, words = 64;
    for (unsigned seed = 0; seed < 40; ++seed) {
        std::mt19937 random(seed);
        auto in = random_words(threads * words, random);
        std::vector<std::uint32_t> out(threads * words);
        std::string body;
        // All threads have the same instructions; odd threads skip some, and so have other groups.
        std::vector<CopyModel> models(threads);
        for (auto& model : models) std::ranges::fill(model.memory, 7);
        for (unsigned w = 0; w < words; ++w)
            body += "st.shared.u32 [%mine+" + std::to_string(4 * w) + "], 7;\n";
        body += "and.b32 %x, %t, 1; setp.eq.u32 %p, %x, 0;\n";
        for (unsigned step = 0; step < 24; ++step) {
            const bool guarded = random() % 4 == 0;
            const unsigned kind = random() % 8;
            const std::string guard = guarded ? "@%p " : "";
            const auto each = [&](const auto& act) {
                for (unsigned t = 0; t < threads; ++t) {
                    if (!guarded || t % 2 == 0) act(t, models[t]);
                }
            };
            if (kind < 4) {
                const unsigned size = 1u << random() % 3, to = random() % (words / size) * size,
                               from = random() % (words / size) * size;  // in words
                const unsigned valid = random() % 3 == 0 ? random() % (4 * size + 1) / 4 : size;
                const bool ignores = random() % 8 == 0;
                const std::string level = size == 4 && random() % 2 ? "cg" : "ca";
                body += guard + "cp.async." + level + ".shared.global [%mine+" + std::to_string(4 * to) +
                        "], [%in+" + std::to_string(4 * from) + "], " + std::to_string(4 * size);
                if (ignores)
                    body += ", %p";
                else if (valid != size || random() % 2)
                    body += ", " + std::to_string(4 * valid);
                body += ";\n";
                each([&](unsigned t, CopyModel& model) {
                    std::vector<std::uint32_t> values(size);
                    const bool none = ignores && t % 2 == 0;
                    for (unsigned k = 0; k < (none ? 0 : ignores ? size : valid); ++k)
                        values[k] = in[t * words + from + k];
                    model.copy(to, std::move(values));
                });
            } else if (kind < 6) {
                body += guard + "cp.async.commit_group;\n";
                each([](unsigned, CopyModel& model) { model.commit(); });
            } else {
                const unsigned recent = random() % 3;
                const bool all = random() % 4 == 0;
                body += guard +
                        (all ? "cp.async.wait_all" : "cp.async.wait_group " + std::to_string(recent)) + ";\n";
                each([&](unsigned, CopyModel& model) {
                    if (all) model.commit();
                    model.wait(all ? 0 : recent);
                });
            }
        }
        for (unsigned w = 0; w < words; ++w) {
            const std::string at = std::to_string(4 * w);
            body += "ld.shared.u32 %x, [%mine+" + at + "]; st.global.u32 [%out+" + at + "], %x;\n";
        }
        Device device(async_kernel(body));
        const auto fault = device.launch("k", {1}, {threads}, device.array(in), device.array(out));
        REQUIRE(message_of(fault) == "no fault");
        CAPTURE(seed);
        bool same = true;
        for (unsigned t = 0; t < threads; ++t)
            same =
                same && std::equal(models[t].memory.begin(), models[t].memory.end(), out.begin() + t * words);
        CHECK(same);
    }
}

TEST_CASE("a thread that ends leaves no copy behind") {
    std::mt19937 random(3);
    auto in = random_words(64 * 64, random);
    std::vector<std::uint32_t> out(64 * 64);
    // The first warp copies and ends without a wait. The second reads after a barrier, which does not wait for ended
    // threads.
    Device device(
        async_kernel("setp.lt.u32 %p, %t, 32; @!%p bra READ;\n"
                     "cp.async.cg.shared.global [%mine], [%in], 16; ret;\n"
                     "READ: bar.sync 0; ld.shared.u32 %x, [%mine+-8192]; st.global.u32 [%out], %x;"));
    REQUIRE(message_of(device.launch("k", {1}, {64}, device.array(in), device.array(out))) == "no fault");
    for (unsigned t = 32; t < 64; ++t) CHECK(out[64 * t] == in[64 * (t - 32)]);
}

TEST_CASE("wrong asynchronous copies are reported where they are begun") {
    std::vector<std::uint32_t> in(64 * 64), out(64 * 64);
    const auto fault_of = [&](const std::string& copy) {
        Device device(async_kernel(copy + "\ncp.async.wait_all;"));
        const auto fault = device.launch("k", {1}, {64}, device.array(in), device.array(out));
        REQUIRE(fault);
        return *fault;
    };
    const Fault past = fault_of("cp.async.ca.shared.global [%mine], [%in+252], 8;");
    CHECK(past.kind == Fault::Kind::misaligned_address);
    const Fault beyond = fault_of("cp.async.ca.shared.global [%mine], [%in+256], 16;");
    CHECK(beyond.kind == Fault::Kind::illegal_address);
    CHECK(beyond.thread == emulated::machine::Dim3{63, 0, 0});
    CHECK(beyond.access_bytes == 16);
    CHECK_FALSE(beyond.write);
    const Fault outside = fault_of("cp.async.cg.shared.global [%mine+512], [%in], 16;");
    CHECK(outside.kind == Fault::Kind::illegal_address);
    CHECK(outside.thread == emulated::machine::Dim3{62, 0, 0});
    CHECK(outside.write);
    CHECK(std::string(outside.space) == "shared");
    CHECK(fault_of("cp.async.ca.shared.global [%mine], [%in], 4, 8;").message.find("cannot read 8") !=
          std::string::npos);
    // The source of a copy that only fills with zeros need not be memory.
    Device device(
        async_kernel("mov.u64 %at, 0; cp.async.ca.shared.global [%mine], [%at], 16, 0; cp.async.wait_all;\n"
                     "ld.shared.u32 %x, [%mine+12]; st.global.u32 [%out], %x;"));
    out[0] = 5;
    CHECK_FALSE(device.launch("k", {1}, {64}, device.array(in), device.array(out)));
    CHECK(out[0] == 0);
}

namespace {

/// The barrier object as the manual describes it, in plain integers.
struct BarrierModel {
    std::int64_t expected = 0, pending = 0, bytes = 0, phase = 0;
    void settle() {
        if (pending != 0 || bytes != 0) return;
        ++phase;
        pending = expected;
    }
};

}  // namespace

TEST_CASE("a random life of an mbarrier is that of the manual") {
    for (unsigned seed = 0; seed < 200; ++seed) {
        std::mt19937 random(seed);
        BarrierModel model;
        model.expected = model.pending = static_cast<std::int64_t>(1 + random() % 6);
        std::string body = "mbarrier.init.shared.b64 [bar], " + std::to_string(model.expected) + ";\n";
        std::vector<std::uint32_t> expected;
        const auto observe = [&](const std::string& value) {
            body += "st.global.u32 [%out+" + std::to_string(4 * expected.size()) + "], " + value + ";\n";
        };
        while (expected.size() < 56) {
            const std::string count = std::to_string(1 + random() % 40);
            switch (random() % 7) {
                case 0:
                    body += "mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [bar], " + count + ";\n";
                    model.bytes += std::stoi(count);
                    break;
                case 1:
                    body += "mbarrier.complete_tx.relaxed.cta.shared::cta.b64 [bar], " + count + ";\n";
                    model.bytes -= std::stoi(count);
                    model.settle();
                    break;
                case 2: {  // arrivals that may end the phase
                    if (model.pending == 0) break;
                    const auto by = 1 + static_cast<std::int64_t>(random() % model.pending);
                    const bool stays = by < model.pending && random() % 2 != 0;
                    body += std::string("mbarrier.arrive") + (stays ? ".noComplete" : "") +
                            ".shared.b64 %state, [bar], " + std::to_string(by) + ";\n" +
                            "mbarrier.pending_count.b64 %x, %state;\n";
                    observe("%x");
                    expected.push_back(static_cast<std::uint32_t>(model.pending));
                    const std::int64_t before = model.phase;
                    model.pending -= by;
                    if (!stays) model.settle();
                    body += "mbarrier.test_wait.shared.b64 %p, [bar], %state; selp.u32 %x, 1, 0, %p;\n";
                    observe("%x");
                    expected.push_back(model.phase != before);
                    break;
                }
                case 3:  // an arrival that also expects more bytes
                    if (model.pending == 0) break;
                    body += "mbarrier.arrive.expect_tx.shared.b64 _, [bar], " + count + ";\n";
                    model.bytes += std::stoi(count);
                    --model.pending;
                    model.settle();
                    break;
                case 4:
                    if (model.pending == 0 || model.expected == 1 || random() % 4 != 0) break;
                    body += "mbarrier.arrive_drop.shared.b64 _, [bar];\n";
                    --model.expected;
                    --model.pending;
                    model.settle();
                    break;
                case 5:  // complete the expected bytes, so that phases do end
                    if (model.bytes == 0) break;
                    body += std::string("mbarrier.") + (model.bytes > 0 ? "complete_tx" : "expect_tx") +
                            ".relaxed.cta.shared::cta.b64 [bar], " + std::to_string(std::abs(model.bytes)) +
                            ";\n";
                    if (model.bytes > 0) {
                        model.bytes = 0;
                        model.settle();
                    } else {
                        model.bytes = 0;
                        // `expect_tx` does not end a phase, even with nothing pending; a completion of 0 bytes does.
                        body += "mbarrier.complete_tx.relaxed.cta.shared::cta.b64 [bar], 0;\n";
                        model.settle();
                    }
                    break;
                default: {
                    const auto parity = random() % 2;
                    body += std::string("mbarrier.") + (random() % 2 ? "test_wait" : "try_wait") +
                            ".parity.shared.b64 %p, [bar], " + std::to_string(parity) +
                            "; selp.u32 %x, 1, 0, %p;\n";
                    observe("%x");
                    expected.push_back(model.phase % 2 != static_cast<std::int64_t>(parity));
                }
            }
        }
        std::vector<std::uint32_t> in(64), out(64);
        Device device(async_kernel(body));
        CAPTURE(seed);
        REQUIRE(message_of(device.launch("k", {1}, {1}, device.array(in), device.array(out))) == "no fault");
        CHECK(std::equal(expected.begin(), expected.end(), out.begin()));
    }
}

TEST_CASE("the bits of an mbarrier are read back, and other memory is none") {
    using emulated::machine::Mbarrier;
    std::mt19937 random(5);
    for (int i = 0; i < 10'000; ++i) {
        Mbarrier made(1 + random() % Mbarrier::most_arrivals);
        made.pending = random() % (made.expected + 1);
        made.bytes =
            static_cast<std::int64_t>(random() % (2 * Mbarrier::most_bytes + 1)) - Mbarrier::most_bytes;
        made.odd = random() % 2 != 0;
        const auto read = Mbarrier::read(made.bits());
        REQUIRE(read);
        REQUIRE(read->expected == made.expected);
        REQUIRE(read->pending == made.pending);
        REQUIRE(read->bytes == made.bytes);
        REQUIRE(read->odd == made.odd);
    }
    CHECK_FALSE(Mbarrier::read(0));
    CHECK_FALSE(Mbarrier::read(~std::uint64_t{0}));
}

TEST_CASE("misuses of an mbarrier are reported with what is wrong") {
    const struct {
        const char *body, *said;
    } cases[] = {
        {"mbarrier.arrive.shared.b64 _, [bar];", "not initialised"},
        {"mbarrier.init.shared.b64 [bar], 0;", "a count is 1 to 2^20 - 1"},
        {"mbarrier.init.shared.b64 [bar], 2; mbarrier.arrive.shared.b64 _, [bar], 3;",
         "more arrivals than the phase"},
        {"mbarrier.init.shared.b64 [bar], 2; mbarrier.arrive.noComplete.shared.b64 _, [bar], 2;",
         ".noComplete"},
        {"mbarrier.init.shared.b64 [bar], 2; mbarrier.inval.shared.b64 [bar]; mbarrier.arrive.shared.b64 _, [bar];",
         "not initialised"},
        {"mbarrier.init.shared.b64 [bar], 2; mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [bar], 1048575;"
         "mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [bar], 1;",
         "more than 2^20 - 1 bytes"},
        {"mbarrier.init.shared.b64 [bar], 2; mov.u64 %state, 7; mbarrier.test_wait.shared.b64 %p, [bar], %state;",
         "not what an arrival returned"},
        {"mov.u64 %state, 0; mbarrier.pending_count.b64 %x, %state;", "not what an arrival returned"},
    };
    for (const auto& each : cases) {
        CAPTURE(std::string(each.body));
        std::vector<std::uint32_t> in(64), out(64);
        Device device(async_kernel(each.body));
        const auto fault = device.launch("k", {1}, {1}, device.array(in), device.array(out));
        REQUIRE(fault);
        CHECK(fault->kind == Fault::Kind::misuse);
        CHECK(fault->message.find(each.said) != std::string::npos);
        CHECK(fault->ptx_line > 0);
    }
    std::vector<std::uint32_t> in(64), out(64);
    // A barrier that an earlier block initialized does not exist for later blocks.
    Device later(
        async_kernel("mov.u32 %x, %ctaid.x; setp.eq.u32 %p, %x, 0; @%p mbarrier.init.shared.b64 [bar], 2;\n"
                     "mbarrier.arrive.shared.b64 _, [bar];"));
    const auto second = later.launch("k", {2}, {1}, later.array(in), later.array(out));
    REQUIRE(second);
    CHECK(second->block == emulated::machine::Dim3{1, 0, 0});
    CHECK(second->message.find("not initialised") != std::string::npos);
    Device device(async_kernel("mbarrier.init.shared.b64 [bar+4], 1;"));
    const auto fault = device.launch("k", {1}, {1}, device.array(in), device.array(out));
    REQUIRE(fault);
    CHECK(fault->kind == Fault::Kind::misaligned_address);
}

TEST_CASE("warps that poll an mbarrier let the others run, and lanes too") {
    constexpr unsigned threads = 256;
    std::vector<std::uint32_t> in(64 * threads), out(64 * threads);
    for (unsigned i = 0; i < in.size(); ++i) in[i] = i;
    // Thread 255 arrives last, after a long loop; other lanes of its warp poll.
    Device device(
        async_kernel("setp.eq.u32 %p, %t, 0; @%p mbarrier.init.shared.b64 [bar], 256; bar.sync 0;\n"
                     "setp.ne.u32 %p, %t, 255; @%p bra ARRIVE;\nmov.u32 %x, 0;\n"
                     "LOOP: add.u32 %x, %x, 1; setp.lt.u32 %q, %x, 100000; @%q bra LOOP;\n"
                     "st.shared.u32 [s], %x;\n"
                     "ARRIVE: mbarrier.arrive.shared.b64 %state, [bar];\n"
                     "POLL: mbarrier.test_wait.shared.b64 %q, [bar], %state; @!%q bra POLL;\n"
                     "ld.shared.u32 %x, [s]; st.global.u32 [%out], %x;"));
    // `s` has room for 64 threads; the other threads do not use theirs.
    REQUIRE(message_of(device.launch("k", {1}, {threads}, device.array(in), device.array(out))) ==
            "no fault");
    for (unsigned t = 0; t < threads; ++t) CHECK(out[64 * t] == 100'000);
}

TEST_CASE("a wait that never ends is reported with what it waits for") {
    std::vector<std::uint32_t> in(64 * 64), out(64 * 64);
    Device device(
        async_kernel("setp.eq.u32 %p, %t, 0; @%p mbarrier.init.shared.b64 [bar], 65; bar.sync 0;\n"
                     "mbarrier.arrive.shared.b64 %state, [bar];\n"
                     "POLL: mbarrier.try_wait.shared.b64 %q, [bar], %state;\n@!%q bra POLL;"));
    device.limits.idle = std::chrono::milliseconds(300);
    const auto fault = device.launch("k", {1}, {64}, device.array(in), device.array(out));
    REQUIRE(fault);
    CHECK(fault->kind == Fault::Kind::timeout);
    CHECK(fault->message.find("phase still expects 1 arrivals and 0 bytes") != std::string::npos);
    REQUIRE(fault->loop);
}

TEST_CASE("bulk copies bring their bytes to an mbarrier, and no earlier") {
    std::mt19937 random(11);
    auto in = random_words(64 * 64, random);
    std::vector<std::uint32_t> out(64 * 64);
    Device device(async_kernel(
        "setp.eq.u32 %p, %t, 0; @%p mbarrier.init.shared.b64 [bar], 1; bar.sync 0;\n"
        "@!%p bra WAIT;\nmbarrier.arrive.expect_tx.shared.b64 %state, [bar], 16384;\n"
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [s], [%first], 8192, [bar];\n"
        "cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [s+8192], [%first+8192], 8192, [bar];\n"
        "WAIT: bar.sync 0; ld.shared.u32 %y, [%mine]; bar.sync 0;\n"
        "POLL: mbarrier.try_wait.parity.shared.b64 %q, [bar], 0, 1000; @!%q bra POLL;\n"
        "ld.shared.u32 %x, [%mine]; st.global.v2.u32 [%out], {%x, %y};"));
    REQUIRE(message_of(device.launch("k", {1}, {64}, device.array(in), device.array(out))) == "no fault");
    for (unsigned t = 0; t < 64; ++t) {
        CHECK(out[64 * t] == in[64 * t]);
        CHECK(out[64 * t + 1] == poison);
    }
    Device odd(async_kernel(
        "mbarrier.init.shared.b64 [bar], 1;\n"
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [s], [%first], 24, [bar];"));
    CHECK(message_of(odd.launch("k", {1}, {1}, odd.array(in), odd.array(out))).find("multiples of 16") !=
          std::string::npos);
    Device past(async_kernel(
        "mbarrier.init.shared.b64 [bar], 1;\n"
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [s], [%first+16], 16384, [bar];"));
    const auto fault = past.launch("k", {1}, {1}, past.array(in), past.array(out));
    REQUIRE(fault);
    CHECK(fault->kind == Fault::Kind::illegal_address);
    CHECK(fault->access_bytes == 16384);
}

TEST_CASE("a bulk copy to global memory takes its source at the wait for it") {
    std::vector<std::uint32_t> in(64 * 64), out(64 * 64);
    // If the source is overwritten without a wait, the copied value is not the original one; with a wait it is.
    for (const bool waits : {false, true}) {
        Device device(
            async_kernel("st.shared.u32 [%mine], 11;\nfence.proxy.async;\n"
                         "cp.async.bulk.global.shared::cta.bulk_group [%out], [%mine], 256;\n"
                         "cp.async.bulk.commit_group;\n" +
                         std::string(waits ? "cp.async.bulk.wait_group.read 0;\n" : "") +
                         "st.shared.u32 [%mine], 22;\ncp.async.bulk.wait_group 0;"));
        REQUIRE(message_of(device.launch("k", {1}, {64}, device.array(in), device.array(out))) == "no fault");
        CHECK(out[64] == (waits ? 11 : 22));
    }
}

TEST_CASE("a bulk copy of what a store wrote needs a fence.proxy.async") {
    const std::string write = "st.shared.u32 [%mine], 11;\n", fence = "fence.proxy.async",
                      copy = "cp.async.bulk.global.shared::cta.bulk_group [%out], [%mine], 256;\n";
    const auto message = [](const std::string& body) {
        std::vector<std::uint32_t> in(64 * 64), out(64 * 64);
        Device device(async_kernel(body + "cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;"));
        return message_of(device.launch("k", {1}, {64}, device.array(in), device.array(out)));
    };
    const std::string words =
        "cp.async.bulk reads byte 0 of shared memory, which was written by an ordinary store";
    for (const std::string& body :
         {write + copy, fence + ";\n" + write + copy, write + fence + ".global;\n" + copy,
          write + "fence.proxy.alias;\nbar.sync 0;\n" + copy,
          write + fence + ";\nst.shared.u32 [%mine], 12;\n" + copy,
          "cp.async.ca.shared.global [%mine], [%first], 4; cp.async.wait_all;\n" + copy}) {
        CAPTURE(body);
        CHECK(message(body).starts_with(words));
    }
    for (const std::string& body :
         {copy, write + fence + ";\n" + copy, write + fence + ".shared::cta;\nbar.sync 0;\n" + copy,
          write + "bar.sync 0;\n" + fence + ".shared::cluster;\n" + copy,
          write + "fence.proxy.async::generic.release.sync_restrict::shared::cta.cluster;\n" + copy,
          write + fence + ";\nst.shared.u32 [%mine], 11;\n" + copy}) {
        CAPTURE(body);
        CHECK(message(body) == "no fault");
    }
}
