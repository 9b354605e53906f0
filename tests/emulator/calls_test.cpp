// Recursion, mutual recursion, function pointers, virtual functions, compiled by NVRTC and compared with C++.
#include <cstring>
#include <vector>

#include <doctest/doctest.h>

#include "program/code.hpp"
#include "ptx_device.hpp"

using emulated::machine::Fault;
using testing::Device;
using testing::read_ptx;

namespace {

struct Triple {
    int a, b;
    double c;
};
Triple shifted(Triple p, int n) {
    if (n <= 0) return p;
    Triple q = shifted({p.b, p.a + 1, p.c * 2}, n - 1);
    q.a += n;
    return q;
}
int fibonacci(int n) { return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2); }
void fill(int* p, int n) {
    int local[4] = {n, 2 * n, 3 * n, 4 * n};
    if (n > 0) fill(local, n - 1);
    p[n & 3] += local[n & 3] + local[(n + 3) & 3] * 3;
}

Device calls(unsigned workers = 1) { return Device(read_ptx("calls.ptx"), workers); }

}  // namespace

TEST_CASE("functions call themselves and one another, each lane to its own depth") {
    for (const unsigned workers : {1u, 2u}) {
        Device device = calls(workers);
        const int threads = 3 * 70, n = 15;
        std::vector<int> out(6 * threads, -1);
        REQUIRE_FALSE(device.launch("recursion", {3}, {70}, device.array(out), n));
        for (int i = 0; i < threads; ++i) {
            CAPTURE(i);
            const Triple p = shifted({i, 2, 1.0}, i % 5);
            int buffer[4] = {1, 2, 3, 4};
            fill(buffer, i % 7);
            const int* got = &out[6 * static_cast<std::size_t>(i)];
            CHECK(got[0] == fibonacci(i % n));
            CHECK(got[1] == p.a + 100 * p.b + 10000 * static_cast<int>(p.c));
            CHECK(got[2] == buffer[0] + 3 * buffer[1]);
            CHECK(got[3] == buffer[2] + 5 * buffer[3]);
            CHECK(got[4] == (i % 20 % 2 == 0));
            CHECK(got[5] == (i % 300) * (i % 300 + 1) / 2);
        }
    }
}

TEST_CASE("lanes call the functions that their own pointers name") {
    Device device = calls();
    for (const int which : {0, 1}) {
        std::vector<int> out(96, -1);
        REQUIRE_FALSE(device.launch("pointers", {2}, {48}, device.array(out), 7, which));
        for (int i = 0; i < 96; ++i) {
            CHECK(out[static_cast<std::size_t>(i)] ==
                  (i % 2 ? i * 7 : i + 7) + 1000 * (which ? i + 3 : i * 3));
        }
    }
}

TEST_CASE("virtual functions are found through their tables") {
    Device device = calls();
    std::vector<int> out(40, -1);
    REQUIRE_FALSE(device.launch("virtuals", {1}, {40}, device.array(out), 5));
    for (int i = 0; i < 40; ++i) {
        const int s = i + 5;
        CHECK(out[static_cast<std::size_t>(i)] == (i % 3 ? s * s : s * s / 2));
    }
}

TEST_CASE("a recursion without an end overflows its stack, and the report says where") {
    Device device = calls();
    std::vector<int> out(64), stop{20};
    const auto fault = device.launch("endless", {1}, {64}, device.array(out), device.array(stop));
    REQUIRE(fault);
    CHECK(fault->kind == Fault::Kind::stack_error);
    CHECK(fault->file == "calls.cu");
    CHECK(fault->line == 27);
    CHECK(fault->thread.x == 0);
    CHECK(fault->other_threads == 18);  // threads from 19 on start at 20 or more, and end there
    CHECK(fault->message.find("stack overflow") == 0);
}

TEST_CASE("a pointer to no function is an invalid program counter") {
    Device device = calls();
    std::vector<int> out(32);
    for (const std::uint64_t address : {std::uint64_t{0}, emulated::program::code_window + 8}) {
        const auto fault = device.launch("astray", {1}, {32}, device.array(out), address);
        REQUIRE(fault);
        CHECK(fault->kind == Fault::Kind::invalid_pc);
        CHECK(fault->other_threads == 31);
        CHECK(fault->message.find("which is not a function") != std::string::npos);
    }
}
