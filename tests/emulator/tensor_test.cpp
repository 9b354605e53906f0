// Invalid matrix instructions, and lanes that arrive one after the other. vectors_tensor.cpp has the valid ones.
#include <cstdint>
#include <numeric>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "ptx_device.hpp"

using emulated::machine::Fault;
using testing::Device;

namespace {

// A kernel of two arrays, whose addresses are in %in and %out; %lane is the lane.
std::string tensor_kernel(const std::string& body) {
    return ".version 9.0\n.target sm_90\n.address_size 64\n"
           ".visible .entry k(.param .u64 pin, .param .u64 pout) {\n.reg .b64 %in, %out, %at;\n.reg .pred %p;\n"
           ".reg .b32 %lane, %i, %s, %a<8>, %c<8>;\nld.param.u64 %in, [pin];\nld.param.u64 %out, [pout];\n"
           "mov.u32 %lane, %tid.x;\n" +
           body + "ret;\n}\n";
}

const std::string load_half_tile =
    "wmma.load.a.sync.aligned.row.m16n16k16.global.f16 {%a0, %a1, %a2, %a3, %a4, %a5, %a6, %a7}, [%in], 16;\n";
const std::string sums = "{%c0, %c1, %c2, %c3, %c4, %c5, %c6, %c7}";

struct Arrays {
    std::vector<std::uint16_t> in;
    std::vector<std::uint32_t> out;
};

std::optional<Fault> run(Device& device, Arrays& arrays, unsigned threads = 32) {
    return device.launch("k", {1}, {threads}, device.array(arrays.in), device.array(arrays.out));
}

}  // namespace

TEST_CASE("a matrix that ends behind its allocation is a fault of the lanes that have its last row") {
    Device device(tensor_kernel(load_half_tile));
    Arrays arrays{std::vector<std::uint16_t>(15 * 16), std::vector<std::uint32_t>(1)};
    const auto fault = run(device, arrays);
    REQUIRE(fault);
    CHECK(fault->kind == Fault::Kind::illegal_address);
    CHECK_FALSE(fault->write);
    CHECK(fault->thread.x == 28);
    CHECK(fault->other_threads == 3);
    CHECK(fault->access_bytes == 4);
}

TEST_CASE("a stored matrix may have gaps and must not leave its allocation") {
    const std::string store =
        "wmma.store.d.sync.aligned.row.m16n16k16.global.f32 [%out], " + sums + ", 24;\n";
    std::string clear;
    for (int i = 0; i < 8; ++i) clear += "mov.b32 %c" + std::to_string(i) + ", 7;\n";
    Device device(tensor_kernel(clear + store));
    // The last line is not followed by a gap.
    Arrays exact{std::vector<std::uint16_t>(1), std::vector<std::uint32_t>(15 * 24 + 16, 1)};
    REQUIRE_FALSE(run(device, exact));
    for (std::size_t i = 0; i < exact.out.size(); ++i) CHECK(exact.out[i] == (i % 24 < 16 ? 7 : 1));

    Arrays one_less{std::vector<std::uint16_t>(1), std::vector<std::uint32_t>(15 * 24 + 15, 1)};
    const auto fault = run(device, one_less);
    REQUIRE(fault);
    CHECK(fault->kind == Fault::Kind::illegal_address);
    CHECK(fault->write);
    CHECK(fault->thread.x == 31);
    CHECK(fault->other_threads == 0);
    CHECK(one_less.out == std::vector<std::uint32_t>(one_less.out.size(), 1));
}

TEST_CASE("addresses of matrices have the alignment of what a lane moves at once") {
    Device wmma(tensor_kernel("add.u64 %in, %in, 2;\n" + load_half_tile));
    Arrays arrays{std::vector<std::uint16_t>(17 * 16), std::vector<std::uint32_t>(1)};
    auto fault = run(wmma, arrays);
    REQUIRE(fault);
    CHECK(fault->kind == Fault::Kind::misaligned_address);

    // Lane 5 is the one whose row begins at the wrong address; lanes from 8 on have no row.
    const std::string rows =
        ".shared .align 16 .b8 memory[256];\nmov.u32 %s, memory;\nmul.lo.u32 %i, %lane, 16;\nadd.u32 %s, %s, %i;\n";
    Device ldmatrix(tensor_kernel(rows + "setp.eq.u32 %p, %lane, 5;\n@%p add.u32 %s, %s, 8;\n"
                                         "ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%a0}, [%s];\n"));
    fault = run(ldmatrix, arrays);
    REQUIRE(fault);
    CHECK(fault->kind == Fault::Kind::misaligned_address);
    CHECK(fault->thread.x == 5);

    Device outside(tensor_kernel(rows + "setp.eq.u32 %p, %lane, 6;\n@%p add.u32 %s, %s, 0x100000;\n"
                                        "stmatrix.sync.aligned.m8n8.x1.shared.b16 [%s], {%a0};\n"));
    fault = run(outside, arrays);
    REQUIRE(fault);
    CHECK(fault->kind == Fault::Kind::illegal_address);
    CHECK(fault->thread.x == 6);
    CHECK(fault->space == std::string("shared"));
}

TEST_CASE("a matrix instruction needs the whole warp") {
    const std::string transpose = "movmatrix.sync.aligned.m8n8.trans.b16 %a0, %lane;\n";
    Arrays arrays{std::vector<std::uint16_t>(1), std::vector<std::uint32_t>(1)};
    Device short_block(tensor_kernel(transpose));
    auto fault = run(short_block, arrays, 48);
    REQUIRE(fault);
    CHECK(fault->kind == Fault::Kind::illegal_instruction);
    CHECK(fault->message.find("32 threads") != std::string::npos);
    CHECK(fault->thread.x == 32);

    Device some_exit(tensor_kernel("setp.lt.u32 %p, %lane, 3;\n@%p exit;\n" + transpose));
    fault = run(some_exit, arrays);
    REQUIRE(fault);
    CHECK(fault->kind == Fault::Kind::illegal_instruction);
    CHECK(fault->thread.x == 3);
}

TEST_CASE("lanes that arrive one after the other do it together") {
    // Lane l iterates l times before.
    Device device(
        tensor_kernel("mov.u32 %i, 0;\nLOOP:\nsetp.ge.u32 %p, %i, %lane;\n@%p bra DONE;\nadd.u32 %i, %i, 1;\n"
                      "bra LOOP;\nDONE:\nshl.b32 %s, %lane, 16;\nor.b32 %s, %s, %i;\n"
                      "movmatrix.sync.aligned.m8n8.trans.b16 %a0, %s;\nmul.wide.u32 %at, %lane, 4;\n"
                      "add.u64 %at, %at, %out;\nst.global.b32 [%at], %a0;\n"));
    Arrays arrays{std::vector<std::uint16_t>(1), std::vector<std::uint32_t>(32)};
    REQUIRE_FALSE(run(device, arrays));
    for (std::uint32_t lane = 0; lane < 32; ++lane) {
        // Both halves of a lane's register are its number: columns 2 t and 2 t + 1 of row g are 4 g + t.
        const std::uint32_t row = lane / 4, first = 4 * (lane % 4 * 2) + row / 2, second = first + 4;
        CHECK(arrays.out[lane] == (first | second << 16));
    }
}

TEST_CASE("a guard holds for the whole warp") {
    const std::string guarded =
        "mov.u32 %a0, 1;\nsetp.eq.u32 %p, 1, %s;\n@%p movmatrix.sync.aligned.m8n8.trans.b16 %a0, %lane;\n"
        "mul.wide.u32 %at, %lane, 4;\nadd.u64 %at, %at, %out;\nst.global.b32 [%at], %a0;\n";
    for (const unsigned yes : {0u, 1u}) {
        Device device(tensor_kernel("mov.u32 %s, " + std::to_string(yes) + ";\n" + guarded));
        Arrays arrays{std::vector<std::uint16_t>(1), std::vector<std::uint32_t>(32)};
        REQUIRE_FALSE(run(device, arrays));
        // Lane 4 g + t has its number in row g, column 2 t, and 0 in the next column.
        CHECK(arrays.out[0] == (yes ? 0u | 4u << 16 : 1u));
        CHECK(arrays.out[8] == (yes ? 1u | 5u << 16 : 1u));
    }
}

TEST_CASE("the bytes of matrices are logged for the search for races, but not those between their lines") {
    emulated::races::AccessLog log;
    Device device(tensor_kernel("wmma.load.c.sync.aligned.col.m16n16k16.f32 " + sums + ", [%out], 20;\n" +
                                "wmma.store.d.sync.aligned.col.m16n16k16.f32 [%out], " + sums + ", 20;\n"));
    device.log = &log;
    Arrays arrays{std::vector<std::uint16_t>(1), std::vector<std::uint32_t>(16 * 20)};
    REQUIRE_FALSE(run(device, arrays));
    CHECK(log.written_bytes() == 16 * 16 * 4);

    emulated::races::AccessLog apart;  // accesses are recorded lane by lane, because the addresses differ
    Device two(
        tensor_kernel("setp.lt.u32 %p, %lane, 16;\n@%p add.u64 %out, %out, 4;\n"
                      "wmma.store.d.sync.aligned.row.m8n32k16.f16 [%out], {%c0, %c1, %c2, %c3}, 40;\n"));
    two.log = &apart;
    REQUIRE_FALSE(run(two, arrays));
    CHECK(apart.written_bytes() == 8 * 32 * 2);
}

TEST_CASE("products that PTX does not have are refused by name") {
    const auto refusal_of = [](const std::string& instruction) {
        return Device(tensor_kernel(instruction)).module().find_kernel("k")->refusal;
    };
    const std::string four = "{%c0, %c1, %c2, %c3}", two = "{%a0, %a1}";
    for (const std::string opcode : {"mma.sync.aligned.m16n8k16.row.col.f32.bf16.f16.f32",
                                     "mma.sync.aligned.m16n8k16.col.row.f32.f16.f16.f32",
                                     "mma.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32",
                                     "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f16",
                                     "mma.sync.aligned.m16n8k16.row.col.satfinite.f32.f16.f16.f32",
                                     "mma.sync.aligned.m16n8k256.row.col.s32.b1.b1.s32.xor",
                                     "mma.sync.aligned.m16n8k8.row.col.f16.bf16.bf16.f16",
                                     "mma.sp.sync.aligned.m16n8k256.row.col.s32.b1.b1.s32.xor.popc",
                                     "wmma.mma.sync.aligned.row.col.m16n16k8.f32.bf16.bf16.f32"}) {
        CAPTURE(opcode);
        const std::string refusal =
            refusal_of(opcode + " " + four + ", " + four + ", " + two + ", " + four + ";\n");
        CHECK(refusal.find(opcode) != std::string::npos);
        CHECK(refusal.find("is not supported") != std::string::npos);
    }
    CHECK(refusal_of("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 " + four + ", " + two + ", " + two +
                     ", " + four + ";\n")
              .find("A has 4 registers, not 2") != std::string::npos);
    CHECK(
        refusal_of("wmma.load.a.sync.aligned.col.m8n8k32.s4 {%a0}, [%in], 32;\n").find("is not supported") !=
        std::string::npos);
}
