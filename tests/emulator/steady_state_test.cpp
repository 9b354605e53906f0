// A launch like the one before allocates nothing: counted at operator new, except under sanitizers, which replace it.
#include <atomic>
#include <cstdlib>
#include <new>
#include <vector>

#include <doctest/doctest.h>

#include "ptx_device.hpp"

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)

namespace {

std::atomic<std::uint64_t> allocations{0};

void* counted(std::size_t bytes) {
    ++allocations;
    if (void* memory = std::malloc(bytes)) return memory;
    throw std::bad_alloc();
}

}  // namespace

void* operator new(std::size_t bytes) { return counted(bytes); }
void* operator new[](std::size_t bytes) { return counted(bytes); }
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete[](void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::size_t) noexcept { std::free(memory); }

TEST_CASE("a launch like the one before allocates nothing, with one worker or two") {
    for (const unsigned workers : {1u, 2u}) {
        CAPTURE(workers);
        testing::Device device(testing::read_ptx("programs.ptx"), workers);
        std::vector<float> x(10000, 1.0f), sums(16);
        const std::uint64_t address = device.array(x), out = device.array(sums);
        const auto launch = [&] { return device.launch("reduce", {16}, {256}, address, out, 10000); };
        // The test itself allocates once a launch, for the parameters. A worker allocates when it has its first block,
        // which on a busy machine may take many launches.
        std::uint64_t allocated = 0;
        for (int round = 0; round < 100 && allocated != 100; ++round) {
            const std::uint64_t before = allocations;
            for (int i = 0; i < 100; ++i) REQUIRE_FALSE(launch());
            allocated = allocations - before;
        }
        CHECK(allocated == 100);
    }
}

#endif
