// CUDA arrays, texture and surface objects through the driver's C ABI: refusals with their codes, copies of boxes
// compared with plain C++, and queries of an object.
#include <algorithm>
#include <array>
#include <cstring>
#include <random>

#include "world.hpp"

using client::under_each_policy;
using client::World;

namespace {

using Bytes = std::vector<unsigned char>;

Bytes random_bytes(std::mt19937& random, std::size_t count) {
    Bytes bytes(count);
    for (auto& each : bytes) each = static_cast<unsigned char>(random());
    return bytes;
}

CUDA_ARRAY3D_DESCRIPTOR array_of(std::size_t width, std::size_t height, std::size_t depth, unsigned flags = 0,
                                 CUarray_format format = CU_AD_FORMAT_FLOAT, unsigned channels = 1) {
    CUDA_ARRAY3D_DESCRIPTOR made{};
    made.Width = width;
    made.Height = height;
    made.Depth = depth;
    made.Format = format;
    made.NumChannels = channels;
    made.Flags = flags;
    return made;
}

CUresult create(World& world, const CUDA_ARRAY3D_DESCRIPTOR& description) {
    CUarray array = nullptr;
    const CUresult code = world.api.cuArray3DCreate(&array, &description);
    if (code == CUDA_SUCCESS) CHECK(world.api.cuArrayDestroy(array) == CUDA_SUCCESS);
    return code;
}

CUDA_RESOURCE_DESC pitched(CUdeviceptr address, std::size_t width, std::size_t height, std::size_t pitch,
                           CUarray_format format = CU_AD_FORMAT_FLOAT, unsigned channels = 1) {
    CUDA_RESOURCE_DESC made{};
    made.resType = CU_RESOURCE_TYPE_PITCH2D;
    made.res.pitch2D = {address, format, channels, width, height, pitch};
    return made;
}

CUDA_RESOURCE_DESC linear(CUdeviceptr address, std::size_t bytes,
                          CUarray_format format = CU_AD_FORMAT_FLOAT) {
    CUDA_RESOURCE_DESC made{};
    made.resType = CU_RESOURCE_TYPE_LINEAR;
    made.res.linear = {address, format, 1, bytes};
    return made;
}

CUresult texture(World& world, const CUDA_RESOURCE_DESC& resource, const CUDA_TEXTURE_DESC& how = {},
                 const CUDA_RESOURCE_VIEW_DESC* view = nullptr) {
    CUtexObject made = 0;
    const CUresult code = world.api.cuTexObjectCreate(&made, &resource, &how, view);
    if (code == CUDA_SUCCESS) CHECK(world.api.cuTexObjectDestroy(made) == CUDA_SUCCESS);
    return code;
}

int attribute(World& world, CUdevice_attribute which) {
    int value = 0;
    CHECK(world.api.cuDeviceGetAttribute(&value, which, 0) == CUDA_SUCCESS);
    return value;
}

/// A box of memory in rows, or of a CUDA array.
struct Box {
    CUmemorytype type;
    void* host = nullptr;
    CUdeviceptr device = 0;
    CUarray array = nullptr;
    std::size_t x = 0, y = 0, z = 0, pitch = 0, height = 0;
};

CUDA_MEMCPY3D copy_of(const Box& to, const Box& from, std::size_t width, std::size_t height,
                      std::size_t depth) {
    CUDA_MEMCPY3D copy{};
    copy.srcXInBytes = from.x;
    copy.srcY = from.y;
    copy.srcZ = from.z;
    copy.srcMemoryType = from.type;
    copy.srcHost = from.host;
    copy.srcDevice = from.device;
    copy.srcArray = from.array;
    copy.srcPitch = from.pitch;
    copy.srcHeight = from.height;
    copy.dstXInBytes = to.x;
    copy.dstY = to.y;
    copy.dstZ = to.z;
    copy.dstMemoryType = to.type;
    copy.dstHost = to.host;
    copy.dstDevice = to.device;
    copy.dstArray = to.array;
    copy.dstPitch = to.pitch;
    copy.dstHeight = to.height;
    copy.WidthInBytes = width;
    copy.Height = height;
    copy.Depth = depth;
    return copy;
}

}  // namespace

// cuArray3DCreate: the table of "Valid extents that must always be met" for each kind of array.
TEST_CASE("arrays have the extents that their kind allows") {
    World world("lazy");
    const unsigned layers = CUDA_ARRAY3D_LAYERED, cube = CUDA_ARRAY3D_CUBEMAP,
                   gather = CUDA_ARRAY3D_TEXTURE_GATHER;
    for (const auto& good :
         {array_of(7, 0, 0), array_of(7, 5, 0), array_of(7, 5, 3), array_of(7, 0, 3, layers),
          array_of(7, 5, 3, layers), array_of(5, 5, 6, cube), array_of(5, 5, 12, cube | layers),
          array_of(7, 5, 0, gather), array_of(7, 5, 0, CUDA_ARRAY3D_SURFACE_LDST)})
        CHECK(create(world, good) == CUDA_SUCCESS);
    for (const auto& bad :
         {array_of(0, 5, 0), array_of(7, 0, 3), array_of(7, 5, 0, layers), array_of(5, 4, 6, cube),
          array_of(5, 5, 5, cube), array_of(5, 5, 7, cube | layers), array_of(7, 0, 0, gather),
          array_of(7, 5, 3, gather), array_of(7, 5, 0, 0, CU_AD_FORMAT_FLOAT, 3),
          array_of(7, 5, 0, 0, CU_AD_FORMAT_NV12, 1)})
        CHECK(create(world, bad) == CUDA_ERROR_INVALID_VALUE);
    CHECK(create(world, array_of(7, 5, 0, CUDA_ARRAY3D_SPARSE)) == CUDA_ERROR_NOT_SUPPORTED);
    CHECK(world.api.cuArray3DCreate(nullptr, nullptr) == CUDA_ERROR_INVALID_VALUE);
}

TEST_CASE("arrays may be as large as the device's attributes say") {
    World world("lazy");
    const auto most = [&](CUdevice_attribute which) {
        return static_cast<std::size_t>(attribute(world, which));
    };
    const std::size_t width = most(CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE1D_WIDTH);
    CHECK(create(world, array_of(width, 0, 0)) == CUDA_SUCCESS);
    CHECK(create(world, array_of(width + 1, 0, 0)) == CUDA_ERROR_INVALID_VALUE);
    const std::size_t height = most(CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_HEIGHT);
    CHECK(create(world, array_of(2, height, 0)) == CUDA_SUCCESS);
    CHECK(create(world, array_of(2, height + 1, 0)) == CUDA_ERROR_INVALID_VALUE);
    const std::size_t depth = most(CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE3D_DEPTH);
    CHECK(create(world, array_of(2, 2, depth)) == CUDA_SUCCESS);
    CHECK(create(world, array_of(2, 2, depth + 1)) == CUDA_ERROR_INVALID_VALUE);
    const std::size_t layers = most(CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LAYERED_LAYERS);
    CHECK(create(world, array_of(2, 2, layers, CUDA_ARRAY3D_LAYERED)) == CUDA_SUCCESS);
    CHECK(create(world, array_of(2, 2, layers + 1, CUDA_ARRAY3D_LAYERED)) == CUDA_ERROR_INVALID_VALUE);
}

TEST_CASE("an array tells what it was made of, until it is destroyed") {
    World world("lazy");
    const CUDA_ARRAY3D_DESCRIPTOR asked =
        array_of(7, 5, 3, CUDA_ARRAY3D_LAYERED | CUDA_ARRAY3D_SURFACE_LDST, CU_AD_FORMAT_HALF, 2);
    CUarray array = nullptr;
    REQUIRE(world.api.cuArray3DCreate(&array, &asked) == CUDA_SUCCESS);
    CUDA_ARRAY3D_DESCRIPTOR told{};
    CHECK(world.api.cuArray3DGetDescriptor(&told, array) == CUDA_SUCCESS);
    CHECK(told.Width == asked.Width);
    CHECK(told.Height == asked.Height);
    CHECK(told.Depth == asked.Depth);
    CHECK(told.Format == asked.Format);
    CHECK(told.NumChannels == asked.NumChannels);
    CHECK(told.Flags == asked.Flags);
    CUDA_ARRAY_DESCRIPTOR flat{};
    CHECK(world.api.cuArrayGetDescriptor(&flat, array) == CUDA_ERROR_INVALID_VALUE);
    CHECK(world.api.cuArrayDestroy(array) == CUDA_SUCCESS);
    CHECK(world.api.cuArrayDestroy(array) == CUDA_ERROR_INVALID_HANDLE);
    CHECK(world.api.cuArray3DGetDescriptor(&told, array) == CUDA_ERROR_INVALID_HANDLE);
    const CUDA_ARRAY_DESCRIPTOR small{9, 4, CU_AD_FORMAT_UNSIGNED_INT8, 4};
    REQUIRE(world.api.cuArrayCreate(&array, &small) == CUDA_SUCCESS);
    CHECK(world.api.cuArrayGetDescriptor(&flat, array) == CUDA_SUCCESS);
    CHECK(flat.Width == 9);
    CHECK(flat.Height == 4);
    CHECK(flat.NumChannels == 4);
    CHECK(world.api.cuArrayDestroy(array) == CUDA_SUCCESS);
}

TEST_CASE("boxes are copied between arrays, device memory and the host") {
    under_each_policy([](World& world) {
        std::mt19937 random(1);
        constexpr std::size_t texel = 4, width = 9, height = 7, depth = 5, row = width * texel;
        for (int round = 0; round < 40; ++round) {
            const auto pick = [&](std::size_t most) { return std::size_t{random() % (most + 1)}; };
            const std::size_t w = 1 + pick(width - 1), h = 1 + pick(height - 1), d = 1 + pick(depth - 1);
            const std::size_t x = pick(width - w), y = pick(height - h), z = pick(depth - d);
            CUarray array = nullptr;
            const auto description = array_of(width, height, depth, 0, CU_AD_FORMAT_UNSIGNED_INT8, texel);
            REQUIRE(world.api.cuArray3DCreate(&array, &description) == CUDA_SUCCESS);
            const std::size_t pitch = row + 16, lines = height + 2;
            Bytes content = random_bytes(random, row * height * depth),
                  other = random_bytes(random, pitch * lines * depth);
            const CUdeviceptr device = world.device.allocate(other.size());
            REQUIRE(world.api.cuMemcpyHtoD(device, other.data(), other.size()) == CUDA_SUCCESS);
            const Box whole{CU_MEMORYTYPE_ARRAY, nullptr, 0, array};
            const Box from_host{CU_MEMORYTYPE_HOST, content.data(), 0, nullptr, 0, 0, 0, row, height};
            const CUDA_MEMCPY3D fill = copy_of(whole, from_host, row, height, depth);
            CHECK(world.api.cuMemcpy3D(&fill) == CUDA_SUCCESS);
            // A box of device memory into the array, in a stream.
            const CUstream stream = world.device.stream();
            const Box part{CU_MEMORYTYPE_ARRAY, nullptr, 0, array, x * texel, y, z};
            const Box source{CU_MEMORYTYPE_DEVICE, nullptr, device, nullptr, 4, 1, 0, pitch, lines};
            const CUDA_MEMCPY3D move = copy_of(part, source, w * texel, h, d);
            CHECK(world.api.cuMemcpy3DAsync(&move, stream) == CUDA_SUCCESS);
            CHECK(world.api.cuStreamSynchronize(stream) == CUDA_SUCCESS);
            Bytes got(content.size());
            const Box to_host{CU_MEMORYTYPE_HOST, got.data(), 0, nullptr, 0, 0, 0, row, height};
            const CUDA_MEMCPY3D back = copy_of(to_host, whole, row, height, depth);
            CHECK(world.api.cuMemcpy3D(&back) == CUDA_SUCCESS);
            for (std::size_t k = 0; k < d; ++k) {
                for (std::size_t j = 0; j < h; ++j)
                    std::copy_n(&other[(k * lines + 1 + j) * pitch + 4], w * texel,
                                &content[((z + k) * height + y + j) * row + x * texel]);
            }
            CHECK(got == content);
            CHECK(world.api.cuArrayDestroy(array) == CUDA_SUCCESS);
            CHECK(world.api.cuMemFree(device) == CUDA_SUCCESS);
        }
    });
}

TEST_CASE("copies that do not fit an array, or cut its texels, are refused") {
    World world("lazy");
    CUarray array = nullptr;
    const auto description = array_of(8, 4, 0);
    REQUIRE(world.api.cuArray3DCreate(&array, &description) == CUDA_SUCCESS);
    Bytes host(4096);
    const auto copied = [&](const Box& to, std::size_t width, std::size_t height, std::size_t depth) {
        const CUDA_MEMCPY3D copy = copy_of(to, {CU_MEMORYTYPE_HOST, host.data()}, width, height, depth);
        return world.api.cuMemcpy3D(&copy);
    };
    CHECK(copied({CU_MEMORYTYPE_ARRAY, nullptr, 0, array}, 32, 4, 1) == CUDA_SUCCESS);
    CHECK(copied({CU_MEMORYTYPE_ARRAY, nullptr, 0, array}, 36, 4, 1) == CUDA_ERROR_INVALID_VALUE);
    CHECK(copied({CU_MEMORYTYPE_ARRAY, nullptr, 0, array}, 32, 5, 1) == CUDA_ERROR_INVALID_VALUE);
    CHECK(copied({CU_MEMORYTYPE_ARRAY, nullptr, 0, array}, 32, 4, 2) == CUDA_ERROR_INVALID_VALUE);
    CHECK(copied({CU_MEMORYTYPE_ARRAY, nullptr, 0, array, 4}, 32, 4, 1) == CUDA_ERROR_INVALID_VALUE);
    CHECK(copied({CU_MEMORYTYPE_ARRAY, nullptr, 0, array, 2}, 4, 4, 1) == CUDA_ERROR_INVALID_VALUE);
    CHECK(copied({CU_MEMORYTYPE_ARRAY, nullptr, 0, array}, 6, 4, 1) == CUDA_ERROR_INVALID_VALUE);
    CHECK(copied({CU_MEMORYTYPE_ARRAY}, 32, 4, 1) == CUDA_ERROR_INVALID_HANDLE);
    CHECK(copied({static_cast<CUmemorytype>(7)}, 32, 4, 1) == CUDA_ERROR_INVALID_VALUE);
    CHECK(world.api.cuMemcpyHtoA(array, 0, host.data(), 16) ==
          CUDA_ERROR_INVALID_VALUE);  // it has two dimensions
    CHECK(world.api.cuArrayDestroy(array) == CUDA_SUCCESS);
}

TEST_CASE("arrays of one dimension are copied by offsets") {
    under_each_policy([](World& world) {
        std::mt19937 random(2);
        CUarray first = nullptr, second = nullptr;
        const auto description = array_of(100, 0, 0, 0, CU_AD_FORMAT_SIGNED_INT16, 1);
        REQUIRE(world.api.cuArray3DCreate(&first, &description) == CUDA_SUCCESS);
        REQUIRE(world.api.cuArray3DCreate(&second, &description) == CUDA_SUCCESS);
        const Bytes content = random_bytes(random, 200);
        const CUdeviceptr device = world.device.allocate(200);
        const CUstream stream = world.device.stream();
        CHECK(world.api.cuMemcpyHtoAAsync(first, 0, content.data(), 200, stream) == CUDA_SUCCESS);
        CHECK(world.api.cuStreamSynchronize(stream) == CUDA_SUCCESS);
        CHECK(world.api.cuMemcpyHtoA(second, 0, content.data(), 200) == CUDA_SUCCESS);
        CHECK(world.api.cuMemcpyAtoA(second, 20, first, 100, 60) == CUDA_SUCCESS);
        CHECK(world.api.cuMemcpyAtoD(device, second, 0, 200) == CUDA_SUCCESS);
        CHECK(world.api.cuMemcpyDtoA(first, 150, device + 20, 50) == CUDA_SUCCESS);
        Bytes got(200), expected = content;
        CHECK(world.api.cuMemcpyAtoH(got.data(), first, 0, 200) == CUDA_SUCCESS);
        std::copy_n(&content[100], 50, &expected[150]);
        CHECK(got == expected);
        CHECK(world.api.cuMemcpyAtoHAsync(got.data(), second, 20, 60, stream) == CUDA_SUCCESS);
        CHECK(world.api.cuStreamSynchronize(stream) == CUDA_SUCCESS);
        CHECK(std::equal(got.begin(), got.begin() + 60, content.begin() + 100));
        CHECK(world.api.cuMemcpyHtoA(first, 198, content.data(), 4) == CUDA_ERROR_INVALID_VALUE);
        CHECK(world.api.cuArrayDestroy(first) == CUDA_SUCCESS);
        CHECK(world.api.cuArrayDestroy(second) == CUDA_SUCCESS);
        CHECK(world.api.cuMemFree(device) == CUDA_SUCCESS);
    });
}

// cuTexObjectCreate: devPtr is "aligned to CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT", and pitchInBytes "has to be aligned
// to CU_DEVICE_ATTRIBUTE_TEXTURE_PITCH_ALIGNMENT"; the extents have limits.
TEST_CASE("textures over memory are aligned, and not too large") {
    World world("lazy");
    const auto alignment = static_cast<std::size_t>(attribute(world, CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT));
    const auto step = static_cast<std::size_t>(attribute(world, CU_DEVICE_ATTRIBUTE_TEXTURE_PITCH_ALIGNMENT));
    const CUdeviceptr memory = world.device.allocate(1 << 20);
    CHECK(memory % alignment == 0);
    CHECK(texture(world, pitched(memory, 100, 10, 512)) == CUDA_SUCCESS);
    CHECK(texture(world, pitched(memory, 100, 10, 400 + step - 400 % step)) == CUDA_SUCCESS);
    CHECK(texture(world, pitched(memory, 100, 10, 400)) == CUDA_ERROR_INVALID_VALUE);
    CHECK(texture(world, pitched(memory + alignment / 2, 100, 10, 512)) == CUDA_ERROR_INVALID_VALUE);
    CHECK(texture(world, pitched(memory, 100, 10, 384)) == CUDA_ERROR_INVALID_VALUE);  // narrower than a row
    CHECK(texture(world, pitched(memory, 100, 2048, 512)) == CUDA_SUCCESS);
    CHECK(texture(world, pitched(memory, 100, 2049, 512)) ==
          CUDA_ERROR_INVALID_VALUE);  // more rows than allocated
    CHECK(texture(world, pitched(memory, 100, 0, 512)) == CUDA_ERROR_INVALID_VALUE);
    CHECK(texture(world, pitched(memory, 200000, 1, 800256)) == CUDA_ERROR_INVALID_VALUE);
    CHECK(texture(world, pitched(memory, 1, 70000, 32)) == CUDA_ERROR_INVALID_VALUE);
    CHECK(texture(world, pitched(memory, 100, 10, 512, CU_AD_FORMAT_FLOAT, 3)) == CUDA_ERROR_INVALID_VALUE);
    CHECK(texture(world, linear(memory, 1 << 20)) == CUDA_SUCCESS);
    CHECK(texture(world, linear(memory, (1 << 20) + 4)) == CUDA_ERROR_INVALID_VALUE);
    CHECK(texture(world, linear(memory + 4, 64)) == CUDA_ERROR_INVALID_VALUE);
    CHECK(texture(world, linear(memory, 0)) == CUDA_ERROR_INVALID_VALUE);
    CHECK(texture(world, linear(0, 64)) == CUDA_ERROR_INVALID_VALUE);
    CUDA_RESOURCE_DESC flagged = linear(memory, 64);
    flagged.flags = 1;
    CHECK(texture(world, flagged) == CUDA_ERROR_INVALID_VALUE);
    const CUDA_RESOURCE_VIEW_DESC view{};
    CHECK(texture(world, linear(memory, 64), {}, &view) == CUDA_ERROR_INVALID_VALUE);
    CHECK(world.api.cuMemFree(memory) == CUDA_SUCCESS);
    CHECK(texture(world, linear(memory, 64)) == CUDA_ERROR_INVALID_VALUE);
}

TEST_CASE("combinations of options that no texture has are refused") {
    World world("lazy");
    const CUdeviceptr memory = world.device.allocate(1 << 16);
    const CUDA_RESOURCE_DESC floats = pitched(memory, 100, 10, 512);
    const CUDA_RESOURCE_DESC bytes = pitched(memory, 100, 10, 512, CU_AD_FORMAT_UNSIGNED_INT8);
    const CUDA_RESOURCE_DESC words = pitched(memory, 100, 10, 512, CU_AD_FORMAT_SIGNED_INT32);
    const auto with = [](CUfilter_mode filter, unsigned flags,
                         CUaddress_mode mode = CU_TR_ADDRESS_MODE_CLAMP) {
        CUDA_TEXTURE_DESC made{};
        std::ranges::fill(made.addressMode, mode);
        made.filterMode = filter;
        made.flags = flags;
        return made;
    };
    const auto linear_filter = CU_TR_FILTER_MODE_LINEAR, point = CU_TR_FILTER_MODE_POINT;
    CHECK(texture(world, floats, with(linear_filter, 0)) == CUDA_SUCCESS);
    CHECK(texture(world, bytes, with(linear_filter, 0)) == CUDA_SUCCESS);  // promoted to float
    CHECK(texture(world, bytes, with(linear_filter, CU_TRSF_READ_AS_INTEGER)) == CUDA_ERROR_INVALID_VALUE);
    CHECK(texture(world, words, with(linear_filter, 0)) == CUDA_ERROR_INVALID_VALUE);  // never promoted
    CHECK(texture(world, bytes, with(point, CU_TRSF_SRGB)) == CUDA_SUCCESS);
    CHECK(texture(world, bytes, with(point, CU_TRSF_SRGB | CU_TRSF_READ_AS_INTEGER)) ==
          CUDA_ERROR_INVALID_VALUE);
    CHECK(texture(world, floats, with(point, CU_TRSF_SRGB)) == CUDA_ERROR_INVALID_VALUE);
    CHECK(texture(world, floats, with(point, 0x8000)) == CUDA_ERROR_INVALID_VALUE);
    CHECK(texture(world, floats, with(static_cast<CUfilter_mode>(2), 0)) == CUDA_ERROR_INVALID_VALUE);
    CHECK(texture(world, floats, with(point, 0, static_cast<CUaddress_mode>(4))) == CUDA_ERROR_INVALID_VALUE);
    CUDA_TEXTURE_DESC colored = with(point, CU_TRSF_READ_AS_INTEGER, CU_TR_ADDRESS_MODE_BORDER);
    colored.borderColor[1] = 1;
    CHECK(texture(world, bytes, colored) == CUDA_ERROR_NOT_SUPPORTED);
    CHECK(texture(world, floats, colored) == CUDA_SUCCESS);
    CHECK(world.api.cuMemFree(memory) == CUDA_SUCCESS);
}

TEST_CASE("textures and surfaces tell what they were made of, until they are destroyed") {
    World world("lazy");
    CUarray array = nullptr, plain = nullptr;
    const auto description = array_of(7, 5, 0, CUDA_ARRAY3D_SURFACE_LDST), without = array_of(7, 5, 0);
    REQUIRE(world.api.cuArray3DCreate(&array, &description) == CUDA_SUCCESS);
    REQUIRE(world.api.cuArray3DCreate(&plain, &without) == CUDA_SUCCESS);
    CUDA_RESOURCE_DESC resource{};
    resource.res.array.hArray = array;
    CUDA_TEXTURE_DESC how{};
    how.filterMode = CU_TR_FILTER_MODE_LINEAR;
    how.flags = CU_TRSF_NORMALIZED_COORDINATES;
    CUtexObject made = 0, another = 0;
    REQUIRE(world.api.cuTexObjectCreate(&made, &resource, &how, nullptr) == CUDA_SUCCESS);
    REQUIRE(world.api.cuTexObjectCreate(&another, &resource, &how, nullptr) == CUDA_SUCCESS);
    CHECK(made != another);
    CUDA_RESOURCE_DESC told{};
    CUDA_TEXTURE_DESC told_how{};
    CHECK(world.api.cuTexObjectGetResourceDesc(&told, made) == CUDA_SUCCESS);
    CHECK(told.res.array.hArray == array);
    CHECK(world.api.cuTexObjectGetTextureDesc(&told_how, made) == CUDA_SUCCESS);
    CHECK(told_how.filterMode == how.filterMode);
    CHECK(told_how.flags == how.flags);
    CHECK(std::ranges::equal(told_how.addressMode, how.addressMode));
    CHECK(world.api.cuSurfObjectGetResourceDesc(&told, made) == CUDA_ERROR_INVALID_VALUE);
    CHECK(world.api.cuSurfObjectDestroy(made) == CUDA_ERROR_INVALID_VALUE);
    CUsurfObject surface = 0;
    REQUIRE(world.api.cuSurfObjectCreate(&surface, &resource) == CUDA_SUCCESS);
    CHECK(world.api.cuSurfObjectGetResourceDesc(&told, surface) == CUDA_SUCCESS);
    CHECK(told.res.array.hArray == array);
    resource.res.array.hArray = plain;
    CUsurfObject none = 0;
    CHECK(world.api.cuSurfObjectCreate(&none, &resource) == CUDA_ERROR_INVALID_VALUE);
    resource.res.array.hArray = nullptr;
    CHECK(world.api.cuTexObjectCreate(&none, &resource, &how, nullptr) == CUDA_ERROR_INVALID_HANDLE);
    resource.resType = CU_RESOURCE_TYPE_MIPMAPPED_ARRAY;
    CHECK(world.api.cuTexObjectCreate(&none, &resource, &how, nullptr) == CUDA_ERROR_INVALID_HANDLE);
    resource = linear(world.device.allocate(512), 512);
    CHECK(world.api.cuSurfObjectCreate(&none, &resource) == CUDA_ERROR_INVALID_VALUE);
    for (const CUtexObject each : {made, another}) {
        CHECK(world.api.cuTexObjectDestroy(each) == CUDA_SUCCESS);
        CHECK(world.api.cuTexObjectDestroy(each) == CUDA_ERROR_INVALID_VALUE);
    }
    CHECK(world.api.cuSurfObjectDestroy(surface) == CUDA_SUCCESS);
    CHECK(world.api.cuArrayDestroy(array) == CUDA_SUCCESS);
    CHECK(world.api.cuArrayDestroy(plain) == CUDA_SUCCESS);
}
