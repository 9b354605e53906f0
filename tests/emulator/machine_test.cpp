// Kernels compiled by NVRTC or written in PTX, compared with C++. vectors.cpp compares the results of single
// instructions.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <random>
#include <string>
#include <type_traits>

#include <doctest/doctest.h>

#include "machine/registry.hpp"
#include "program/code.hpp"
#include "ptx_device.hpp"

using emulated::machine::Fault;
using testing::Device;
using testing::read_ptx;

namespace {

template <class T>
bool same(T a, T b) {
    if constexpr (std::is_floating_point_v<T>) {
        if (std::isnan(a) || std::isnan(b)) return std::isnan(a) && std::isnan(b);
    }
    // NOLINTNEXTLINE(bugprone-suspicious-memory-comparison): 0 and -0 differ
    return std::memcmp(&a, &b, sizeof a) == 0;
}

template <class T>
void expect_equal(const std::vector<T>& got, const std::vector<T>& expected, const std::string& what) {
    REQUIRE(got.size() == expected.size());
    int shown = 0;
    for (std::size_t i = 0; i < got.size(); ++i) {
        if (same(got[i], expected[i])) continue;
        if (++shown > 5) break;
        INFO(what << " [" << i << "] got " << double(got[i]) << ", expected " << double(expected[i]));
        CHECK(false);
    }
    CHECK(shown == 0);
}

Device programs(unsigned workers = 1) { return Device(read_ptx("programs.ptx"), workers); }

std::vector<float> noise(std::size_t count, unsigned seed) {
    std::mt19937 random(seed);
    std::vector<float> made(count);
    for (float& each : made) each = float(random() % 2001) / 1000.0f - 1.0f;
    return made;
}

// Decodes the bits of a half: an independent, slow reading of the format.
double half_value(std::uint16_t bits) {
    const int exponent = bits >> 10 & 31, fraction = bits & 1023;
    const double sign = bits & 0x8000 ? -1 : 1;
    if (exponent == 31) return fraction ? NAN : sign * INFINITY;
    if (exponent == 0) return sign * std::ldexp(fraction, -24);
    return sign * std::ldexp(1024 + fraction, exponent - 25);
}

// The nearest half of a double, by scaling to an integer and rounding that.
std::uint16_t nearest_half(double v) {
    if (std::isnan(v)) return 0x7fff;
    const std::uint16_t sign = std::signbit(v) ? 0x8000 : 0;
    const double m = std::fabs(v);
    if (m >= 65520) return sign | 0x7c00;
    const int exponent = m == 0 ? -14 : std::max(std::ilogb(m), -14);
    const double units = std::nearbyint(std::ldexp(m, 10 - exponent));
    return static_cast<std::uint16_t>(sign | static_cast<int>(units + 1024.0 * (exponent + 14)));
}

}  // namespace

TEST_CASE("every half converts to its value, and floats to the nearest half") {
    Device device(read_ptx("floats.ptx"));
    std::vector<std::uint16_t> all(65536);
    for (int i = 0; i < 65536; ++i) all[i] = static_cast<std::uint16_t>(i);
    std::vector<float> out(65536);
    REQUIRE_FALSE(
        device.launch("halves_to_float", {256}, {256}, device.array(all), device.array(out), 65536));
    for (int i = 0; i < 65536; ++i) {
        const bool right = same(double(out[i]), half_value(all[i]));
        if (!right) INFO("half " << i << " became " << out[i]);
        REQUIRE(right);
    }

    std::vector<float> floats(65536);
    std::mt19937 random(12);
    for (float& f : floats) {
        const std::uint32_t bits = random();
        std::memcpy(&f, &bits, 4);
    }
    for (int i = 0; i < 30000; ++i)
        floats[i] = std::ldexp(float(random() % 4096) + 0.5f * float(random() % 2), int(random() % 40) - 36);
    std::vector<std::uint16_t> halves(65536), brains(65536);
    REQUIRE_FALSE(device.launch("float_to_halves", {256}, {256}, device.array(floats), device.array(halves),
                                device.array(brains), 65536));
    for (int i = 0; i < 65536; ++i) REQUIRE(halves[i] == nearest_half(floats[i]));
}

TEST_CASE("dynamic shared memory begins after the static variables and constants are initialised") {
    Device device = programs();
    constexpr int width = 100, height = 3;
    std::vector<float> a = noise(width * height, 18), out(width * height), expected(width * height);
    const float taps[9] = {.1f, .2f, .3f, .4f, .5f, .4f, .3f, .2f, .1f};
    for (int y = 0; y < height; ++y) {
        for (int x = 0; x < width; ++x) {
            float sum = 0;
            for (int k = 0; k < 9; ++k)
                sum = std::fmaf(taps[k], a[y * width + std::clamp(x + k - 4, 0, width - 1)], sum);
            expected[y * width + x] = sum;
        }
    }
    device.dynamic_shared_bytes = (64 + 8) * 4;
    REQUIRE_FALSE(device.launch("blur", {2, height}, {64}, device.array(a), device.array(out), width));
    expect_equal(out, expected, "blur");
}

TEST_CASE("atomics of every block arrive") {
    for (const unsigned workers : {1u, 3u}) {
        Device device = programs(workers);
        constexpr int blocks = 6, threads = 128;
        std::vector<int> g(4);
        std::vector<unsigned> u = {~0u, 0, 0, 0, 0, 0};
        std::vector<float> f(1);
        std::vector<double> d(1);
        std::vector<unsigned long long> l(2);
        REQUIRE_FALSE(device.launch("atomics", {blocks}, {threads}, device.array(g), device.array(u),
                                    device.array(f), device.array(d), device.array(l)));
        CHECK(g ==
              std::vector<int>{blocks * threads, -blocks * threads * (threads - 1) / 2, -500, threads - 1});
        CHECK(u[0] == 0xffff0000u);
        CHECK(u[1] == ~0u);
        CHECK(u[2] == 0);
        CHECK(u[3] == blocks * threads % 18);
        CHECK(u[5] > 0);
        CHECK(f[0] == 0.5f * blocks * threads);
        CHECK(d[0] == 0.25 * blocks * threads);
        CHECK(l[0] == (1ull << 33) * blocks * threads);
        CHECK(l[1] == threads - 1);
    }
}

// Compilers write each register once; hand-written PTX need not.
TEST_CASE("an address register is looked at again once it has changed") {
    // Consecutive addresses first, then the same ones in reverse.
    Device device(
        testing::sm_80_prologue +
        ".entry k(.param .u64 pin, .param .u64 pout) {\n.reg .b64 %in, %out, %x; .reg .b32 %t, %a, %b;\n"
        "ld.param.u64 %in, [pin]; ld.param.u64 %out, [pout]; mov.u32 %t, %tid.x;\n"
        "mad.wide.u32 %out, %t, 4, %out; mad.wide.u32 %x, %t, 4, %in; ld.global.u32 %a, [%x];\n"
        "sub.u32 %t, 31, %t; mad.wide.u32 %x, %t, 4, %in; ld.global.u32 %b, [%x];\n"
        "st.global.u32 [%out], %a; st.global.u32 [%out+128], %b; ret; }");
    std::vector<int> in(64), out(64), expected(64);
    for (int i = 0; i < 64; ++i) in[i] = 100 + i;
    for (int i = 0; i < 32; ++i) expected[i] = in[i], expected[32 + i] = in[31 - i];
    REQUIRE_FALSE(device.launch("k", {1}, {32}, device.array(in), device.array(out)));
    CHECK(out == expected);
}

TEST_CASE("an address is the sum that was made, whatever becomes of its parts") {
    // %v changes after each sum that it is part of, and before a load at that sum. Odd threads change it once more.
    Device device(
        testing::sm_80_prologue +
        ".entry k(.param .u64 pin, .param .u64 pout) {\n"
        ".reg .b64 %in, %out, %v, %x, %y; .reg .b32 %t, %i, %a, %b, %sum; .reg .pred %p, %odd;\n"
        "ld.param.u64 %in, [pin]; ld.param.u64 %out, [pout]; mov.u32 %t, %tid.x;\n"
        "mad.wide.u32 %out, %t, 8, %out; mul.wide.u32 %v, %t, 4; and.b32 %a, %t, 1; setp.eq.u32 %odd, %a, 1;\n"
        "add.u64 %x, %in, %v; add.u64 %v, %v, 64; ld.global.u32 %a, [%x]; add.u64 %y, %v, %in;\n"
        "@%odd add.u64 %v, %v, 4; ld.global.u32 %b, [%y+4]; add.u32 %a, %a, %b;\n"
        "mov.u32 %sum, 0; mov.u32 %i, 0;\n"
        "LOOP: ld.global.u32 %b, [%x]; add.u32 %sum, %sum, %b; add.u64 %v, %v, 4; ld.global.u32 %b, [%x];\n"
        "add.u32 %sum, %sum, %b; add.u64 %x, %in, %v; add.u32 %i, %i, 1; setp.lt.u32 %p, %i, 3; @%p bra LOOP;\n"
        "st.global.u32 [%out], %a; st.global.u32 [%out+4], %sum; ret; }");
    std::vector<int> in(128), out(64), expected(64);
    for (int i = 0; i < 128; ++i) in[i] = 1000 + i * i;
    for (int t = 0; t < 32; ++t) {
        const int v = t + 16 + (t & 1);
        expected[2 * t] = in[t] + in[t + 17];
        expected[2 * t + 1] = 2 * (in[t] + in[v + 1] + in[v + 2]);
    }
    REQUIRE_FALSE(device.launch("k", {1}, {32}, device.array(in), device.array(out)));
    CHECK(out == expected);
}

TEST_CASE("who sleeps lets those run for whom it waits") {
    // The threads from %first on poll a flag between sleeps of a millisecond; the others, later in the text, set it.
    const std::string text =
        testing::sm_80_prologue +
        ".entry k(.param .u64 pout, .param .u32 pfirst) {\n.shared .b32 flag;\n"
        ".reg .b64 %out; .reg .b32 %t, %first, %looks, %f; .reg .pred %p;\n"
        "ld.param.u64 %out, [pout]; ld.param.u32 %first, [pfirst]; mov.u32 %t, %tid.x; mov.u32 %looks, 0;\n"
        "mad.wide.u32 %out, %t, 4, %out; st.volatile.shared.u32 [flag], 0; bar.sync 0;\n"
        "setp.lt.u32 %p, %t, %first; @%p bra SET;\n"
        "LOOK: nanosleep.u32 1000000; add.u32 %looks, %looks, 1; ld.volatile.shared.u32 %f, [flag];\n"
        "setp.eq.u32 %p, %f, 0; @%p bra LOOK; bra END;\n"
        "SET: st.volatile.shared.u32 [flag], 1; END: st.global.u32 [%out], %looks; ret; }";
    Device device(text);
    std::vector<unsigned> looks(96);
    const std::uint64_t out = device.array(looks);
    for (const std::uint32_t first : {1u, 31u, 32u, 64u, 95u}) {
        REQUIRE_FALSE(device.launch("k", {1}, {96}, out, first));
        for (unsigned t = 0; t < 96; ++t) {
            CHECK((looks[t] == 0) == (t < first));
            CHECK(looks[t] < 10);
        }
    }
}

TEST_CASE("a predicate that a branch has looked at is there for others too") {
    Device device(
        testing::sm_80_prologue +
        ".entry k(.param .u64 pout) {\n.reg .b64 %out; .reg .b32 %t, %a; .reg .pred %p;\n"
        "ld.param.u64 %out, [pout]; mov.u32 %t, %tid.x; mad.wide.u32 %out, %t, 4, %out; mov.u32 %a, 0;\n"
        "setp.lt.u32 %p, %t, 10; @%p bra SMALL; add.u32 %a, %a, 100; bra END;\n"
        "SMALL: add.u32 %a, %a, 1; END: @!%p add.u32 %a, %a, 1000; @%p add.u32 %a, %a, 10;\n"
        "st.global.u32 [%out], %a; ret; }");
    std::vector<int> out(32), expected(32);
    for (int t = 0; t < 32; ++t) expected[t] = t < 10 ? 11 : 1100;
    REQUIRE_FALSE(device.launch("k", {1}, {32}, device.array(out)));
    CHECK(out == expected);
}

TEST_CASE("a value that a guarded write may leave alone lives on through the loop") {
    // %v is 7 until the third iteration makes it 5. %w is needed only where %v is not needed until the next iteration.
    Device device(testing::sm_80_prologue +
                  ".entry k(.param .u64 pout) {\n.reg .b64 %out; .reg .b32 %v, %w, %i, %sum; .reg .pred %p;\n"
                  "ld.param.u64 %out, [pout]; mov.u32 %v, 7; mov.u32 %i, 0; mov.u32 %sum, 0;\n"
                  "LOOP: setp.eq.u32 %p, %i, 2; @%p mov.u32 %v, 5; add.u32 %sum, %sum, %v;\n"
                  "mul.lo.u32 %w, %i, 100; add.u32 %sum, %sum, %w;\n"
                  "add.u32 %i, %i, 1; setp.lt.u32 %p, %i, 4; @%p bra LOOP;\n"
                  "st.global.u32 [%out], %sum; ret; }");
    std::vector<int> out(1);
    REQUIRE_FALSE(device.launch("k", {1}, {1}, device.array(out)));
    CHECK(out[0] == 7 + 7 + 5 + 5 + 100 * (0 + 1 + 2 + 3));
}

TEST_CASE("a pointer in a global variable is relocated") {
    Device device = programs();
    REQUIRE_FALSE(device.launch("indirect", {1}, {32}));
    int counter = 0;
    std::memcpy(&counter, device.global("counter"), 4);
    CHECK(counter == 5 + 64);
}

TEST_CASE("what a lane did before the fault of another stays, and later blocks do not run") {
    Device device = programs();
    std::vector<float> x(64, 1.0f), y(32, 1.0f);
    const auto fault = device.launch("saxpy", {2}, {32}, 64, 1.0f, device.array(x), device.array(y));
    REQUIRE(fault);
    CHECK(fault->block.x == 1);
    CHECK(fault->write == false);
    CHECK(y[31] == 2.0f);
}

TEST_CASE("a failed assertion is a fault with its text, one that holds is none") {
    Device device = programs();
    const auto assertion = device.launch("asserts", {1}, {1}, 3);
    REQUIRE(assertion);
    CHECK(assertion->kind == Fault::Kind::assertion);
    CHECK(assertion->message.find("assertion `n > 3` failed") != std::string::npos);
    CHECK(assertion->file.find(".cu") != std::string::npos);
    CHECK(assertion->line != 0);
    CHECK_FALSE(device.launch("asserts", {1}, {1}, 4));
}

TEST_CASE("a store to constant memory is a fault, whichever way the address came") {
    Device device(
        testing::sm_80_prologue +
        ".const .b32 c[4] = {1, 2, 3, 4};.entry k() { .reg .b64 %d<3>; mov.u64 %d1, c; cvta.const.u64 %d2, "
        "%d1; st.u32 [%d2+8], 7; ret; }");
    const auto fault = device.launch("k", {1}, {1});
    REQUIRE(fault);
    CHECK(fault->kind == Fault::Kind::illegal_address);
    CHECK(fault->write);
}

TEST_CASE("printf prints what C would") {
    Device device = programs();
    REQUIRE_FALSE(device.launch("prints", {1}, {32}, -12));
    CHECK(device.printed == "-12  1.50 abc z 123456789abc 7%\n");
}

namespace {

// A load instruction to test under `.pragma "used_bytes_mask <mask>"`. It reads at `offset` in an allocation of `bytes`
// bytes and writes %r1 to %r4.
struct Masked {
    std::string load, mask;
    std::size_t bytes = 12;
    std::uint64_t offset = 0;
};

std::optional<Fault> run_masked(const Masked& masked, std::vector<std::uint32_t>& out,
                                unsigned threads = 32) {
    Device device(
        ".version 8.3\n.target sm_80\n.address_size 64\n"
        ".entry k(.param .u64 pin, .param .u64 pout) {\n.reg .b64 %in, %out; .reg .b32 %r<5>, %t;\n"
        "ld.param.u64 %in, [pin]; ld.param.u64 %out, [pout]; mov.u32 %t, %tid.x;\n"
        "mad.wide.u32 %out, %t, 16, %out;\n.pragma \"used_bytes_mask " +
        masked.mask + "\";\n" + masked.load +
        "\nst.global.u32 [%out], %r1; st.global.u32 [%out+4], %r2;st.global.u32 [%out+8], %r3; st.global.u32 "
        "[%out+12], %r4; ret; }");
    std::vector<std::uint8_t> in(masked.bytes);
    for (std::size_t i = 0; i < in.size(); ++i) in[i] = static_cast<std::uint8_t>(0x81 + i);
    out.assign(std::size_t{4} * threads, 0);
    return device.launch("k", {1}, {threads}, device.array(in) + masked.offset, device.array(out));
}

}  // namespace

TEST_CASE("a load needs memory only where used_bytes_mask says") {
    std::vector<std::uint32_t> out;
    const std::string four = "ld.global.v4.u32 {%r1, %r2, %r3, %r4}, [%in];";
    for (const std::string& load : {four, std::string("ld.v4.u32 {%r1, %r2, %r3, %r4}, [%in];")}) {
        for (const char* mask : {"4095", "0xfff", "0xFFF"}) {
            CAPTURE(mask);
            REQUIRE_FALSE(run_masked({load, mask}, out));
            for (std::size_t t = 0; t < 32; ++t) {
                CHECK(out[4 * t] == 0x84838281);
                CHECK(out[4 * t + 1] == 0x88878685);
                CHECK(out[4 * t + 2] == 0x8c8b8a89);
            }
        }
    }
    const auto fault = run_masked({four, "0xfff", 11}, out);
    REQUIRE(fault);
    CHECK(fault->kind == Fault::Kind::illegal_address);
    CHECK(fault->access_bytes == 12);
    CHECK_FALSE(fault->write);
    REQUIRE(run_masked({four, "0xffff"}, out));
    REQUIRE(run_masked({four, "0x8000"}, out));
    REQUIRE_FALSE(run_masked({four, "0", 1}, out));
}

TEST_CASE("bytes that count may lie apart, inside one value, or in a signed one") {
    std::vector<std::uint32_t> out;
    REQUIRE_FALSE(run_masked({"ld.global.v4.u32 {%r1, %r2, %r3, %r4}, [%in];", "0x0f3", 12}, out));
    CHECK((out[0] & 0xffff) == 0x8281);
    CHECK(out[1] == 0x88878685);
    REQUIRE_FALSE(run_masked({"ld.global.v2.s8 {%r1, %r2}, [%in];", "1", 1}, out));
    CHECK(out[0] == 0xffffff81);
    REQUIRE_FALSE(run_masked({"ld.global.u32 %r1, [%in];", "3", 2}, out));
    CHECK((out[0] & 0xffff) == 0x8281);
    REQUIRE(run_masked({"ld.global.u32 %r1, [%in];", "4", 2}, out));
}

TEST_CASE("a masked load reads the other bytes too, where they are memory") {
    std::vector<std::uint32_t> out;
    const std::string four = "ld.global.v4.u32 {%r1, %r2, %r3, %r4}, [%in];";
    REQUIRE_FALSE(run_masked({four, "0x1", 14}, out));
    for (std::size_t t = 0; t < 32; ++t) {
        CHECK(out[4 * t] == 0x84838281);
        CHECK(out[4 * t + 2] == 0x8c8b8a89);
        CHECK((out[4 * t + 3] & 0xffff) == 0x8e8d);
    }
    Device device(
        ".version 8.3\n.target sm_80\n.address_size 64\n.entry k(.param .u64 pout, .param .align 16 .b8 p[16]) {"
        ".reg .b64 %out; .reg .b32 %r<5>; ld.param.u64 %out, [pout];\n"
        ".pragma \"used_bytes_mask 0xf\"; ld.param.v4.u32 {%r1, %r2, %r3, %r4}, [p]; st.global.u32 [%out], %r4; ret; }");
    struct {
        std::uint32_t value[4] = {11, 22, 33, 44};
    } given;
    out.assign(1, 0);
    REQUIRE_FALSE(device.launch("k", {1}, {1}, device.array(out), given));
    CHECK(out[0] == 44);
}

TEST_CASE("a masked load is aligned as a whole") {
    std::vector<std::uint32_t> out;
    const auto fault = run_masked({"ld.global.v4.u32 {%r1, %r2, %r3, %r4}, [%in];", "0xff", 32, 8}, out);
    REQUIRE(fault);
    CHECK(fault->kind == Fault::Kind::misaligned_address);
}

TEST_CASE("the mask belongs to the next instruction alone") {
    std::vector<std::uint32_t> out;
    const std::string load = "ld.global.v4.u32 {%r1, %r2, %r3, %r4}, [%in];";
    REQUIRE(run_masked({"mov.u32 %r1, 0; " + load, "0xfff"}, out));
    REQUIRE(run_masked({load + load, "0xfff"}, out));
}

TEST_CASE("guarded and divergent masked loads read for their lanes alone") {
    std::vector<std::uint32_t> out;
    const std::string load =
        ".reg .pred %p; setp.lt.u32 %p, %t, 5; mov.u32 %r1, 7; .pragma \"used_bytes_mask 0xfff\";\n"
        "@%p ld.global.v4.u32 {%r1, %r2, %r3, %r4}, [%in];";
    REQUIRE_FALSE(run_masked({load, "1"}, out));
    for (std::size_t t = 0; t < 32; ++t) CHECK(out[4 * t] == (t < 5 ? 0x84838281 : 7));
}

TEST_CASE("parameters, shared and local memory honour the mask") {
    const std::string head = ".version 8.3\n.target sm_80\n.address_size 64\n";
    Device device(head + R"(
        .shared .align 16 .b8 s[12];
        .entry k(.param .u64 pout, .param .align 16 .b8 p[12]) {
            .reg .b64 %out; .reg .b32 %r<9>, %q<5>; .local .align 16 .b8 l[12];
            ld.param.u64 %out, [pout];
            .pragma "used_bytes_mask 0xfff"; ld.param.v4.u32 {%r1, %r2, %r3, %r4}, [p];
            st.shared.u32 [s+8], %r3; st.local.u32 [l+8], %r2;
            .pragma "used_bytes_mask 0xf00"; ld.shared.v4.u32 {%q1, %q2, %q3, %q4}, [s];
            st.global.u32 [%out], %q3;
            .pragma "used_bytes_mask 0xf00"; ld.local.v4.u32 {%q1, %q2, %q3, %q4}, [l];
            st.global.u32 [%out+4], %q3; ret; })");
    struct {
        std::uint32_t value[3] = {11, 22, 33};
    } given;
    std::vector<std::uint32_t> out(2);
    REQUIRE_FALSE(device.launch("k", {1}, {1}, device.array(out), given));
    CHECK(out[0] == 33);
    CHECK(out[1] == 22);
}

TEST_CASE("an indexed branch with five thousand targets goes to each of them") {
    constexpr std::uint32_t count = 5000;
    std::string list, cases;
    for (std::uint32_t i = 0; i < count; ++i) {
        const std::string label = "L" + std::to_string(i);
        list += (i == 0 ? "" : ", ") + label;
        cases += label + ": add.u32 %r, %n, " + std::to_string(3 * i) + "; bra DONE;\n";
    }
    Device device(
        ".version 8.0\n.target sm_80\n.address_size 64\n.entry k(.param .u64 pout) {\n"
        ".reg .b64 %out; .reg .b32 %t, %n, %r;\nld.param.u64 %out, [pout]; mov.u32 %t, %ctaid.x;\n"
        "mov.u32 %n, %tid.x; mad.lo.u32 %n, %t, 32, %n; mad.wide.u32 %out, %n, 4, %out;\n"
        "LIST: .branchtargets " +
        list + ";\nbrx.idx %n, LIST;\n" + cases + "DONE: st.global.u32 [%out], %r; ret; }");
    std::vector<std::uint32_t> out(5024);
    REQUIRE_FALSE(device.launch("k", {count / 32}, {32}, device.array(out)));
    for (std::uint32_t i = 0; i < count / 32 * 32; ++i) REQUIRE(out[i] == 4 * i);
}

namespace {

// The output of one thread's printf with a format and consecutive 32-bit arguments.
std::string printed(const std::string& format, const std::string& arguments) {
    std::string bytes;
    for (const char c : format) bytes += std::to_string(static_cast<int>(c)) + ", ";
    Device device(
        testing::sm_80_prologue +
        ".extern .func (.param .b32 r) vprintf(.param .b64 f, .param .b64 v);\n"
        ".global .b8 format[] = {" +
        bytes + "0};\n.global .align 8 .b32 values[] = {" + arguments +
        "};\n.entry k() { .reg .b64 %d<3>; mov.u64 %d1, format; mov.u64 %d2, values;\n"
        "{ .param .b64 f; .param .b64 v; .param .b32 r; st.param.b64 [f], %d1; st.param.b64 [v], %d2;\n"
        "call.uni (r), vprintf, (f, v); } ret; }");
    REQUIRE_FALSE(device.launch("k", {1}, {1}));
    return device.printed;
}

}  // namespace

TEST_CASE("widths and precisions of printf come from the format or from arguments") {
    CHECK(printed("%*d|%*d|%-4d|%04d|%+d", "5, 42, -5, 42, 42, 42, 42") == "   42|42   |42  |0042|+42");
    CHECK(printed("%.*d|%.*d|%6.3d", "3, 7, -1, 7, 7") == "007|7|   007");
    CHECK(printed("%.0d|%.d|%.3x", "0, 0, 10") == "||00a");
}

TEST_CASE("what one printf prints is bounded as CUDA's buffer is") {
    constexpr std::size_t most = std::size_t{1} << 20;
    for (const char* format :
         {"%2147483647d", "%-99999999999999999999d", "%.2147483647d", "%1048576d%1048576d%d"}) {
        CAPTURE(format);
        CHECK(printed(format, "7, 7, 7").size() == most);
    }
    for (const char* width : {"2147483647, 7", "-2147483648, 7"}) {
        CAPTURE(width);
        CHECK(printed("%*d", width).size() == most);
    }
    CHECK(printed("%.*d", "-2147483648, 7") == "7");
}

TEST_CASE("the baseline instruction set has the handlers of the fast one") {
    for (const char* name : {"arithmetic.ptx", "floats.ptx", "programs.ptx"}) {
        Device device(read_ptx(name));
        for (const auto& kernel : device.module().kernels) {
            REQUIRE(kernel.refusal.empty());
            for (const auto& key : kernel.code->keys) {
                CHECK(bool(emulated::machine::registry().find(key)));
                CHECK(bool(emulated::machine::baseline_registry().find(key)));
            }
        }
    }
}
