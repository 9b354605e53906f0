// Mipmapped arrays, resource views and seamless cubes through the driver's C ABI. Samples are compared with a reference
// written from the driver's and the programming guide's text. Other textures are tested from Python
// (tests/python/textures).
#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <random>
#include <string>

#include "world.hpp"

using client::World;

namespace {

using Numbers = std::vector<double>;

struct Shape {
    const char* geometry;
    unsigned coordinates;  ///< without the layer
    bool layered, cube;
    CUDA_ARRAY3D_DESCRIPTOR array;
};

CUDA_ARRAY3D_DESCRIPTOR array_of(std::size_t width, std::size_t height, std::size_t depth, unsigned flags = 0,
                                 CUarray_format format = CU_AD_FORMAT_FLOAT) {
    return {width, height, depth, format, 1, flags};
}

const Shape shapes[] = {
    {"1d", 1, false, false, array_of(21, 0, 0)},
    {"2d", 2, false, false, array_of(20, 9, 0)},
    {"3d", 3, false, false, array_of(9, 12, 5)},
    {"a1d", 1, true, false, array_of(16, 0, 3, CUDA_ARRAY3D_LAYERED)},
    {"a2d", 2, true, false, array_of(13, 16, 4, CUDA_ARRAY3D_LAYERED)},
    {"cube", 3, false, true, array_of(16, 16, 6, CUDA_ARRAY3D_CUBEMAP)},
    {"acube", 3, true, true, array_of(8, 8, 12, CUDA_ARRAY3D_CUBEMAP | CUDA_ARRAY3D_LAYERED)},
};

/// One level's texels: slices of rows.
struct Level {
    std::size_t width = 1, height = 1, slices = 1;
    std::vector<float> texels;
};

constexpr unsigned threads = 96,
                   words = 12;  // of input: the layer, 3 coordinates, a level, 2 x 3 derivatives, one unused

/// A mipmapped array of random numbers, and their values.
struct Pyramid {
    Pyramid(World& world, const Shape& shape, unsigned count, std::mt19937& random) : api(world.api) {
        REQUIRE(api.cuMipmappedArrayCreate(&array, &shape.array, count) == CUDA_SUCCESS);
        const bool deep = !shape.layered && !shape.cube;
        for (unsigned n = 0; n < count; ++n) {
            const auto half = [&](std::size_t extent) {
                return std::max<std::size_t>(
                    static_cast<std::size_t>(std::ldexp(extent, -static_cast<int>(n))), 1);
            };
            Level& level = levels.emplace_back();
            level.width = half(shape.array.Width);
            level.height = half(shape.array.Height);
            level.slices = deep ? half(shape.array.Depth) : std::max<std::size_t>(shape.array.Depth, 1);
            level.texels.resize(level.width * level.height * level.slices);
            for (float& each : level.texels) each = static_cast<float>(random() % 4096) / 16;
            CUDA_MEMCPY3D copy{};
            copy.srcMemoryType = CU_MEMORYTYPE_HOST;
            copy.srcHost = level.texels.data();
            copy.srcPitch = copy.WidthInBytes = level.width * sizeof(float);
            copy.srcHeight = copy.Height = level.height;
            copy.Depth = level.slices;
            copy.dstMemoryType = CU_MEMORYTYPE_ARRAY;
            REQUIRE(api.cuMipmappedArrayGetLevel(&copy.dstArray, array, n) == CUDA_SUCCESS);
            REQUIRE(api.cuMemcpy3D(&copy) == CUDA_SUCCESS);
        }
    }
    ~Pyramid() { CHECK(api.cuMipmappedArrayDestroy(array) == CUDA_SUCCESS); }
    Pyramid(const Pyramid&) = delete;
    Pyramid& operator=(const Pyramid&) = delete;

    CUDA_RESOURCE_DESC resource() const {
        CUDA_RESOURCE_DESC made{};
        made.resType = CU_RESOURCE_TYPE_MIPMAPPED_ARRAY;
        made.res.mipmap.hMipmappedArray = array;
        return made;
    }

    client::Library& api;
    CUmipmappedArray array = nullptr;
    std::vector<Level> levels;
};

// --- the reference ---

// An H100 filters like this (tests/gpu/results): a coordinate keeps 21 bits of fraction, is multiplied by the extent
// and rounded to 256ths of a texel; weights are 256ths too, and rounded wherever they are divided.

/// Converts a coordinate to texels.
double in_texels(double coordinate, std::size_t extent) {
    return std::floor(std::ldexp(coordinate, 21)) * static_cast<double>(extent) / (1 << 21);
}

/// The lower of the two texels around a coordinate, and the distance from its centre in 256ths of a texel.
struct Between {
    long low = 0;
    double share = 0;
};

Between between(double coordinate, std::size_t extent) {
    const double ticks = std::floor(in_texels(coordinate, extent) * 256 + 0.5) - 128;
    const double low = std::floor(ticks / 256);
    return {std::lround(low), ticks - 256 * low};
}

/// The weighted mean of eight texels, indexed by bits (x + 2 y + 4 z).
template <class Texel>
double mix_of(double x, double y, double z, const Texel& texel) {
    const auto divided = [](double whole, double share) { return std::floor(whole * share / 256 + 0.5); };
    double sum = 0;
    for (const unsigned slice : {0u, 4u}) {
        const double whole = slice ? z : 256 - z;
        const double right = divided(whole, x), left = whole - right;
        const double corner = divided(right, y), opposite = divided(left, 256 - y);
        const double weights[] = {opposite, right - corner, left - opposite, corner};
        for (unsigned n = 0; n < 4; ++n) {
            if (weights[n] > 0) sum += weights[n] / 256 * texel(slice + n);
        }
    }
    return sum;
}

struct Place {
    std::size_t slice = 0;
    std::array<double, 3> at{};
    unsigned dimensions = 1;
};

double sampled(const Level& level, const Place& place, const CUDA_TEXTURE_DESC& how) {
    const std::array<std::size_t, 3> extents{level.width, level.height, level.slices};
    const auto texel = [&](const std::array<long, 3>& at) {
        std::array<std::size_t, 3> index{0, 0, place.slice};
        for (unsigned d = 0; d < place.dimensions; ++d) {
            const auto n = static_cast<long>(extents[d]);
            index[d] = static_cast<std::size_t>(how.addressMode[d] == CU_TR_ADDRESS_MODE_WRAP
                                                    ? (at[d] % n + n) % n
                                                    : std::clamp(at[d], 0L, n - 1));
        }
        return double{level.texels[(index[2] * level.height + index[1]) * level.width + index[0]]};
    };
    std::array<long, 3> low{};
    std::array<double, 3> share{};
    for (unsigned d = 0; d < place.dimensions; ++d) {
        low[d] = std::lround(std::floor(in_texels(place.at[d], extents[d])));
        if (how.filterMode != CU_TR_FILTER_MODE_LINEAR) continue;
        const Between found = between(place.at[d], extents[d]);
        low[d] = found.low;
        const bool one = how.addressMode[d] == CU_TR_ADDRESS_MODE_CLAMP &&
                         (found.low < 0 || found.low + 1 >= static_cast<long>(extents[d]));
        share[d] = one ? 0 : found.share;
    }
    return mix_of(share[0], share[1], share[2], [&](unsigned n) {
        return texel({low[0] + (n & 1), low[1] + (n >> 1 & 1), low[2] + (n >> 2)});
    });
}

/// The face that a direction meets and the coordinates on it, by the table in the programming guide.
Place on_cube(const double* d) {
    const double x = d[0], y = d[1], z = d[2];
    const double ax = std::fabs(x), ay = std::fabs(y), az = std::fabs(z);
    const auto at = [](std::size_t face, double m, double s, double t) {
        return Place{face, {(s / m + 1) / 2, (t / m + 1) / 2, 0}, 2};
    };
    if (ax >= ay && ax >= az) return x >= 0 ? at(0, ax, -z, -y) : at(1, ax, z, -y);
    if (ay >= az) return y >= 0 ? at(2, ay, x, z) : at(3, ay, x, -z);
    return z >= 0 ? at(4, az, x, -y) : at(5, az, -x, -y);
}

Place place_of(const Shape& shape, const Level& first, const float* given) {
    Place place{0, {given[1], given[2], given[3]}, shape.coordinates};
    unsigned layer = 0;  // a negative number selects the last layer
    std::memcpy(&layer, given, sizeof layer);
    const std::size_t faces = shape.cube ? 6 : 1;
    if (shape.cube) place = on_cube(place.at.data());
    if (shape.layered)
        place.slice += faces * static_cast<std::size_t>(
                                   std::min(layer, static_cast<unsigned>(first.slices / faces) - 1));
    return place;
}

/// log2 of the longer of the two steps between samples, in texels of the first level.
double level_of_derivatives(const Shape& shape, const Level& first, const float* given) {
    double longest = 0;
    for (const float* step : {given + 5, given + 8}) {
        std::array<double, 3> moved{step[0], step[1], step[2]};
        if (shape.cube) {  // by the difference of two close directions
            constexpr double little = 1e-6;
            double before[3], behind[3];
            for (unsigned d = 0; d < 3; ++d) {
                before[d] = given[1 + d] - little * step[d];
                behind[d] = given[1 + d] + little * step[d];
            }
            const Place from = on_cube(before), to = on_cube(behind);
            for (unsigned d = 0; d < 3; ++d) moved[d] = (to.at[d] - from.at[d]) / (2 * little);
        }
        const double extents[] = {static_cast<double>(first.width), static_cast<double>(first.height),
                                  static_cast<double>(first.slices)};
        double length = 0;
        for (unsigned d = 0; d < (shape.cube ? 2 : shape.coordinates); ++d)
            length = std::hypot(length, moved[d] * extents[d]);
        longest = std::max(longest, length);
    }
    return std::log2(longest);
}

// --- kernels ---

std::string numbered(const char* prefix, unsigned first, unsigned count) {
    std::string made = "{";
    for (unsigned i = first; i < first + count; ++i)
        made += (i > first ? ", " : "") + (prefix + std::to_string(i));
    return made + "}";
}

/// Each thread samples once, by an instruction with this modifier, and stores the first component.
std::string kernel_of(const Shape& shape, const std::string& modifier) {
    std::string text =
        ".version 8.0\n.target sm_80\n.address_size 64\n"
        ".visible .entry k(.param .u64 ph, .param .u64 pin, .param .u64 pout) {\n.reg .b64 %h, %in, %out, %at;\n"
        ".reg .b32 %t, %l;\n.reg .f32 %x<12>, %o<4>;\nld.param.u64 %h, [ph];\nld.param.u64 %in, [pin];\n"
        "ld.param.u64 %out, [pout];\nmov.u32 %t, %tid.x;\nmul.wide.u32 %at, %t, 48;\nadd.u64 %in, %in, %at;\n"
        "mul.wide.u32 %at, %t, 4;\nadd.u64 %out, %out, %at;\nld.global.b32 %l, [%in];\n";
    for (unsigned i = 1; i < words; ++i)
        text += "ld.global.f32 %x" + std::to_string(i) + ", [%in+" + std::to_string(4 * i) + "];\n";
    std::string coordinates = numbered("%x", 1, shape.coordinates);
    if (shape.layered) coordinates = "{%l, " + coordinates.substr(1);
    text += "tex" + modifier + "." + shape.geometry + ".v4.f32.f32 {%o0, %o1, %o2, %o3}, [%h, " +
            coordinates + "]";
    if (modifier == ".level") text += ", %x4";
    if (modifier == ".grad")
        text += ", " + numbered("%x", 5, shape.coordinates) + ", " + numbered("%x", 8, shape.coordinates);
    return text + ";\nst.global.f32 [%out], %o0;\nret;\n}\n";
}

/// A kernel that takes a texture, its threads' input words and an output array with one number each.
class Program {
  public:
    Program(World& world, const std::string& text) : world_(world) {
        REQUIRE(world.api.cuLibraryLoadData(&library_, text.c_str(), nullptr, nullptr, 0, nullptr, nullptr,
                                            0) == CUDA_SUCCESS);
        REQUIRE(world.api.cuLibraryGetKernel(&kernel_, library_, "k") == CUDA_SUCCESS);
    }
    ~Program() { CHECK(world_.api.cuLibraryUnload(library_) == CUDA_SUCCESS); }
    Program(const Program&) = delete;
    Program& operator=(const Program&) = delete;

    std::vector<float> run(CUtexObject texture, const std::vector<float>& given) {
        std::vector<float> made(threads);
        CUdeviceptr in = world_.device.allocate(given.size() * sizeof(float)),
                    out = world_.device.allocate(made.size() * sizeof(float));
        REQUIRE(world_.api.cuMemcpyHtoD(in, given.data(), given.size() * sizeof(float)) == CUDA_SUCCESS);
        void* parameters[] = {&texture, &in, &out};
        CUfunction function = nullptr;
        REQUIRE(world_.api.cuKernelGetFunction(&function, kernel_) == CUDA_SUCCESS);
        REQUIRE(world_.api.cuLaunchKernel(function, 1, 1, 1, threads, 1, 1, 0, nullptr, parameters,
                                          nullptr) == CUDA_SUCCESS);
        INFO(world_.api.report());
        REQUIRE(world_.api.cuMemcpyDtoH(made.data(), out, made.size() * sizeof(float)) == CUDA_SUCCESS);
        CHECK(world_.api.cuMemFree(in) == CUDA_SUCCESS);
        CHECK(world_.api.cuMemFree(out) == CUDA_SUCCESS);
        return made;
    }

  private:
    World& world_;
    CUlibrary library_ = nullptr;
    CUkernel kernel_ = nullptr;
};

std::vector<float> random_words(std::mt19937& random) {
    std::uniform_real_distribution<float> somewhere(-1.25F, 2.25F), level(-2, 7), power(-6, 1);
    std::vector<float> made(threads * words);
    for (unsigned t = 0; t < threads; ++t) {
        float* own = &made[t * words];
        const int layer = static_cast<int>(random() % 6) - 1;
        std::memcpy(own, &layer, sizeof layer);
        for (unsigned i = 1; i < 4; ++i) own[i] = somewhere(random);
        own[4] = level(random);
        const float scale = std::exp2(power(random));
        for (unsigned i = 5; i < words; ++i)
            own[i] = (random() % 2 ? -1.0F : 1.0F) * scale * somewhere(random);
    }
    return made;
}

CUDA_TEXTURE_DESC random_sampler(std::mt19937& random, const Shape& shape) {
    CUDA_TEXTURE_DESC how{};
    how.flags = CU_TRSF_NORMALIZED_COORDINATES;
    how.filterMode = random() % 2 ? CU_TR_FILTER_MODE_LINEAR : CU_TR_FILTER_MODE_POINT;
    how.mipmapFilterMode = random() % 2 ? CU_TR_FILTER_MODE_LINEAR : CU_TR_FILTER_MODE_POINT;
    for (CUaddress_mode& mode : how.addressMode)
        mode = random() % 2 && !shape.cube ? CU_TR_ADDRESS_MODE_WRAP : CU_TR_ADDRESS_MODE_CLAMP;
    how.mipmapLevelBias = static_cast<float>(random() % 100) / 50 - 1;
    how.minMipmapLevelClamp = random() % 2 ? 0 : static_cast<float>(random() % 100) / 71;
    how.maxMipmapLevelClamp =
        random() % 2 ? 50 : how.minMipmapLevelClamp + static_cast<float>(random() % 100) / 41;
    return how;
}

/// Compares the results of an instruction with the levels' texels, at the level that each thread requests.
template <class Asked>
void compare(const Shape& shape, const std::vector<Level>& levels, const CUDA_TEXTURE_DESC& how,
             const std::vector<float>& given, const std::vector<float>& got, const Asked& asked) {
    unsigned compared = 0;
    for (unsigned t = 0; t < threads; ++t) {
        const float* own = &given[t * words];
        const double last = static_cast<double>(levels.size() - 1);
        double level =
            std::clamp(asked(own), double{how.minMipmapLevelClamp}, double{how.maxMipmapLevelClamp});
        level = std::clamp(level, 0.0, last);
        const double steps = how.mipmapFilterMode == CU_TR_FILTER_MODE_LINEAR ? 256 : 1;
        const double place_in_step = level * steps - std::floor(level * steps);
        if (std::fabs(place_in_step - 0.5) < 1e-4) continue;  // too close to a rounding tie
        level = std::round(level * steps) / steps;
        const double low = std::floor(level), weight = level - low;
        const Place place = place_of(shape, levels[0], own);
        double expected = sampled(levels[static_cast<std::size_t>(low)], place, how);
        if (weight > 0)
            expected = (1 - weight) * expected +
                       weight * sampled(levels[static_cast<std::size_t>(low) + 1], place, how);
        CAPTURE(shape.geometry);
        CAPTURE(t);
        CAPTURE(level);
        CHECK(got[t] == doctest::Approx(expected).epsilon(1e-6));
        ++compared;
    }
    CHECK(compared > threads / 2);
}

CUtexObject texture_over(World& world, const CUDA_RESOURCE_DESC& resource, const CUDA_TEXTURE_DESC& how,
                         const CUDA_RESOURCE_VIEW_DESC* view = nullptr) {
    CUtexObject made = 0;
    REQUIRE(world.api.cuTexObjectCreate(&made, &resource, &how, view) == CUDA_SUCCESS);
    return made;
}

}  // namespace

TEST_CASE("levels are arrays of half the extents of the one before, down to a texel") {
    World world("lazy");
    const auto count = [&](const CUDA_ARRAY3D_DESCRIPTOR& asked, unsigned wanted) {
        CUmipmappedArray array = nullptr;
        REQUIRE(world.api.cuMipmappedArrayCreate(&array, &asked, wanted) == CUDA_SUCCESS);
        unsigned found = 0;
        CUarray level = nullptr;
        while (world.api.cuMipmappedArrayGetLevel(&level, array, found) == CUDA_SUCCESS) ++found;
        CHECK(world.api.cuMipmappedArrayGetLevel(&level, array, found) == CUDA_ERROR_INVALID_VALUE);
        CHECK(world.api.cuMipmappedArrayDestroy(array) == CUDA_SUCCESS);
        return found;
    };
    // "Clamped to the range [1, 1 + floor(log2(max(width, height, depth)))]"
    CHECK(count(array_of(21, 0, 0), 99) == 5);
    CHECK(count(array_of(21, 40, 0), 99) == 6);
    CHECK(count(array_of(5, 4, 32), 99) == 6);
    CHECK(count(array_of(5, 4, 32, CUDA_ARRAY3D_LAYERED), 99) == 3);
    CHECK(count(array_of(16, 16, 6, CUDA_ARRAY3D_CUBEMAP), 3) == 3);
    CHECK(count(array_of(16, 16, 0), 0) == 1);

    const CUDA_ARRAY3D_DESCRIPTOR asked = array_of(20, 9, 5, 0, CU_AD_FORMAT_HALF);
    CUmipmappedArray array = nullptr;
    REQUIRE(world.api.cuMipmappedArrayCreate(&array, &asked, 4) == CUDA_SUCCESS);
    CUarray level = nullptr, again = nullptr;
    REQUIRE(world.api.cuMipmappedArrayGetLevel(&level, array, 3) == CUDA_SUCCESS);
    CHECK(world.api.cuMipmappedArrayGetLevel(&again, array, 3) == CUDA_SUCCESS);
    CHECK(level == again);
    CUDA_ARRAY3D_DESCRIPTOR told{};
    CHECK(world.api.cuArray3DGetDescriptor(&told, level) == CUDA_SUCCESS);
    CHECK(told.Width == 2);
    CHECK(told.Height == 1);
    CHECK(told.Depth == 1);
    CHECK(told.Format == CU_AD_FORMAT_HALF);
    CHECK(world.api.cuArrayDestroy(level) == CUDA_ERROR_INVALID_HANDLE);  // it is destroyed with the others
    CHECK(world.api.cuMipmappedArrayDestroy(array) == CUDA_SUCCESS);
    CHECK(world.api.cuMipmappedArrayDestroy(array) == CUDA_ERROR_INVALID_HANDLE);
    CHECK(world.api.cuArray3DGetDescriptor(&told, level) == CUDA_ERROR_INVALID_HANDLE);
    CHECK(world.api.cuMipmappedArrayGetLevel(&level, array, 0) == CUDA_ERROR_INVALID_HANDLE);
}

TEST_CASE("mipmapped arrays have the extents and flags that their kind allows") {
    World world("lazy");
    const auto create = [&](const CUDA_ARRAY3D_DESCRIPTOR& asked) {
        CUmipmappedArray array = nullptr;
        const CUresult code = world.api.cuMipmappedArrayCreate(&array, &asked, 2);
        if (code == CUDA_SUCCESS) CHECK(world.api.cuMipmappedArrayDestroy(array) == CUDA_SUCCESS);
        return code;
    };
    int width = 0;
    CHECK(world.api.cuDeviceGetAttribute(&width, CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE1D_MIPMAPPED_WIDTH, 0) ==
          CUDA_SUCCESS);
    CHECK(create(array_of(static_cast<std::size_t>(width), 0, 0)) == CUDA_SUCCESS);
    CHECK(create(array_of(static_cast<std::size_t>(width) + 1, 0, 0)) == CUDA_ERROR_INVALID_VALUE);
    CHECK(world.api.cuDeviceGetAttribute(&width, CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_MIPMAPPED_WIDTH, 0) ==
          CUDA_SUCCESS);
    CHECK(create(array_of(static_cast<std::size_t>(width), 2, 0)) == CUDA_SUCCESS);
    CHECK(create(array_of(static_cast<std::size_t>(width) + 1, 2, 0)) == CUDA_ERROR_INVALID_VALUE);
    CHECK(create(array_of(0, 2, 0)) == CUDA_ERROR_INVALID_VALUE);
    CHECK(create(array_of(8, 9, 6, CUDA_ARRAY3D_CUBEMAP)) == CUDA_ERROR_INVALID_VALUE);
    CHECK(create(array_of(8, 8, 0, CUDA_ARRAY3D_SPARSE)) == CUDA_ERROR_NOT_SUPPORTED);
    CHECK(world.api.cuMipmappedArrayCreate(nullptr, nullptr, 1) == CUDA_ERROR_INVALID_VALUE);
}

TEST_CASE("a level that an instruction gives is biased, clamped, and rounded or mixed") {
    World world("lazy");
    std::mt19937 random(20261124);
    for (const Shape& shape : shapes) {
        const Pyramid pyramid(world, shape, 4, random);
        Program program(world, kernel_of(shape, ".level"));
        for (int round = 0; round < 12; ++round) {
            const CUDA_TEXTURE_DESC how = random_sampler(random, shape);
            const CUtexObject texture = texture_over(world, pyramid.resource(), how);
            const std::vector<float> given = random_words(random);
            compare(shape, pyramid.levels, how, given, program.run(texture, given),
                    [&](const float* own) { return double{own[4]} + double{how.mipmapLevelBias}; });
            CHECK(world.api.cuTexObjectDestroy(texture) == CUDA_SUCCESS);
        }
    }
}

TEST_CASE("derivatives choose the level at which samples lie a texel apart") {
    World world("lazy");
    std::mt19937 random(20261125);
    for (const Shape& shape : shapes) {
        const Pyramid pyramid(world, shape, 4, random);
        Program program(world, kernel_of(shape, ".grad"));
        for (int round = 0; round < 12; ++round) {
            const CUDA_TEXTURE_DESC how = random_sampler(random, shape);
            const CUtexObject texture = texture_over(world, pyramid.resource(), how);
            const std::vector<float> given = random_words(random);
            compare(shape, pyramid.levels, how, given, program.run(texture, given), [&](const float* own) {
                return level_of_derivatives(shape, pyramid.levels[0], own) + double{how.mipmapLevelBias};
            });
            CHECK(world.api.cuTexObjectDestroy(texture) == CUDA_SUCCESS);
        }
    }
}

TEST_CASE("without a level the first is read that the texture allows") {
    World world("lazy");
    std::mt19937 random(20261126);
    for (const Shape& shape : shapes) {
        const Pyramid pyramid(world, shape, 3, random);
        for (const char* modifier : {"", ".base"}) {
            Program program(world, kernel_of(shape, modifier));
            for (int round = 0; round < 4; ++round) {
                const CUDA_TEXTURE_DESC how = random_sampler(random, shape);
                const CUtexObject texture = texture_over(world, pyramid.resource(), how);
                const std::vector<float> given = random_words(random);
                compare(shape, pyramid.levels, how, given, program.run(texture, given),
                        [](const float*) { return 0.0; });
                CHECK(world.api.cuTexObjectDestroy(texture) == CUDA_SUCCESS);
            }
        }
    }
}

TEST_CASE("combinations of options that no mipmapped texture has are refused") {
    World world("lazy");
    std::mt19937 random(1);
    const Pyramid pyramid(world, shapes[1], 3, random);
    const CUDA_RESOURCE_DESC resource = pyramid.resource();
    const auto create = [&](const CUDA_RESOURCE_DESC& from, const CUDA_TEXTURE_DESC& how) {
        CUtexObject made = 0;
        const CUresult code = world.api.cuTexObjectCreate(&made, &from, &how, nullptr);
        if (code == CUDA_SUCCESS) CHECK(world.api.cuTexObjectDestroy(made) == CUDA_SUCCESS);
        return code;
    };
    CUDA_TEXTURE_DESC how{};
    CHECK(create(resource, how) ==
          CUDA_ERROR_INVALID_VALUE);  // "for CUDA mipmapped arrays, this flag has to be set"
    how.flags = CU_TRSF_NORMALIZED_COORDINATES;
    how.mipmapFilterMode = CU_TR_FILTER_MODE_LINEAR;
    CHECK(create(resource, how) == CUDA_SUCCESS);
    how.maxAnisotropy = 4;
    CHECK(create(resource, how) == CUDA_SUCCESS);  // nothing is filtered
    how.filterMode = CU_TR_FILTER_MODE_LINEAR;
    CHECK(create(resource, how) == CUDA_ERROR_NOT_SUPPORTED);
    how.maxAnisotropy = 1;
    how.mipmapLevelBias = std::nanf("");
    CHECK(create(resource, how) == CUDA_ERROR_INVALID_VALUE);
    const CUDA_ARRAY3D_DESCRIPTOR integers = array_of(8, 8, 0, 0, CU_AD_FORMAT_SIGNED_INT32);
    CUDA_RESOURCE_DESC other = resource;
    REQUIRE(world.api.cuMipmappedArrayCreate(&other.res.mipmap.hMipmappedArray, &integers, 3) ==
            CUDA_SUCCESS);
    CUDA_TEXTURE_DESC mixing{};
    mixing.flags = CU_TRSF_NORMALIZED_COORDINATES | CU_TRSF_READ_AS_INTEGER;
    CHECK(create(other, mixing) == CUDA_SUCCESS);
    mixing.mipmapFilterMode = CU_TR_FILTER_MODE_LINEAR;
    CHECK(create(other, mixing) == CUDA_ERROR_INVALID_VALUE);
    CHECK(world.api.cuMipmappedArrayDestroy(other.res.mipmap.hMipmappedArray) == CUDA_SUCCESS);
    CHECK(create(other, mixing) == CUDA_ERROR_INVALID_HANDLE);
}

TEST_CASE("a texture over a mipmapped array that was destroyed is a fault") {
    client::Library library;
    World world(library);
    std::mt19937 random(2);
    CUDA_TEXTURE_DESC how{};
    how.flags = CU_TRSF_NORMALIZED_COORDINATES;
    CUtexObject texture = 0;
    {
        const Pyramid pyramid(world, shapes[1], 3, random);
        texture = texture_over(world, pyramid.resource(), how);
    }
    CUlibrary loaded = nullptr;
    CUkernel kernel = nullptr;
    CUfunction function = nullptr;
    const std::string text = kernel_of(shapes[1], ".level");
    REQUIRE(library.cuLibraryLoadData(&loaded, text.c_str(), nullptr, nullptr, 0, nullptr, nullptr, 0) ==
            CUDA_SUCCESS);
    REQUIRE(library.cuLibraryGetKernel(&kernel, loaded, "k") == CUDA_SUCCESS);
    REQUIRE(library.cuKernelGetFunction(&function, kernel) == CUDA_SUCCESS);
    CUdeviceptr memory = world.device.allocate(threads * words * sizeof(float));
    REQUIRE(library.cuMemsetD8(memory, 0, threads * words * sizeof(float)) == CUDA_SUCCESS);
    void* parameters[] = {&texture, &memory, &memory};
    REQUIRE(library.cuLaunchKernel(function, 1, 1, 1, threads, 1, 1, 0, nullptr, parameters, nullptr) ==
            CUDA_SUCCESS);
    CHECK(library.cuCtxSynchronize() == CUDA_ERROR_ILLEGAL_ADDRESS);
    CHECK(library.report().find("texture") != std::string::npos);
}

TEST_CASE("a view shows some levels and layers, and takes texels for others of their size") {
    World world("lazy");
    std::mt19937 random(20261127);
    const Shape& shape = shapes[4];
    const Pyramid pyramid(world, shape, 4, random);
    CUDA_RESOURCE_VIEW_DESC view{};
    view.format = CU_RES_VIEW_FORMAT_FLOAT_1X32;
    view.width = shape.array.Width;
    view.height = shape.array.Height;
    view.depth = shape.array.Depth;
    view.firstMipmapLevel = 1;
    view.lastMipmapLevel = 2;
    view.firstLayer = 1;
    view.lastLayer = 2;
    std::vector<Level> shown;
    for (std::size_t n = 1; n <= 2; ++n) {
        const Level& whole = pyramid.levels[n];
        const std::size_t layer = whole.width * whole.height;
        const auto from = whole.texels.begin() + static_cast<std::ptrdiff_t>(layer);
        shown.push_back(
            {whole.width, whole.height, 2, {from, from + static_cast<std::ptrdiff_t>(2 * layer)}});
    }
    Program program(world, kernel_of(shape, ".level"));
    for (int round = 0; round < 12; ++round) {
        const CUDA_TEXTURE_DESC how = random_sampler(random, shape);
        const CUtexObject texture = texture_over(world, pyramid.resource(), how, &view);
        const std::vector<float> given = random_words(random);
        compare(shape, shown, how, given, program.run(texture, given),
                [&](const float* own) { return double{own[4]} + double{how.mipmapLevelBias}; });
        CUDA_RESOURCE_VIEW_DESC told{};
        CHECK(world.api.cuTexObjectGetResourceViewDesc(&told, texture) == CUDA_SUCCESS);
        CHECK(told.lastLayer == 2);
        CHECK(world.api.cuTexObjectDestroy(texture) == CUDA_SUCCESS);
    }

    // The same bits read as pairs of 16-bit integers: the first is the lower half of a float.
    const Level& first = pyramid.levels[0];
    CUDA_TEXTURE_DESC how{};
    how.flags = CU_TRSF_NORMALIZED_COORDINATES;
    view.format = CU_RES_VIEW_FORMAT_UINT_2X16;
    view.firstMipmapLevel = view.lastMipmapLevel = 0;
    view.firstLayer = 0;
    view.lastLayer = 3;
    const CUtexObject texture = texture_over(world, pyramid.resource(), how, &view);
    const std::vector<float> given = random_words(random);
    const std::vector<float> got = program.run(texture, given);
    for (unsigned t = 0; t < threads; ++t) {
        const auto number =
            static_cast<float>(sampled(first, place_of(shape, first, &given[t * words]), how));
        std::uint16_t halves[2];
        std::memcpy(halves, &number, sizeof number);
        CHECK(got[t] == static_cast<float>(halves[0]) / 65535.0F);  // normalized to [0, 1]
    }
    CHECK(world.api.cuTexObjectDestroy(texture) == CUDA_SUCCESS);
}

TEST_CASE("views of what is not there are refused") {
    World world("lazy");
    std::mt19937 random(3);
    const Pyramid pyramid(world, shapes[4], 3, random);
    CUDA_TEXTURE_DESC how{};
    how.flags = CU_TRSF_NORMALIZED_COORDINATES;
    const auto create = [&](const CUDA_RESOURCE_DESC& from, const auto& change) {
        CUDA_RESOURCE_VIEW_DESC view{};
        view.width = shapes[4].array.Width;
        view.height = shapes[4].array.Height;
        view.depth = shapes[4].array.Depth;
        change(view);
        CUtexObject made = 0;
        const CUresult code = world.api.cuTexObjectCreate(&made, &from, &how, &view);
        if (code == CUDA_SUCCESS) CHECK(world.api.cuTexObjectDestroy(made) == CUDA_SUCCESS);
        return code;
    };
    using View = CUDA_RESOURCE_VIEW_DESC;
    const CUDA_RESOURCE_DESC resource = pyramid.resource();
    CHECK(create(resource, [](View&) {}) == CUDA_SUCCESS);
    CHECK(create(resource, [](View& view) { view.width = 26; }) == CUDA_ERROR_INVALID_VALUE);
    CHECK(create(resource, [](View& view) { view.depth = 3; }) == CUDA_ERROR_INVALID_VALUE);
    CHECK(create(resource, [](View& view) { view.lastMipmapLevel = 3; }) == CUDA_ERROR_INVALID_VALUE);
    CHECK(create(resource, [](View& view) { view.firstMipmapLevel = 1; }) == CUDA_ERROR_INVALID_VALUE);
    CHECK(create(resource, [](View& view) { view.lastLayer = 4; }) == CUDA_ERROR_INVALID_VALUE);
    CHECK(create(resource, [](View& view) { view.format = CU_RES_VIEW_FORMAT_FLOAT_2X32; }) ==
          CUDA_ERROR_INVALID_VALUE);
    CHECK(create(resource, [](View& view) { view.format = CU_RES_VIEW_FORMAT_UNSIGNED_BC1; }) ==
          CUDA_ERROR_NOT_SUPPORTED);
    CUDA_RESOURCE_DESC one{};  // an array without levels
    REQUIRE(world.api.cuMipmappedArrayGetLevel(&one.res.array.hArray, pyramid.array, 0) == CUDA_SUCCESS);
    CHECK(create(one, [](View& view) { view.lastLayer = 2; }) == CUDA_SUCCESS);
    CHECK(create(one, [](View& view) { view.lastMipmapLevel = 1; }) == CUDA_ERROR_INVALID_VALUE);
    CUtexObject plain = texture_over(world, one, how);
    CUDA_RESOURCE_VIEW_DESC told{};
    CHECK(world.api.cuTexObjectGetResourceViewDesc(&told, plain) == CUDA_ERROR_INVALID_VALUE);
    CHECK(world.api.cuTexObjectDestroy(plain) == CUDA_SUCCESS);
}

namespace {

/// The position of a texel's centre on the cube from -1 to 1, by the guide's table inverted. Texels beyond an edge lie
/// in the plane of the face.
std::array<double, 3> middle_of(std::size_t face, long i, long j, std::size_t width) {
    const double s = (2 * static_cast<double>(i) + 1) / static_cast<double>(width) - 1;
    const double t = (2 * static_cast<double>(j) + 1) / static_cast<double>(width) - 1;
    const std::array<double, 3> faces[] = {{1, -t, -s}, {-1, -t, s}, {s, 1, t},
                                           {s, -1, -t}, {s, -t, 1},  {-s, -t, -1}};
    return faces[face];
}

double sampled_seamlessly(const Level& level, const Place& place) {
    const auto width = static_cast<double>(level.width);
    const std::size_t face = place.slice % 6, first_slice = place.slice - face;
    // The texel that the direction of a texel's centre meets: beyond an edge, the one that touches it there.
    const auto met = [&](long i, long j) {
        const Place at = on_cube(middle_of(face, i, j, level.width).data());
        const auto column = static_cast<std::size_t>(at.at[0] * width),
                   row = static_cast<std::size_t>(at.at[1] * width);
        return double{level.texels[((first_slice + at.slice) * level.height + row) * level.width + column]};
    };
    const auto texel = [&](long i, long j) {
        const long last = static_cast<long>(level.width) - 1;
        const long x = std::clamp(i, 0L, last), y = std::clamp(j, 0L, last);
        return i == x || j == y ? met(i, j) : (met(x, y) + met(i, y) + met(x, j)) / 3;
    };
    const Between x = between(place.at[0], level.width), y = between(place.at[1], level.width);
    return mix_of(x.share, y.share, 0,
                  [&](unsigned n) { return texel(x.low + (n & 1), y.low + (n >> 1 & 1)); });
}

}  // namespace

TEST_CASE("a seamless cube is filtered across the edges of its faces") {
    World world("lazy");
    std::mt19937 random(20261128);
    for (const Shape& shape : {shapes[5], shapes[6]}) {
        const Pyramid pyramid(world, shape, 3, random);
        Program program(world, kernel_of(shape, ".level"));
        CUDA_TEXTURE_DESC how{};
        how.flags = CU_TRSF_NORMALIZED_COORDINATES | CU_TRSF_SEAMLESS_CUBEMAP;
        how.filterMode = CU_TR_FILTER_MODE_LINEAR;
        how.maxMipmapLevelClamp = 2;
        std::ranges::fill(how.addressMode, CU_TR_ADDRESS_MODE_BORDER);  // border mode, which is ignored here
        const CUtexObject texture = texture_over(world, pyramid.resource(), how);
        unsigned across = 0;
        for (int round = 0; round < 20; ++round) {
            std::vector<float> given = random_words(random);
            for (unsigned t = 0; t < threads; ++t) {
                given[t * words + 4] = static_cast<float>(t % 3);
                // Some directions are near an edge, some near a corner.
                const float near =
                    std::fabs(given[t * words + 1]) * (1 + static_cast<float>(random() % 100) / 1000);
                if (t % 4 > 0) given[t * words + 2] = std::copysign(near, given[t * words + 2]);
                if (t % 4 > 2) given[t * words + 3] = std::copysign(near, given[t * words + 3]);
            }
            const std::vector<float> got = program.run(texture, given);
            for (unsigned t = 0; t < threads; ++t) {
                const Level& level = pyramid.levels[t % 3];
                const Place place = place_of(shape, level, &given[t * words]);
                CAPTURE(shape.geometry);
                CAPTURE(t);
                CHECK(got[t] == doctest::Approx(sampled_seamlessly(level, place)).epsilon(1e-6));
                for (unsigned d = 0; d < 2; ++d)
                    across += std::fabs(place.at[d] - 0.5) > 0.5 - 0.5 / static_cast<double>(level.width);
            }
        }
        CHECK(across > 500);
        CHECK(world.api.cuTexObjectDestroy(texture) == CUDA_SUCCESS);
    }
    // "This flag can only be specified if the underlying resource [...] was created with the flag CUDA_ARRAY3D_CUBEMAP".
    const Pyramid flat(world, shapes[1], 1, random);
    const CUDA_RESOURCE_DESC resource = flat.resource();
    CUDA_TEXTURE_DESC how{};
    how.flags = CU_TRSF_NORMALIZED_COORDINATES | CU_TRSF_SEAMLESS_CUBEMAP;
    CUtexObject none = 0;
    CHECK(world.api.cuTexObjectCreate(&none, &resource, &how, nullptr) == CUDA_ERROR_INVALID_VALUE);
}
