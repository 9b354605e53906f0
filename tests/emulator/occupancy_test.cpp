// Resident blocks per multiprocessor, compared with a model of an A100's multiprocessor (compute capability 8.0), which
// is filled block by block until a resource runs out. Its numbers are from the CUDA C++ Programming Guide and Nsight
// Compute's calculator.
#include <algorithm>
#include <array>
#include <random>
#include <string>

#include <doctest/doctest.h>

#include "client.hpp"

using client::Device;

namespace {

/// A kernel that has this many 32-bit values live at once, and a pointer.
std::string program(const std::string& name, unsigned alive, unsigned shared_bytes = 0,
                    const std::string& bounds = "") {
    std::string text = ".version 7.0\n.target sm_80\n.address_size 64\n.visible .entry " + name +
                       "(.param .u64 p)\n" + bounds + "\n{\n.reg .b32 %r<" + std::to_string(alive) +
                       ">;\n.reg .b64 %d<3>;\n";
    if (shared_bytes != 0) text += ".shared .align 4 .b8 room[" + std::to_string(shared_bytes) + "];\n";
    text += "ld.param.u64 %d1, [p];\nld.global.u64 %d2, [%d1];\n";
    if (shared_bytes != 0) text += "st.shared.u32 [room], 1;\n";
    for (const char* access : {"load", "store"}) {
        for (unsigned i = 0; i < alive; ++i) {
            const std::string r = "%r" + std::to_string(i);
            const std::string place = "[%d2+" + std::to_string(4 * i) + "]";
            text += access[0] == 'l' ? "ld.global.u32 " + r + ", " + place + ";\n"
                                     : "st.global.u32 " + place + ", " + r + ";\n";
        }
    }
    return text + "ret;\n}\n";
}

/// A loaded kernel and its attributes.
class Loaded {
  public:
    Loaded(Device& device, const std::string& text, const char* name) : api_(device.api) {
        REQUIRE(api_.cuLibraryLoadData(&library_, text.c_str(), nullptr, nullptr, 0, nullptr, nullptr, 0) ==
                CUDA_SUCCESS);
        REQUIRE(api_.cuLibraryGetKernel(&kernel_, library_, name) == CUDA_SUCCESS);
        REQUIRE(api_.cuKernelGetFunction(&function, kernel_) == CUDA_SUCCESS);
    }
    ~Loaded() { api_.cuLibraryUnload(library_); }
    Loaded(const Loaded&) = delete;
    Loaded& operator=(const Loaded&) = delete;

    int attribute(CUfunction_attribute which) const {
        int value = -1;
        REQUIRE(api_.cuKernelGetAttribute(&value, which, kernel_, 0) == CUDA_SUCCESS);
        return value;
    }
    int registers() const { return attribute(CU_FUNC_ATTRIBUTE_NUM_REGS); }
    void allow_shared(int bytes) const {
        REQUIRE(api_.cuKernelSetAttribute(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, bytes, kernel_,
                                          0) == CUDA_SUCCESS);
    }
    int resident(int block, std::size_t shared) const {
        int blocks = -1;
        REQUIRE(api_.cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, function, block, shared) ==
                CUDA_SUCCESS);
        return blocks;
    }

    CUfunction function = nullptr;

  private:
    client::Library& api_;
    CUlibrary library_ = nullptr;
    CUkernel kernel_ = nullptr;
};

/// A multiprocessor that accepts blocks until one does not fit.
class Multiprocessor {
  public:
    static int blocks_that_fit(int registers, int shared_bytes, int block) {
        Multiprocessor empty;
        while (empty.take(registers, shared_bytes, block)) ++empty.blocks_;
        return empty.blocks_;
    }

  private:
    bool take(int registers, int shared_bytes, int block) {
        shared_ -= (shared_bytes + 1024 + 127) / 128 * 128;  // one kilobyte is reserved for the system
        if (blocks_ == 32 || shared_ < 0) return false;
        for (int thread = 0; thread < block; thread += 32) {
            threads_ -= 32;
            auto roomiest = std::max_element(registers_.begin(), registers_.end());
            *roomiest -= (32 * registers + 255) / 256 * 256;
            if (threads_ < 0 || *roomiest < 0) return false;
        }
        return true;
    }

    int blocks_ = 0;
    int threads_ = 2048;
    int shared_ = 164 * 1024;
    std::array<int, 4> registers_ = {16384, 16384, 16384, 16384};  // one register file per scheduler
};

/// The largest block with the maximum number of resident threads.
int best_block(int registers, int shared_bytes, int largest) {
    int best = 0;
    int most = 0;
    for (int block = 1; block <= largest; ++block) {
        if (block % 32 != 0 && block != largest) continue;
        const int threads = block * Multiprocessor::blocks_that_fit(registers, shared_bytes, block);
        if (threads >= most && threads > 0) {
            most = threads;
            best = block;
        }
    }
    return best;
}

}  // namespace

TEST_CASE("a kernel has as many registers as hold a value at once") {
    Device device;
    for (const unsigned alive : {8u, 24u, 40u, 128u, 200u}) {
        CAPTURE(alive);
        const Loaded kernel(device, program("k", alive), "k");
        CHECK(kernel.registers() >= static_cast<int>(alive));
        CHECK(kernel.registers() <= static_cast<int>(alive) + 6);  // two pointers, and temporaries
    }
    CHECK(Loaded(device, program("k", 400), "k").registers() == 255);  // the rest is spilled
    CHECK(Loaded(device, ".version 7.0\n.target sm_80\n.address_size 64\n.visible .entry k() { ret; }", "k")
              .registers() == 8);
}

TEST_CASE("values that do not live at the same time share a register") {
    Device device;
    std::string text =
        ".version 7.0\n.target sm_80\n.address_size 64\n.visible .entry k(.param .u64 p) {\n"
        ".reg .b32 %r<100>;\n"
        ".reg .b64 %d<2>;\nld.param.u64 %d1, [p];\n";
    for (int i = 0; i < 100; ++i) {
        const std::string r = "%r" + std::to_string(i);
        text += "ld.global.u32 " + r + ", [%d1];\nst.global.u32 [%d1+4], " + r + ";\n";
    }
    CHECK(Loaded(device, text + "ret;\n}\n", "k").registers() <= 12);
}

TEST_CASE("bounds on threads, blocks and registers are kept") {
    Device device;
    struct Row {
        const char* bounds;
        int registers, threads;
    };
    // 65536 registers: 64 for each of 1024 threads, or 32 if four blocks of 512 must fit. With 256 threads each gets
    // what it needs: 196 and a pointer. With 300, one scheduler has three warps, whose 16384 registers are 170 a
    // thread, allocated in units of eight.
    constexpr Row rows[] = {
        {".maxntid 1024, 1, 1", 64, 1024}, {".maxntid 512, 1, 1\n.minnctapersm 4", 32, 512},
        {".maxntid 256, 1, 1", 198, 256},  {".maxntid 300, 1, 1", 168, 300},
        {".reqntid 32, 32, 1", 64, 1024},  {".maxnreg 40", 40, 1024}};
    for (const Row& row : rows) {
        CAPTURE(std::string(row.bounds));
        const Loaded kernel(device, program("k", 196, 0, row.bounds), "k");
        CHECK(kernel.registers() == row.registers);
        CHECK(kernel.attribute(CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK) == row.threads);
        CHECK(kernel.resident(row.threads, 0) >= 1);
        CHECK(kernel.resident(row.threads + 1, 0) == 0);
    }
}

TEST_CASE("as many blocks are resident as fit") {
    Device device;
    std::mt19937 random(20261121);
    const auto below = [&](unsigned limit) { return static_cast<int>(random() % limit); };
    for (int round = 0; round < 60; ++round) {
        const int fixed = round % 3 == 0 ? 4 * (1 + below(12000)) : 0;
        const Loaded kernel(device, program("k", 1 + random() % 250, static_cast<unsigned>(fixed)), "k");
        kernel.allow_shared(163 * 1024 - fixed);
        for (int i = 0; i < 40; ++i) {
            const int block = 1 + below(1024);
            const int shared = i % 2 == 0 ? 0 : below(static_cast<unsigned>(163 * 1024 - fixed) + 1);
            CAPTURE(kernel.registers());
            CAPTURE(fixed);
            CAPTURE(block);
            CAPTURE(shared);
            CHECK(kernel.resident(block, static_cast<std::size_t>(shared)) ==
                  Multiprocessor::blocks_that_fit(kernel.registers(), fixed + shared, block));
        }
    }
}

TEST_CASE("more shared memory than a kernel may have fits nowhere") {
    Device device;
    const Loaded kernel(device, program("k", 8, 1024), "k");
    CHECK(kernel.resident(32, 48 * 1024 - 1024) > 0);
    CHECK(kernel.resident(32, 48 * 1024 - 1023) == 0);  // above 48 KiB, which the kernel has not opted in to
    kernel.allow_shared(162 * 1024);
    CHECK(kernel.resident(32, 162 * 1024) == 1);
    CHECK(kernel.resident(32, 162 * 1024 + 1) == 0);
}

TEST_CASE("the suggested block is the largest that keeps most threads resident") {
    Device device;
    for (const unsigned alive : {1u, 33u, 60u, 77u, 100u, 128u, 165u, 200u, 250u}) {
        for (const unsigned shared : {0u, 10'000u, 40'960u}) {
            for (const int limit : {0, 500, 96}) {
                const Loaded kernel(device, program("k", alive, shared), "k");
                int grid = 0;
                int block = 0;
                REQUIRE(device.api.cuOccupancyMaxPotentialBlockSize(&grid, &block, kernel.function, nullptr,
                                                                    0, limit) == CUDA_SUCCESS);
                const int largest = limit == 0 ? 1024 : limit;
                CAPTURE(alive);
                CAPTURE(shared);
                CAPTURE(limit);
                CHECK(block == best_block(kernel.registers(), static_cast<int>(shared), largest));
                CHECK(grid % kernel.resident(block, 0) == 0);
            }
        }
    }
}

TEST_CASE("shared memory that grows with the block is counted at each size") {
    Device device;
    const Loaded kernel(device, program("k", 8), "k");
    int grid = 0;
    int block = 0;
    const CUoccupancyB2DSize a_kilobyte_a_warp = [](int size) -> std::size_t {
        return static_cast<std::size_t>(size) / 32 * 1024 + (size > 512 ? 40'000u : 0u);
    };
    REQUIRE(device.api.cuOccupancyMaxPotentialBlockSize(&grid, &block, kernel.function, a_kilobyte_a_warp, 0,
                                                        0) == CUDA_SUCCESS);
    int best = 0;
    int most = 0;
    for (int size = 32; size <= 1024; size += 32) {
        const auto shared = a_kilobyte_a_warp(size);
        if (shared > 48 * 1024) continue;
        const int threads =
            size * Multiprocessor::blocks_that_fit(kernel.registers(), static_cast<int>(shared), size);
        if (threads >= most) {
            most = threads;
            best = size;
        }
    }
    CHECK(block == best);
}
