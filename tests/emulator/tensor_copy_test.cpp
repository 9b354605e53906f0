// Wrong uses of tensor maps, each with its words, and what a copy leaves in shared memory before its wait.
#include <functional>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "machine/transfers.hpp"
#include "memory/tensor_map.hpp"
#include "ptx_device.hpp"
#include "races/access_log.hpp"

using emulated::machine::Fault;
using emulated::memory::TensorElement;
using emulated::memory::TensorMap;
using testing::Device;

namespace {

/// A kernel of one thread. %map is a tensor map in global memory, and `map` the same as a parameter.
std::string tensor_kernel(const std::string& body) {
    return ".version 9.0\n.target sm_90a\n.address_size 64\n"
           ".visible .entry k(.param .u64 pmap, .param .u64 pout, .param .align 64 .b8 map[128]) {\n"
           ".shared .align 128 .b8 s[4096];\n.shared .align 8 .b64 bar;\n.local .align 64 .b8 l[128];\n"
           ".reg .b64 %map, %out, %own, %at;\n.reg .b32 %x, %y;\n.reg .b16 %h;\n.reg .pred %p;\n"
           "ld.param.u64 %map, [pmap]; ld.param.u64 %out, [pout]; mov.b64 %own, map; cvta.param.u64 %own, %own;\n"
           "mbarrier.init.shared.b64 [bar], 1;\n" +
           body + "\nret; }";
}

std::string load_of(const std::string& tile, const std::string& to = "s", const std::string& rank = "2d") {
    return "cp.async.bulk.tensor." + rank + ".shared::cluster.global.tile.mbarrier::complete_tx::bytes [" +
           to + "], [" + tile + "], [bar];\n";
}

std::string store_of(const std::string& tile, const std::string& operation = "") {
    return "cp." + std::string(operation.empty() ? "" : "reduce.") +
           "async.bulk.tensor.2d.global.shared::cta" + operation + ".tile.bulk_group [" + tile +
           "], [s];\ncp.async.bulk.commit_group;\ncp.async.bulk.wait_group 0;\n";
}

const std::string wait_for_tile = "WAIT: mbarrier.try_wait.parity.shared.b64 %p, [bar], 0; @!%p bra WAIT;\n";

/// 16 x 16 words of one number each.
struct TensorRun {
    std::vector<std::uint32_t> words, out;
    std::uint64_t address = 0, map_address = 0;
    std::optional<Fault> fault;
    std::string message() const { return fault ? fault->message : "no fault"; }
};

TensorRun run_tensor(const std::string& body, const std::function<void(TensorMap&)>& change = {},
                     const std::function<void(std::vector<std::byte>&)>& spoil = {},
                     emulated::races::AccessLog* log = nullptr) {
    TensorRun made;
    made.words.resize(256);
    made.out.resize(64);
    for (std::uint32_t k = 0; k < 256; ++k) made.words[k] = 1000 + k;
    Device device(tensor_kernel(body));
    TensorMap map;
    device.log = log;
    map.address = made.address = device.array(made.words);
    map.type = static_cast<std::uint32_t>(TensorElement::u32);
    map.rank = 2;
    map.extents = {16, 16};
    map.strides = {64};
    map.box = {8, 4};
    map.steps = {1, 1, 1, 1, 1};
    if (change) change(map);
    const auto encoded = map.encode();
    std::vector<std::byte> stored(encoded.begin(), encoded.end());
    if (spoil) spoil(stored);
    std::array<std::byte, TensorMap::bytes> parameter{};
    std::copy_n(stored.begin(), parameter.size(), parameter.begin());
    stored.resize(256);
    made.map_address = device.array(stored);
    made.fault = device.launch("k", {1}, {1}, made.map_address, device.array(made.out), parameter);
    return made;
}

bool says(const TensorRun& made, const std::string& words) {
    return made.message().find(words) != std::string::npos;
}

}  // namespace

TEST_CASE("a tile is poison until its mbarrier's phase ends, and then what the tensor has") {
    const auto made =
        run_tensor("mbarrier.arrive.expect_tx.shared.b64 %at, [bar], 128;\n" + load_of("%own, {8, 15}") +
                   "ld.shared.b32 %x, [s+4]; st.global.b32 [%out], %x;\n" + wait_for_tile +
                   "ld.shared.b32 %x, [s+4]; st.global.b32 [%out+4], %x;\n"
                   "ld.shared.b32 %x, [s+36]; st.global.b32 [%out+8], %x;\n");
    CHECK(made.message() == "no fault");
    CHECK(made.out[0] == 0xffff'ffff);
    CHECK(made.out[1] == 1000 + 15 * 16 + 9);
    CHECK(made.out[2] == 0);
}

TEST_CASE("a tile counts all its bytes, also those outside of the tensor") {
    const auto made = run_tensor("mbarrier.arrive.expect_tx.shared.b64 %at, [bar], 128;\n" +
                                 load_of("%map, {400, -90}") + wait_for_tile);
    CHECK(made.message() == "no fault");
}

TEST_CASE("a stored tile is taken from shared memory at the wait, and written inside of the tensor only") {
    const std::string fill = "st.shared.b32 [s], 7; st.shared.b32 [s+32], 8; fence.proxy.async;\n";
    const auto made =
        run_tensor(fill +
                   "cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%map, {8, 15}], [s];\n"
                   "ld.global.b32 %x, [%out];\nst.shared.b32 [s], 9;\n"
                   "cp.async.bulk.commit_group;\ncp.async.bulk.wait_group 0;\n");
    CHECK(made.message() == "no fault");
    CHECK(made.words[15 * 16 + 8] == 9);
    CHECK(made.words[15 * 16 + 7] == 1000 + 15 * 16 + 7);
}

TEST_CASE("the search for races sees the rows of a tile inside of the tensor, and the tensor map") {
    using emulated::races::Access;
    const auto logged = [](const TensorRun& made, emulated::races::AccessLog& log, std::uint64_t address,
                           Access access) {
        const auto found = log.pages().find(address / emulated::races::page_bytes);
        REQUIRE(made.message() == "no fault");
        REQUIRE(bool(found != log.pages().end()));
        const std::uint64_t at = address % emulated::races::page_bytes;
        return (found->second->of[static_cast<unsigned>(access)][at / 64] >> at % 64 & 1) != 0;
    };
    struct Case {
        std::string body;
        Access access;
    };
    for (const Case& each :
         {Case{load_of("%map, {12, 14}"), Access::read}, Case{store_of("%map, {12, 14}"), Access::write},
          Case{store_of("%map, {12, 14}", ".add"), Access::strong_write}}) {
        emulated::races::AccessLog log;
        const auto made = run_tensor(each.body, {}, {}, &log);
        for (std::uint64_t row = 0; row < 16; ++row) {
            for (std::uint64_t column = 0; column < 16; ++column) {
                CAPTURE(row);
                CAPTURE(column);
                CHECK(logged(made, log, made.address + 64 * row + 4 * column, each.access) ==
                      (row >= 14 && column >= 12));
            }
        }
        CHECK(logged(made, log, made.map_address + 127, Access::read));
        CHECK(!logged(made, log, made.map_address + 128, Access::read));
    }
}

TEST_CASE("a stored tile that a thread wrote needs a fence.proxy.async") {
    const std::string write = "st.shared.b32 [s+36], 7;\n", words = "reads byte 164 of shared memory";
    for (const char* reduction : {"", ".add"}) {
        CHECK(says(run_tensor(write + store_of("%map, {0, 0}", reduction)), words));
        CHECK(run_tensor(write + "fence.proxy.async;\n" + store_of("%map, {0, 0}", reduction)).message() ==
              "no fault");
    }
    // The copy does not read columns outside of the tensor.
    CHECK(run_tensor(write + store_of("%map, {16, 0}")).message() == "no fault");
    CHECK(run_tensor("st.shared.b32 [s+16], 7;\n" + store_of("%map, {12, 0}")).message() == "no fault");
    // An arrived tile needs no fence, and a store over it does.
    const std::string arrived =
        "mbarrier.arrive.expect_tx.shared.b64 %at, [bar], 128;\n" + load_of("%own, {0, 0}") + wait_for_tile;
    CHECK(run_tensor(arrived + store_of("%map, {8, 8}")).message() == "no fault");
    CHECK(says(run_tensor(arrived + write + store_of("%map, {8, 8}")), words));
}

TEST_CASE("a tensor map that a kernel changes needs a fence.proxy.tensormap") {
    const std::string words = "the tensor map in memory was changed without a fence.proxy.tensormap since",
                      use = "cp.async.bulk.prefetch.tensor.2d.L2.global [%map, {0, 0}];\n",
                      change =
                          "tensormap.replace.tile.fill_mode.global.b1024.b32 [%map], 0;\n"
                          "tensormap.replace.tile.box_dim.global.b1024.b32 [%map], 1, 2;\n",
                      fence = "fence.proxy.tensormap::generic.acquire.gpu [%map], 128;\n";
    CHECK(says(run_tensor(change + use), words));
    CHECK(says(run_tensor(fence + change + use), words));
    CHECK(run_tensor(change + use).fault->kind == Fault::Kind::bad_tensor);
    CHECK(run_tensor(change + fence + use).message() == "no fault");
    CHECK(run_tensor(use + use).message() == "no fault");
    // Ordinary stores change a map that was used before: they copy one with another box.
    std::string copied, stored;
    for (int at = 0; at < 128; at += 8) {
        const std::string place = std::to_string(at);
        copied += "ld.global.b64 %at, [%map+" + place + "]; st.shared.b64 [s+" + place + "], %at;\n";
        stored += "ld.shared.b64 %at, [s+" + place + "]; st.global.b64 [%map+" + place + "], %at;\n";
    }
    const std::string to_shared =
        copied + "tensormap.replace.tile.box_dim.shared::cta.b1024.b32 [s], 1, 2;\n";
    CHECK(says(run_tensor(to_shared + use + stored + use), words));
    CHECK(run_tensor(to_shared + use + stored + fence + use).message() == "no fault");
}

TEST_CASE("wrong uses of tensor maps are faults with words") {
    const auto other_rank = run_tensor(load_of("%map, {3}", "s", "1d"));
    CHECK(says(other_rank, "has 2 dimensions, and the instruction 1"));
    CHECK(other_rank.fault->kind == Fault::Kind::bad_tensor);
    CHECK(says(run_tensor(load_of("%map, {2, 0}")), "starts at element 2 of its rows"));
    CHECK(
        says(run_tensor("cp.async.bulk.prefetch.tensor.1d.L2.global [%map, {0}];"), "and the instruction 1"));
    CHECK(says(run_tensor(store_of("%map, {-8, 0}")), "cannot start before the tensor"));
    CHECK(says(run_tensor(store_of("%map, {0, -1}")), "starts at -1 in dimension 1"));
    CHECK(run_tensor(store_of("%map, {16, 0}")).message() == "no fault");
    CHECK(says(
        run_tensor(store_of("%map, {0, 0}", ".add"), [](TensorMap& map) { map.type = 8, map.box[0] = 4; }),
        "not one of the elements"));
    CHECK(says(run_tensor(load_of("%map, {0, 0}"), {}, [](auto& bytes) { bytes[20] ^= std::byte{1}; }),
               "not a tensor map"));
    CHECK(says(run_tensor(load_of("%map, {0, 0}"), [](TensorMap& map) { map.box[1] = 300; }),
               "was changed, and is invalid: the box has 300 elements in dimension 1"));
    CHECK(says(run_tensor(load_of("%map, {0, 0}"),
                          [](TensorMap& map) {
                              map.im2col = true, map.rank = 3, map.extents[2] = 1, map.channels = 8,
                              map.pixels = 1;
                          }),
               "has 3 dimensions"));
    const std::string columns =
        "cp.async.bulk.tensor.3d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes [s], [%map, {0, 15, 0}], "
        "[bar], {%h};\n";
    const auto image = [](TensorMap& map) {
        map.im2col = true, map.rank = 3, map.extents[2] = 1, map.strides[1] = 1024, map.channels = 8,
        map.pixels = 1;
    };
    CHECK(run_tensor("mov.b16 %h, 1;\n" + columns, image).message() == "no fault");
    CHECK(
        says(run_tensor("mov.b16 %h, 1;\n" + columns, [&](TensorMap& map) { image(map), map.upper[0] = -1; }),
             "the filter is at 15 in dimension 1, and its positions are 0 to 14"));
    CHECK(says(run_tensor("mov.b16 %h, 1;\n" + columns,
                          [&](TensorMap& map) { image(map), map.im2col = false, map.box[2] = 1; }),
               "the tensor map is for tiles (cuTensorMapEncodeTiled), and the instruction has .im2col"));
    CHECK(says(run_tensor(load_of("%map, {0, 0, 0}", "s", "3d"), image),
               "for .im2col (cuTensorMapEncodeIm2col)"));
    CHECK(says(run_tensor(load_of("%map, {0, 0, 0}", "s", "3d"),
                          [](TensorMap& map) {
                              map.rank = 3, map.extents[2] = 1, map.box[2] = 1, map.interleave = 1,
                              map.strides[1] = 64, map.box[0] = 6;
                          }),
               "copies whole slices of 4 channels"));
    CHECK(says(run_tensor("mov.b64 %at, s; cvta.shared.u64 %at, %at;\n" + load_of("%at, {0, 0}")),
               "is in shared memory"));
    CHECK(says(run_tensor("mov.b64 %at, l; cvta.local.u64 %at, %at;\n" + load_of("%at, {0, 0}")),
               "declared `const __grid_constant__ CUtensorMap`"));
    CHECK(
        says(run_tensor("mbarrier.inval.shared.b64 [bar];\n" + load_of("%map, {0, 0}")), "not initialised"));
}

TEST_CASE("addresses of tiles and tensor maps are checked") {
    const auto kind = [](const TensorRun& made) {
        REQUIRE(made.fault);
        return made.fault->kind;
    };
    CHECK(kind(run_tensor(load_of("%map, {0, 0}", "s+64"))) == Fault::Kind::misaligned_address);
    CHECK(kind(run_tensor("add.u64 %map, %map, 16;\n" + load_of("%map, {0, 0}"))) ==
          Fault::Kind::misaligned_address);
    CHECK(kind(run_tensor("add.u64 %map, %map, 256;\n" + load_of("%map, {0, 0}"))) ==
          Fault::Kind::illegal_address);
    const auto beyond = run_tensor(load_of("%map, {0, 0}", "s+3968"), [](TensorMap& map) {
        map.box = {16, 4};
    });
    CHECK(kind(beyond) == Fault::Kind::illegal_address);
    CHECK(beyond.fault->access_bytes == 256);
    // The swizzle pads rows to its width, also the last one.
    const auto padded =
        run_tensor(load_of("%map, {0, 0}", "s+3840"), [](TensorMap& map) { map.swizzle = 3; });
    CHECK(kind(padded) == Fault::Kind::illegal_address);
    CHECK(padded.fault->access_bytes == 512);
    // The map says more rows than the allocation has.
    const auto longer = run_tensor(load_of("%map, {0, 14}"), [](TensorMap& map) { map.extents[1] = 20; });
    CHECK(kind(longer) == Fault::Kind::illegal_address);
    CHECK(longer.fault->access_bytes == 32);
    CHECK(!longer.fault->write);
    const auto written = run_tensor(store_of("%map, {0, 14}"), [](TensorMap& map) { map.extents[1] = 20; });
    CHECK(kind(written) == Fault::Kind::illegal_address);
    CHECK(written.fault->write);
    CHECK(kind(run_tensor(load_of("%map, {0, 0}"), [](TensorMap& map) { map.address += 1 << 20; })) ==
          Fault::Kind::illegal_address);
}

TEST_CASE("PTX of tensor copies is refused where ptxas refuses it") {
    const auto refusal = [](const std::string& body) {
        const Device device(tensor_kernel(body));
        return device.module().find_kernel("k")->refusal;
    };
    CHECK(refusal(load_of("%map, {0}")).find("needs 2 coordinates") != std::string::npos);
    CHECK(refusal(load_of("%map+64, {0, 0}")).find("no offset") != std::string::npos);
    CHECK(
        refusal(
            "cp.async.bulk.tensor.2d.shared::cta.global.tile.mbarrier::complete_tx::bytes.multicast::cluster "
            "[s], [%map, {0, 0}], [bar], %h;") != "");
    CHECK(refusal("cp.async.bulk.tensor.2d.global.shared.tile.bulk_group [%map, {0, 0}], [s];") != "");
    CHECK(refusal(
              "cp.async.bulk.tensor.2d.global.shared::cta.im2col_no_offs.bulk_group [%map, {0, 0}], [s];") !=
          "");
    CHECK(refusal("fence.proxy.tensormap::generic.acquire.gpu [%map], 64;").find("128 bytes") !=
          std::string::npos);
    CHECK(refusal("tensormap.replace.tile.fill_mode.global.b1024.b32 [%map], 2;").find("constant below 2") !=
          std::string::npos);
    CHECK(refusal("tensormap.replace.tile.box_dim.global.b1024.b32 [%map], %x, 2;").find("ordinal below 5") !=
          std::string::npos);
}
