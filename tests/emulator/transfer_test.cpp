// Copies and fills in one and two dimensions, compared with plain C++ under every policy, and their completion.
#include <algorithm>
#include <array>
#include <cstring>
#include <random>
#include <tuple>

#include "world.hpp"

using client::Busy;
using client::under_each_policy;
using client::World;

namespace {

using Bytes = std::vector<unsigned char>;

Bytes random_content(std::mt19937& random, std::size_t count) {
    Bytes bytes(count);
    for (auto& each : bytes) each = static_cast<unsigned char>(random());
    return bytes;
}

/// Memory of one of the kinds that can be an end of a copy.
struct Memory {
    enum class Kind { device, pinned, pageable } kind;
    Bytes pageable;
    CUdeviceptr address = 0;

    Memory(World& world, Kind which, const Bytes& content) : kind(which) {
        if (kind == Kind::pageable) {
            pageable = content;
            address = reinterpret_cast<CUdeviceptr>(pageable.data());
        } else if (kind == Kind::pinned) {
            void* host = world.pinned_bytes(content.size());
            std::memcpy(host, content.data(), content.size());
            address = reinterpret_cast<CUdeviceptr>(host);
        } else {
            address = world.device.allocate(content.size());
            REQUIRE(world.api.cuMemcpyHtoD(address, content.data(), content.size()) == CUDA_SUCCESS);
        }
    }
    Bytes read(World& world, std::size_t count) const {
        Bytes bytes(count);
        if (kind == Kind::device) {
            REQUIRE(world.api.cuMemcpyDtoH(bytes.data(), address, count) == CUDA_SUCCESS);
        } else {
            std::memcpy(bytes.data(), reinterpret_cast<void*>(address), count);
        }
        return bytes;
    }
};

/// An end of a 2-D copy, and where its rows begin in memory.
struct Place {
    std::size_t x, y, pitch;
    std::size_t at(std::size_t row) const { return (y + row) * pitch + x; }
};

CUDA_MEMCPY2D copy_of(const Memory& to, Place to_place, const Memory& from, Place from_place,
                      std::size_t width, std::size_t height, bool unified) {
    const auto type = [&](const Memory& memory) {
        if (unified) return CU_MEMORYTYPE_UNIFIED;
        return memory.kind == Memory::Kind::device ? CU_MEMORYTYPE_DEVICE : CU_MEMORYTYPE_HOST;
    };
    CUDA_MEMCPY2D copy = {};
    copy.srcXInBytes = from_place.x;
    copy.srcY = from_place.y;
    copy.srcPitch = from_place.pitch;
    copy.srcMemoryType = type(from);
    copy.srcDevice = from.address;
    copy.srcHost = reinterpret_cast<void*>(from.address);
    copy.dstXInBytes = to_place.x;
    copy.dstY = to_place.y;
    copy.dstPitch = to_place.pitch;
    copy.dstMemoryType = type(to);
    copy.dstDevice = to.address;
    copy.dstHost = reinterpret_cast<void*>(to.address);
    copy.WidthInBytes = width;
    copy.Height = height;
    return copy;
}

}  // namespace

// cuMemcpy2D: rows of WidthInBytes, from base + Y * pitch + XInBytes on; nothing else is written.
TEST_CASE("2-D copies between memory of all kinds move their rows and nothing else") {
    constexpr std::array kinds = {Memory::Kind::device, Memory::Kind::pinned, Memory::Kind::pageable};
    under_each_policy([&](World& world) {
        std::mt19937 random(20261121);
        const CUstream stream = world.device.stream();
        for (int round = 0; round < 90; ++round) {
            const auto to_kind = kinds[static_cast<std::size_t>(round) % 3];
            const auto from_kind = kinds[static_cast<std::size_t>(round) / 3 % 3];
            const std::size_t width = 1 + random() % 40;
            const std::size_t height = 1 + random() % 9;
            const auto place = [&] {
                const std::size_t x = random() % 10;
                return Place{x, random() % 4, x + width + random() % 20};
            };
            const Place to_place = place();
            const Place from_place = place();
            const std::size_t to_bytes = to_place.at(height - 1) + width + random() % 8;
            const std::size_t from_bytes = from_place.at(height - 1) + width + random() % 8;
            const Bytes before = random_content(random, to_bytes);
            const Bytes source = random_content(random, from_bytes);
            Memory to(world, to_kind, before);
            Memory from(world, from_kind, source);
            const auto copy = copy_of(to, to_place, from, from_place, width, height, round % 4 == 3);
            switch (round % 3) {
                case 0:
                    CHECK(world.api.cuMemcpy2D(&copy) == CUDA_SUCCESS);
                    break;
                case 1:
                    CHECK(world.api.cuMemcpy2DUnaligned(&copy) == CUDA_SUCCESS);
                    break;
                default:
                    CHECK(world.api.cuMemcpy2DAsync(&copy, stream) == CUDA_SUCCESS);
                    CHECK(world.api.cuStreamSynchronize(stream) == CUDA_SUCCESS);
            }
            CHECK(world.api.cuStreamSynchronize(nullptr) == CUDA_SUCCESS);
            Bytes expected = before;
            for (std::size_t row = 0; row < height; ++row) {
                std::copy_n(source.begin() + static_cast<std::ptrdiff_t>(from_place.at(row)), width,
                            expected.begin() + static_cast<std::ptrdiff_t>(to_place.at(row)));
            }
            CAPTURE(round);
            CHECK(to.read(world, to_bytes) == expected);
        }
    });
}

// cuMemcpy2D: a pitch is at least XInBytes + WidthInBytes; a copy that exceeds an allocation is refused as a whole.
TEST_CASE("2-D copies that do not fit are refused") {
    World world("lazy");
    Memory to(world, Memory::Kind::device, Bytes(100, 1));
    Memory from(world, Memory::Kind::pageable, Bytes(200, 2));
    const auto result = [&](Place to_place, std::size_t width, std::size_t height) {
        const auto copy = copy_of(to, to_place, from, {0, 0, 20}, width, height, false);
        return world.api.cuMemcpy2D(&copy);
    };
    CHECK(result({0, 0, 10}, 10, 10) == CUDA_SUCCESS);
    CHECK(result({0, 0, 10}, 11, 2) == CUDA_ERROR_INVALID_VALUE);   // wider than the pitch
    CHECK(result({1, 0, 10}, 10, 2) == CUDA_ERROR_INVALID_VALUE);   // wider than the pitch, with its offset
    CHECK(result({0, 1, 10}, 10, 10) == CUDA_ERROR_INVALID_VALUE);  // past the end of the allocation
    CHECK(world.api.report().find("10 rows of 10 bytes") != std::string::npos);
    CHECK(result({0, 0, std::size_t{1} << 31}, 10, 1) == CUDA_ERROR_INVALID_VALUE);
    CHECK(result({0, 0, std::size_t{1} << 30}, 10, SIZE_MAX / 2) == CUDA_ERROR_INVALID_VALUE);
    CHECK(result({0, 0, 10}, 0, 5) == CUDA_SUCCESS);
    CHECK(result({0, 0, 10}, 5, 0) == CUDA_SUCCESS);
    auto arrays = copy_of(to, {0, 0, 10}, from, {0, 0, 10}, 10, 1, false);
    arrays.dstMemoryType = CU_MEMORYTYPE_ARRAY;
    CHECK(world.api.cuMemcpy2D(&arrays) == CUDA_ERROR_INVALID_HANDLE);  // there is no array
    CHECK(world.api.cuMemcpy2D(nullptr) == CUDA_ERROR_INVALID_VALUE);
}

// cuMemsetD8/16/32, cuMemsetD2D8/16/32 and their Async versions: Width counts elements, the pitch is bytes.
TEST_CASE("fills of every size and shape write their elements and nothing else") {
    under_each_policy([](World& world) {
        std::mt19937 random(7);
        const CUstream stream = world.device.stream();
        for (int round = 0; round < 60; ++round) {
            const std::size_t element = std::size_t{1} << round % 3;
            const bool is_async = round / 3 % 2 == 1;
            const bool is_2d = round / 6 % 2 == 1;
            const std::size_t width = 1 + random() % 30;
            const std::size_t height = is_2d ? 1 + random() % 7 : 1;
            const std::size_t pitch = (width + random() % 5) * element;
            const std::size_t start = random() % 4 * element;
            const std::size_t bytes = start + pitch * (height - 1) + width * element + random() % 6;
            const Bytes before = random_content(random, bytes);
            Memory memory(world, Memory::Kind::device, before);
            const CUdeviceptr to = memory.address + start;
            const auto value = static_cast<unsigned>(random());
            const auto byte = static_cast<unsigned char>(value);
            const auto half = static_cast<unsigned short>(value);
            const auto& api = world.api;
            const CUresult result =
                element == 1   ? is_2d      ? is_async
                                                  ? api.cuMemsetD2D8Async(to, pitch, byte, width, height, stream)
                                                  : api.cuMemsetD2D8(to, pitch, byte, width, height)
                                      : is_async ? api.cuMemsetD8Async(to, byte, width, stream)
                                            : api.cuMemsetD8(to, byte, width)
                  : element == 2 ? is_2d      ? is_async
                                                    ? api.cuMemsetD2D16Async(to, pitch, half, width, height, stream)
                                                    : api.cuMemsetD2D16(to, pitch, half, width, height)
                                        : is_async ? api.cuMemsetD16Async(to, half, width, stream)
                                              : api.cuMemsetD16(to, half, width)
                  : is_2d ? is_async ? api.cuMemsetD2D32Async(to, pitch, value, width, height, stream)
                                     : api.cuMemsetD2D32(to, pitch, value, width, height)
                  : is_async ? api.cuMemsetD32Async(to, value, width, stream)
                               : api.cuMemsetD32(to, value, width);
            CHECK(result == CUDA_SUCCESS);
            if (is_async) CHECK(api.cuStreamSynchronize(stream) == CUDA_SUCCESS);
            Bytes expected = before;
            for (std::size_t row = 0; row < height; ++row) {
                for (std::size_t i = 0; i < width; ++i)
                    std::memcpy(&expected[start + row * pitch + i * element], &value,
                                element);  // the low bytes, as the host is little-endian
            }
            CAPTURE(round);
            CHECK(memory.read(world, bytes) == expected);
        }
        const CUdeviceptr x = world.device.allocate(64);
        CHECK(world.api.cuMemsetD2D32(x, 10, 0, 2, 2) == CUDA_ERROR_INVALID_VALUE);  // not a multiple of four
        CHECK(world.api.cuMemsetD2D8(x, 32, 0, 32, 3) == CUDA_ERROR_INVALID_VALUE);  // past the end
        CHECK(world.api.cuMemsetD16(x + 1, 0, 1) == CUDA_ERROR_INVALID_VALUE);
    });
}

// "API synchronization behavior", Memcpy: a call that reads or writes host memory returns when it no longer uses that
// memory; between device memory "no host-side synchronization is performed".
TEST_CASE("synchronous copies are done when they return, but for those inside the device") {
    under_each_policy([](World& world) {
        float* pinned = world.pinned(1.0F);
        float pageable = 0.0F;
        const CUdeviceptr x = world.device.allocate(4);
        CHECK(world.api.cuMemcpyHtoD(x, pinned, 4) == CUDA_SUCCESS);
        *pinned = 2.0F;  // the copy does not read this value
        CHECK(world.api.cuMemcpyDtoH(&pageable, x, 4) == CUDA_SUCCESS);
        CHECK(pageable == 1.0F);
        CHECK(world.api.cuMemcpyDtoH(pinned, x, 4) == CUDA_SUCCESS);
        CHECK(*pinned == 1.0F);
    });
    World lazy("lazy");
    float* source = lazy.pinned(5.0F);
    const CUdeviceptr x = lazy.device.allocate(4);
    const CUdeviceptr y = lazy.device.floats(1, 0.0F);
    lazy.api.cuMemcpyHtoDAsync(x, source, 4, nullptr);
    CHECK(lazy.api.cuMemcpyDtoD(y, x, 4) == CUDA_SUCCESS);
    *source = 6.0F;  // nothing has run yet
    CHECK(lazy.device.read(y) == 6.0F);
}

// The same, Memcpy with Async: pageable memory is staged, and its use is complete on return for device-to-host; "for
// transfers from any host memory to any host memory, the function is fully synchronous".
TEST_CASE("asynchronous copies of pageable memory do not depend on what the caller does next") {
    under_each_policy([](World& world) {
        const CUstream p = world.device.stream();
        const CUdeviceptr x = world.device.floats(1, 0.0F);
        float source = 3.0F;
        CHECK(world.api.cuMemcpyHtoDAsync(x, &source, 4, p) == CUDA_SUCCESS);
        source = 4.0F;
        float got = 0.0F;
        CHECK(world.api.cuMemcpyDtoHAsync(&got, x, 4, p) == CUDA_SUCCESS);
        CHECK(got == 3.0F);
        float* one = world.pinned(8.0F);
        float* other = world.pinned();
        CHECK(world.api.cuMemcpyAsync(reinterpret_cast<CUdeviceptr>(other),
                                      reinterpret_cast<CUdeviceptr>(one), 4, p) == CUDA_SUCCESS);
        CHECK(*other == 8.0F);
    });
}

// The same, Memset: "asynchronous with respect to the host except when the target is pinned host memory or a
// Unified Memory region".
TEST_CASE("fills of host memory are done when they return") {
    under_each_policy([](World& world) {
        float* pinned = world.pinned(1.0F);
        CHECK(world.api.cuMemsetD32(reinterpret_cast<CUdeviceptr>(pinned), 0, 1) == CUDA_SUCCESS);
        CHECK(*pinned == 0.0F);
        CUdeviceptr managed = 0;
        REQUIRE(world.api.cuMemAllocManaged(&managed, 4, CU_MEM_ATTACH_GLOBAL) == CUDA_SUCCESS);
        CHECK(world.api.cuMemsetD8(managed, 9, 4) == CUDA_SUCCESS);
        CHECK(*reinterpret_cast<unsigned char*>(managed + 3) == 9);
    });
}

// cuMemcpyPeerAsync copies between contexts in a stream's order; cuMemcpyPeer is serialized with both contexts' work.
TEST_CASE("peer copies move memory between devices, in their stream's order") {
    under_each_policy(
        [](World& world) {
            CUcontext first = world.context();
            std::array<CUcontext, 2> others = {};
            std::array<CUdeviceptr, 2> there = {};
            for (int i = 0; i < 2; ++i) {
                REQUIRE(world.api.cuDevicePrimaryCtxRetain(&others[static_cast<std::size_t>(i)], i + 1) ==
                        CUDA_SUCCESS);
                world.api.cuCtxPushCurrent(others[static_cast<std::size_t>(i)]);
                REQUIRE(world.api.cuMemAlloc(&there[static_cast<std::size_t>(i)], 4) == CUDA_SUCCESS);
                world.api.cuCtxPopCurrent(nullptr);
            }
            const CUstream p = world.device.stream();
            const CUdeviceptr x = world.device.floats(1, 1.0F);
            world.device.launch("increment", p, x);
            CHECK(world.api.cuMemcpyPeerAsync(there[0], others[0], x, first, 4, p) == CUDA_SUCCESS);
            world.device.launch("increment", p, x);
            CHECK(world.api.cuMemcpyPeerAsync(there[1], others[1], there[0], others[0], 4, p) ==
                  CUDA_SUCCESS);
            CHECK(world.api.cuStreamSynchronize(p) == CUDA_SUCCESS);
            CHECK(world.device.read(there[1]) == 2.0F);
            CHECK(world.device.read(x) == 3.0F);
            world.device.launch("increment", p, x);
            CHECK(world.api.cuMemcpyPeer(there[1], others[1], x, first, 4) == CUDA_SUCCESS);  // waits for p
            CHECK(world.device.read(there[1]) == 4.0F);
            CHECK(world.api.cuMemcpyPeerAsync(there[1], nullptr, x, first, 4, p) ==
                  CUDA_ERROR_INVALID_CONTEXT);
            for (const int device : {1, 2}) world.api.cuDevicePrimaryCtxRelease(device);
        },
        3);
}

// cuMemcpyBatchAsync: "each memcpy operation in the batch must have a valid CUmemcpyAttributes".
TEST_CASE("a batch of copies is done in the order of its stream") {
    under_each_policy([](World& world) {
        const CUstream p = world.device.stream();
        const CUdeviceptr x = world.device.floats(3, 1.0F), y = world.device.floats(3, 0.0F);
        CHECK(world.device.launch("increment", p, x, 3) == CUDA_SUCCESS);
        CUdeviceptr to[] = {y + 8, y + 4, y}, from[] = {x, x + 4, x + 8};
        std::size_t bytes[] = {4, 4, 4}, first_of[] = {0, 2};
        CUmemcpyAttributes attributes[2] = {};
        for (CUmemcpyAttributes& each : attributes) each.srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_STREAM;
        const auto copy = [&](CUstream stream) {
            return world.api.cuMemcpyBatchAsync(to, from, bytes, 3, attributes, first_of, 2, stream);
        };
        CHECK(copy(p) == CUDA_SUCCESS);
        CHECK(world.device.launch("increment", p, y, 3) == CUDA_SUCCESS);
        CHECK(world.api.cuStreamSynchronize(p) == CUDA_SUCCESS);
        for (unsigned i = 0; i < 3; ++i) CHECK(world.device.read(y + 4 * i) == 3.0F);
        CHECK(copy(nullptr) == CUDA_ERROR_INVALID_VALUE);
        first_of[1] = 0;
        CHECK(copy(p) == CUDA_ERROR_INVALID_VALUE);
        first_of[1] = 3;
        CHECK(copy(p) == CUDA_ERROR_INVALID_VALUE);
        first_of[1] = 1;
        attributes[1].srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_INVALID;
        CHECK(copy(p) == CUDA_ERROR_INVALID_VALUE);
    });
}

// Drivers refuse a copy without access, according to cuda.core's own tests; cuMemcpyPeerAsync needs none.
TEST_CASE("a copy between devices asks for access to a pool's memory") {
    under_each_policy(
        [](World& world) {
            const CUstream p = world.device.stream();
            CUmemPoolProps properties = {};
            properties.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
            properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
            properties.location.id = 1;
            CUmemoryPool pool = nullptr;
            REQUIRE(world.api.cuMemPoolCreate(&pool, &properties) == CUDA_SUCCESS);
            CUdeviceptr there = 0;
            REQUIRE(world.api.cuMemAllocFromPoolAsync(&there, 4, pool, p) == CUDA_SUCCESS);
            const CUdeviceptr x = world.device.floats(1, 1.0F);
            CHECK(world.api.cuMemcpyDtoDAsync(there, x, 4, p) == CUDA_ERROR_INVALID_VALUE);
            CHECK(world.api.cuMemcpyDtoDAsync(x, there, 4, p) == CUDA_ERROR_INVALID_VALUE);
            CHECK(world.api.report().find("no access to the pool") != std::string::npos);
            CHECK(world.api.cuMemcpyPeerAsync(there, world.context(), x, world.context(), 4, p) ==
                  CUDA_SUCCESS);
            CUmemAccessDesc access = {};
            access.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
            access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
            CHECK(world.api.cuMemPoolSetAccess(pool, &access, 1) == CUDA_SUCCESS);
            CHECK(world.device.launch("increment", p, x) == CUDA_SUCCESS);
            CHECK(world.api.cuMemcpyDtoDAsync(there, x, 4, p) == CUDA_SUCCESS);
            CHECK(world.api.cuStreamSynchronize(p) == CUDA_SUCCESS);
            CHECK(world.device.read(there) == 2.0F);
            CHECK(world.api.cuMemFreeAsync(there, p) == CUDA_SUCCESS);
            CHECK(world.api.cuMemPoolDestroy(pool) == CUDA_SUCCESS);
        },
        2);
}

// cuMemDiscardBatchAsync, cuMemPrefetchBatchAsync: for managed memory, in the order of the stream.
TEST_CASE("managed memory is prefetched and discarded in batches") {
    under_each_policy([](World& world) {
        const CUstream p = world.device.stream();
        CUdeviceptr x = 0;
        REQUIRE(world.api.cuMemAllocManaged(&x, 8, CU_MEM_ATTACH_GLOBAL) == CUDA_SUCCESS);
        CHECK(world.api.cuMemsetD32Async(x, 0x3F800000, 2, p) == CUDA_SUCCESS);
        CUdeviceptr addresses[] = {x};
        std::size_t bytes[] = {4}, first_of[] = {0};
        CUmemLocation location = {};
        location.type = CU_MEM_LOCATION_TYPE_DEVICE;
        CHECK(world.api.cuMemPrefetchBatchAsync(addresses, bytes, 1, &location, first_of, 1, 0, p) ==
              CUDA_SUCCESS);
        CHECK(world.api.cuMemDiscardBatchAsync(addresses, bytes, 1, 0, p) == CUDA_SUCCESS);
        CHECK(world.api.cuStreamSynchronize(p) == CUDA_SUCCESS);
        CHECK(world.device.read(x) != 1.0F);
        CHECK(world.device.read(x + 4) == 1.0F);
        bytes[0] = 12;
        CHECK(world.api.cuMemDiscardBatchAsync(addresses, bytes, 1, 0, p) == CUDA_ERROR_INVALID_VALUE);
        location.id = 9;
        bytes[0] = 4;
        CHECK(world.api.cuMemPrefetchBatchAsync(addresses, bytes, 1, &location, first_of, 1, 0, p) ==
              CUDA_ERROR_INVALID_DEVICE);
        CHECK(world.api.cuMemFree(x) == CUDA_SUCCESS);
    });
}
