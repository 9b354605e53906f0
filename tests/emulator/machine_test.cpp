// Kernels that NVRTC wrote, run on random and special values and compared with the same arithmetic in C++.
#include <algorithm>
#include <cfenv>
#include <cmath>
#include <cstdint>
#include <limits>
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

constexpr int n = 1000;

// Random bits, and the values where things go wrong.
template <class T>
std::vector<T> values(unsigned seed) {
    std::mt19937_64 random(seed);
    std::vector<T> made(n);
    using limits = std::numeric_limits<T>;
    const T special[] = {T(0), T(1), limits::max(), limits::lowest(), limits::min(), T(100), T(7), T(2)};
    for (int i = 0; i < n; ++i) {
        if constexpr (std::is_floating_point_v<T>) {
            const double magnitude =
                std::ldexp(double(random() % 2000) / 1000.0 - 1.0, int(random() % 40) - 20);
            made[i] = static_cast<T>(magnitude);
        } else {
            made[i] = static_cast<T>(random() >> (random() % 64));
        }
        if (random() % 8 == 0) made[i] = special[random() % 8];
    }
    return made;
}

template <class T>
bool same(T a, T b) {
    if constexpr (std::is_floating_point_v<T>) {
        if (std::isnan(a) || std::isnan(b)) return std::isnan(a) && std::isnan(b);
    }
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

template <class T>
void check_arithmetic(Device& device, const std::string& name) {
    std::vector<T> a = values<T>(1), b = values<T>(2), out(6 * n), expected(6 * n);
    for (int i = 0; i < n; ++i) {
        if (!std::is_floating_point_v<T>) {
            if (b[i] == T(0)) b[i] = 3;
            if (std::is_signed_v<T> && b[i] == T(-1)) b[i] = 5;  // lowest / -1 is undefined in C++
        }
        const T x = a[i], y = b[i];
        T* o = expected.data() + 6 * i;
        if constexpr (std::is_integral_v<T>) {
            using U = std::make_unsigned_t<T>;
            using W = std::conditional_t<sizeof(T) == 8, std::uint64_t, std::uint32_t>;
            o[0] = T(W(U(x)) + W(U(y))), o[1] = T(W(U(x)) - W(U(y))), o[2] = T(W(x) * W(y)),
            o[5] = T(W(0) - W(U(x)));
        } else {
            o[0] = x + y, o[1] = x - y, o[2] = x * y, o[5] = -x;
        }
        o[3] = T(x / y), o[4] = x < y ? x : y;
    }
    const auto fault = device.launch("arithmetic_" + name, {4}, {96}, device.array(a), device.array(b),
                                     device.array(out), n);
    REQUIRE_FALSE(fault);
    expect_equal(out, expected, "arithmetic " + name);
}

template <class T>
void check_bits(Device& device, const std::string& name) {
    std::vector<T> a = values<T>(3), b = values<T>(4), out(8 * n), expected(8 * n);
    for (int i = 0; i < n; ++i) {
        if (b[i] == T(0)) b[i] = 3;
        if (std::is_signed_v<T> && b[i] == T(-1)) b[i] = 5;
        const T x = a[i], y = b[i];
        T* o = expected.data() + 8 * i;
        using W = std::conditional_t<sizeof(T) == 8, std::uint64_t, std::uint32_t>;
        o[0] = T(x % y), o[1] = T(x & y), o[2] = T(x | y), o[3] = T(x ^ y), o[4] = T(~x),
        o[5] = T(W(x) << (y & 7));
        o[6] = T(x >> (y & 7)), o[7] = x > y;
    }
    const auto fault =
        device.launch("bits_" + name, {32}, {32}, device.array(a), device.array(b), device.array(out), n);
    REQUIRE_FALSE(fault);
    expect_equal(out, expected, "bits " + name);
}

// What the PTX manual says: integers wrap, floats are clamped when they go to integers, and NaN is 0.
template <class A, class B>
B converted(A v) {
    if constexpr (std::is_floating_point_v<A> && std::is_integral_v<B>) {
        if (std::isnan(v)) return 0;
        const long double wide = std::truncl(static_cast<long double>(v));
        if (wide < static_cast<long double>(std::numeric_limits<B>::min()))
            return std::numeric_limits<B>::min();
        if (wide > static_cast<long double>(std::numeric_limits<B>::max()))
            return std::numeric_limits<B>::max();
        return static_cast<B>(wide);
    } else {
        return static_cast<B>(v);
    }
}

template <class A, class B>
void check_conversion(Device& device, const std::string& name) {
    std::vector<A> a = values<A>(5);
    std::vector<B> out(n), expected(n);
    for (int i = 0; i < n; ++i) {
        // C++ leaves out-of-range values undefined and NVRTC converts to 8 and 16 bits by way of 32: only 32
        // and 64 clamp.
        if (std::is_floating_point_v<A> && sizeof(B) < 4) {
            a[i] = static_cast<A>(std::fmod(double(a[i]), 100.0));
            if (std::is_unsigned_v<B>) a[i] = std::fabs(a[i]);
        }
        expected[i] = converted<A, B>(a[i]);
    }
    const auto fault = device.launch("convert_" + name, {11}, {96}, device.array(a), device.array(out), n);
    REQUIRE_FALSE(fault);
    expect_equal(out, expected, "convert " + name);
}

template <class A>
void check_conversions(Device& device, const std::string& from) {
    check_conversion<A, signed char>(device, from + "_s8");
    check_conversion<A, unsigned char>(device, from + "_u8");
    check_conversion<A, short>(device, from + "_s16");
    check_conversion<A, unsigned short>(device, from + "_u16");
    check_conversion<A, int>(device, from + "_s32");
    check_conversion<A, unsigned>(device, from + "_u32");
    check_conversion<A, long long>(device, from + "_s64");
    check_conversion<A, unsigned long long>(device, from + "_u64");
    check_conversion<A, float>(device, from + "_f32");
    check_conversion<A, double>(device, from + "_f64");
}

double ulps(float got, double expected) {
    if (std::isnan(expected)) return std::isnan(got) ? 0 : 1e9;
    const auto nearest = static_cast<float>(expected);
    if (got == nearest) return 0;
    const double step =
        std::max(double(std::nextafter(std::fabs(nearest), INFINITY)) - std::fabs(double(nearest)), 1.5e-45);
    return std::fabs(double(got) - expected) / step;
}

Device programs(unsigned workers = 1) { return Device(read_ptx("programs.ptx"), workers); }

std::vector<float> noise(std::size_t count, unsigned seed) {
    std::mt19937 random(seed);
    std::vector<float> made(count);
    for (float& each : made) each = float(random() % 2001) / 1000.0f - 1.0f;
    return made;
}

// Sets the watchdog for one test.
class Timeout {
  public:
    explicit Timeout(const char* seconds) { setenv("BASCULE_EMULATED_TIMEOUT", seconds, 1); }
    ~Timeout() { unsetenv("BASCULE_EMULATED_TIMEOUT"); }
};

}  // namespace

TEST_CASE("arithmetic of every type is C++'s") {
    Device device(read_ptx("arithmetic.ptx"));
    check_arithmetic<signed char>(device, "s8");
    check_arithmetic<unsigned char>(device, "u8");
    check_arithmetic<short>(device, "s16");
    check_arithmetic<unsigned short>(device, "u16");
    check_arithmetic<int>(device, "s32");
    check_arithmetic<unsigned>(device, "u32");
    check_arithmetic<long long>(device, "s64");
    check_arithmetic<unsigned long long>(device, "u64");
    check_arithmetic<float>(device, "f32");
    check_arithmetic<double>(device, "f64");
}

TEST_CASE("bit operations and remainders of every integer type are C++'s") {
    Device device(read_ptx("arithmetic.ptx"));
    check_bits<signed char>(device, "s8");
    check_bits<unsigned char>(device, "u8");
    check_bits<short>(device, "s16");
    check_bits<unsigned short>(device, "u16");
    check_bits<int>(device, "s32");
    check_bits<unsigned>(device, "u32");
    check_bits<long long>(device, "s64");
    check_bits<unsigned long long>(device, "u64");
}

TEST_CASE("every type converts to every type, clamped where it goes from float to integer") {
    Device device(read_ptx("arithmetic.ptx"));
    check_conversions<signed char>(device, "s8");
    check_conversions<unsigned char>(device, "u8");
    check_conversions<short>(device, "s16");
    check_conversions<unsigned short>(device, "u16");
    check_conversions<int>(device, "s32");
    check_conversions<unsigned>(device, "u32");
    check_conversions<long long>(device, "s64");
    check_conversions<unsigned long long>(device, "u64");
    check_conversions<float>(device, "f32");
    check_conversions<double>(device, "f64");
}

TEST_CASE("single-precision functions are as close as CUDA documents") {
    Device device(read_ptx("floats.ptx"));
    std::vector<float> a = noise(n, 6), b = noise(n, 7), out(20 * n);
    for (int i = 0; i < n; ++i) a[i] *= 20, b[i] *= 3;
    a[0] = 0, a[1] = -0.0f, a[2] = INFINITY, a[3] = NAN, a[4] = 1e30f, a[5] = -1e-40f, a[6] = 105414.0f,
    a[7] = -INFINITY;
    REQUIRE_FALSE(
        device.launch("functions", {8}, {128}, device.array(a), device.array(b), device.array(out), n));
    const double limits[20] = {0.5, 3, 0.5, 2, 2, 2, 8, 1, 2, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0};
    double worst[20] = {};
    for (int i = 0; i < n; ++i) {
        const double x = a[i], y = b[i];
        const double saturated = std::isnan(x) ? 0.0 : std::clamp(x, 0.0, 1.0);
        const double expected[20] = {std::sqrt(x),     std::atan2(x, y), std::fmaf(a[i], b[i], a[i]),
                                     std::exp(x),      std::sin(x),      std::cos(x),
                                     std::pow(x, y),   std::log(x),      std::tanh(x),
                                     1 / std::sqrt(x), std::floor(x),    std::ceil(x),
                                     std::trunc(x),    std::rint(x),     std::fmin(x, y),
                                     std::fmax(x, y),  std::fabs(x),     std::copysign(x, y),
                                     saturated,        std::fmod(x, y)};
        for (int k = 0; k < 20; ++k) worst[k] = std::max(worst[k], ulps(out[20 * i + k], expected[k]));
    }
    for (int k = 0; k < 20; ++k) {
        INFO("function " << k);
        CHECK(worst[k] <= limits[k]);
    }
}

TEST_CASE("double-precision functions agree with the C library") {
    Device device(read_ptx("floats.ptx"));
    std::vector<double> a = values<double>(8), b = values<double>(9), out(8 * n);
    for (int i = 0; i < n; ++i) a[i] = std::fmod(a[i], 500.0), b[i] = std::fmod(b[i], 9.0);
    REQUIRE_FALSE(
        device.launch("functions64", {8}, {128}, device.array(a), device.array(b), device.array(out), n));
    for (int i = 0; i < n; ++i) {
        const double x = a[i], y = b[i];
        const double expected[8] = {std::sqrt(x), x / y,       std::fma(x, y, x), std::exp(x),
                                    std::sin(x),  std::log(x), std::pow(x, y),    std::rint(x)};
        for (int k = 0; k < 8; ++k) {
            const double got = out[8 * i + k];
            if (same(got, expected[k])) continue;
            INFO("function " << k << " of " << x << ", " << y << ": " << got << " against " << expected[k]);
            CHECK(std::fabs(got - expected[k]) <= std::fabs(expected[k]) * 1e-14);
        }
    }
}

TEST_CASE("directed roundings are the processor's") {
    Device device(read_ptx("floats.ptx"));
    std::vector<float> a = values<float>(10), b = values<float>(11), out(12 * n);
    REQUIRE_FALSE(
        device.launch("roundings", {8}, {128}, device.array(a), device.array(b), device.array(out), n));
    const int modes[3] = {FE_DOWNWARD, FE_UPWARD, FE_TOWARDZERO};
    for (int i = 0; i < n; ++i) {
        volatile float x = a[i], y = b[i];
        for (int m = 0; m < 3; ++m) {
            std::fesetround(modes[m]);
            volatile float sum = x + y, product = x * y, quotient = x / y;
            volatile float fused = std::fma(float(x), float(y), float(x));
            std::fesetround(FE_TONEAREST);
            const float* o = out.data() + 12 * i;
            CHECK(same(o[m], float(sum)));
            CHECK(same(o[3 + m], float(product)));
            CHECK(same(o[6 + m], float(quotient)));
            CHECK(same(o[9 + m], float(fused)));
        }
    }
}

namespace {

// Bits of a half, value by value: an independent, slow reading of the format.
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

TEST_CASE("arithmetic on halves is rounded once") {
    Device device(read_ptx("floats.ptx"));
    std::mt19937 random(13);
    std::vector<std::uint16_t> a(n), b(n), out(8 * n);
    for (int i = 0; i < n; ++i) {
        a[i] = static_cast<std::uint16_t>(random());
        b[i] = static_cast<std::uint16_t>(random());
    }
    REQUIRE_FALSE(
        device.launch("halves", {8}, {128}, device.array(a), device.array(b), device.array(out), n));
    for (int i = 0; i < n; ++i) {
        const double x = half_value(a[i]), y = half_value(b[i]);
        const long double fused = static_cast<long double>(x) * y + x;
        const std::uint16_t expected[4] = {nearest_half(x + y), nearest_half(x - y), nearest_half(x * y),
                                           nearest_half(double(fused))};
        for (int k = 0; k < 4; ++k) {
            const std::uint16_t got = out[8 * i + k];
            const bool right =
                got == expected[k] || (std::isnan(half_value(got)) && std::isnan(half_value(expected[k])));
            if (!right) INFO("operation " << k << " of " << x << " and " << y);
            CHECK(right);
        }
    }
}

TEST_CASE("a grid-stride saxpy covers every size") {
    for (const int count : {0, 1, 31, 32, 33, 1000, 10007}) {
        Device device = programs(2);
        std::vector<float> x = noise(static_cast<std::size_t>(count) + 1, 14), y = noise(x.size(), 15),
                           expected = y;
        for (int i = 0; i < count; ++i) expected[i] = std::fmaf(2.5f, x[i], y[i]);
        REQUIRE_FALSE(device.launch("saxpy", {3}, {100}, count, 2.5f, device.array(x), device.array(y)));
        expect_equal(y, expected, "saxpy");
    }
}

TEST_CASE("a block reduces in shared memory") {
    Device device = programs();
    std::vector<float> a(100'000, 1.0f), out(10);
    REQUIRE_FALSE(device.launch("reduce", {10}, {256}, device.array(a), device.array(out), 100'000));
    float sum = 0;
    for (const float each : out) sum += each;
    CHECK(sum == 100'000.0f);
}

TEST_CASE("a tiled matrix product is the product") {
    Device device = programs(2);
    constexpr int size = 64;
    std::vector<float> a = noise(size * size, 16), b = noise(size * size, 17), c(size * size),
                       expected(size * size);
    for (int i = 0; i < size; ++i) {
        for (int j = 0; j < size; ++j) {
            float sum = 0;
            for (int k = 0; k < size; ++k) sum = std::fmaf(a[i * size + k], b[k * size + j], sum);
            expected[i * size + j] = sum;
        }
    }
    REQUIRE_FALSE(
        device.launch("matmul", {4, 4}, {16, 16}, device.array(a), device.array(b), device.array(c), size));
    expect_equal(c, expected, "matmul");
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

TEST_CASE("lanes that leave a loop early wait for the others") {
    Device device = programs(2);
    constexpr int width = 64;
    std::vector<int> out(width * width), expected(width * width);
    for (int y = 0; y < width; ++y) {
        for (int x = 0; x < width; ++x) {
            const float cr = std::fmaf(1, 3.f * float(x) / width, -2),
                        ci = std::fmaf(1, 3.f * float(y) / width, -1.5f);
            float zr = 0, zi = 0;
            int k = 0;
            while (k < 100 && std::fmaf(zr, zr, zi * zi) < 4) {
                const float t = zr * zr - zi * zi + cr;
                zi = 2 * zr * zi + ci, zr = t, k++;
            }
            expected[y * width + x] = k;
        }
    }
    REQUIRE_FALSE(device.launch("mandelbrot", {1, width}, {width}, device.array(out), width, 100));
    expect_equal(out, expected, "mandelbrot");
}

TEST_CASE("device functions are called with structures, from divergent places") {
    struct Matrix {
        float m[16];
        int n;
    } matrix;
    for (int i = 0; i < 16; ++i) matrix.m[i] = float(i) / 4;
    matrix.n = 9;
    const auto scaled = [](Matrix b, float f) {
        for (int i = 0; i < 16; i++) b.m[i] = std::fmaf(b.m[i], f, float(i));
        b.n++;
        return b;
    };
    Device device = programs();
    std::vector<float> out(64), expected(64);
    for (int i = 0; i < 64; ++i) {
        Matrix c = scaled(matrix, float(i));
        if (i & 1) c = scaled(c, 2);
        float sum = float(c.n);
        for (const float each : c.m) sum += each;
        int steps = 0;
        for (int k = i; k > 1; ++steps) k = k & 1 ? 3 * k + 1 : k / 2;
        expected[i] = sum + float(steps) + matrix.m[5];
    }
    REQUIRE_FALSE(device.launch("calls", {1}, {64}, matrix, device.array(out), 5));
    expect_equal(out, expected, "calls");
}

TEST_CASE("each thread has local memory of its own") {
    Device device = programs();
    std::vector<unsigned> out(70), expected(70);
    for (unsigned t = 0; t < 70; ++t) {
        unsigned a[32], sum = 0;
        for (unsigned i = 0; i < 32; i++) a[i] = i * t;
        for (unsigned i = 1; i < 32; i++) a[(i * 7 + 3) & 31] += a[i - 1];
        for (const unsigned each : a) sum = sum * 31 + each;
        expected[t] = sum;
    }
    REQUIRE_FALSE(device.launch("local_array", {1}, {70}, device.array(out), 3));
    expect_equal(out, expected, "local_array");
}

TEST_CASE("shuffles, votes and matches see the other lanes") {
    Device device = programs();
    std::vector<int> a(64), out(6 * 64);
    std::mt19937 random(19);
    for (int& each : a) each = int(random() % 200) - 100;
    REQUIRE_FALSE(device.launch("warp_sums", {1}, {64}, device.array(a), device.array(out)));
    for (int t = 0; t < 64; ++t) {
        const int lane = t & 31, first = t - lane;
        int sum = 0;
        unsigned ballot = 0, match = 0;
        for (int l = 0; l < 32; ++l) {
            sum += a[first + l];
            ballot |= unsigned(a[first + l] > 0) << l;
            if (l % 2 == 0 && (a[first + l] & 3) == (a[t] & 3)) match |= 1u << l;
        }
        const int* o = out.data() + 6 * t;
        CHECK(o[0] == sum);
        CHECK(o[1] == a[lane >= 3 ? t - 3 : t]);
        CHECK(o[2] == a[lane % 16 + 5 < 16 ? t + 5 : t]);
        CHECK(o[3] == a[first + t * 7 % 32]);
        CHECK(unsigned(o[4]) == ballot);
        CHECK(unsigned(o[5]) == (lane & 1 ? 0xaaaaaaaau : match));
    }
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

TEST_CASE("vectors of four floats and four bytes are loaded and stored whole") {
    Device device = programs();
    std::vector<float> a = noise(4 * 50, 20), out(4 * 50);
    std::vector<unsigned char> b(4 * 50), bytes(4 * 50);
    for (std::size_t i = 0; i < b.size(); ++i) b[i] = static_cast<unsigned char>(i * 7);
    REQUIRE_FALSE(device.launch("vectors", {1}, {50}, device.array(a), device.array(out), device.array(b),
                                device.array(bytes)));
    for (int i = 0; i < 50; ++i) {
        const float* v = a.data() + 4 * i;
        const float expected[4] = {v[3], v[2], v[1] + v[0], v[0]};
        for (int k = 0; k < 4; ++k) CHECK(out[4 * i + k] == expected[k]);
        CHECK(bytes[4 * i + 2] == static_cast<unsigned char>(b[4 * i + 1] + b[4 * i]));
    }
}

TEST_CASE("bit intrinsics do what their names say") {
    Device device = programs();
    std::vector<unsigned> a = values<unsigned>(21), b = values<unsigned>(22), out(10 * 256);
    REQUIRE_FALSE(
        device.launch("bit_tricks", {1}, {256}, device.array(a), device.array(b), device.array(out)));
    for (int i = 0; i < 256; ++i) {
        const unsigned x = a[i], y = b[i];
        const unsigned* o = out.data() + 10 * i;
        unsigned reversed = 0, permuted = 0, dot = 3;
        const std::uint64_t both = std::uint64_t{y} << 32 | x;
        for (int k = 0; k < 32; ++k) reversed |= (x >> k & 1) << (31 - k);
        const int picks[4] = {5, 1, 7, 3};
        for (int k = 0; k < 4; ++k) permuted |= unsigned(both >> (8 * picks[k]) & 0xff) << (8 * k);
        for (int k = 0; k < 4; ++k)
            dot += unsigned(int(std::int8_t(x >> (8 * k))) * int(std::int8_t(y >> (8 * k))));
        CHECK(o[0] == (x ? unsigned(__builtin_clz(x)) : 32u));
        CHECK(o[1] == unsigned(__builtin_popcount(x)));
        CHECK(o[2] == reversed);
        CHECK(o[3] == unsigned(__builtin_ffs(int(x))));
        CHECK(o[4] == permuted);
        CHECK(o[5] == unsigned(both << (x & 31) >> 32));
        CHECK(o[6] == unsigned(std::uint64_t{x} * y >> 32));
        CHECK(o[7] == unsigned(std::uint64_t(std::int64_t(int(x)) * int(y)) >> 32));
        CHECK(o[8] == dot);
        CHECK(o[9] == unsigned(std::llabs(std::int64_t(int(x)) - int(y))) + 7);
    }
}

TEST_CASE("a generic pointer leads to global, shared and local memory") {
    for (const int which : {0, 1, 2}) {
        Device device = programs();
        std::vector<int> g(64, 100);
        REQUIRE_FALSE(device.launch("generic_pointers", {1}, {32}, device.array(g), which));
        // 8 threads add to each of the first four, lane after lane, but each read its value before any
        // stored.
        const int expected[3] = {107, 12, 0};
        for (int i = 0; i < 32; ++i) CHECK(g[32 + i] == (which == 2 ? i % 4 + 1 + 7 : expected[which]));
    }
}

TEST_CASE("a lane that holds a lock gets on while the others of its warp spin") {
    Device device = programs(2);
    std::vector<int> lock(1), count(1);
    REQUIRE_FALSE(device.launch("locked", {2}, {64}, device.array(lock), device.array(count)));
    CHECK(count[0] == 128);
}

TEST_CASE("a pointer in a global variable is relocated") {
    Device device = programs();
    REQUIRE_FALSE(device.launch("indirect", {1}, {32}));
    int counter = 0;
    std::memcpy(&counter, device.global("counter"), 4);
    CHECK(counter == 5 + 64);
}

TEST_CASE("an access past an array is a fault with thread, address and source line") {
    Device device = programs();
    std::vector<float> x(100), y(104);
    const std::uint64_t address = device.array(x);
    const auto fault = device.launch("saxpy", {1}, {256}, 104, 1.0f, address, device.array(y));
    REQUIRE(fault);
    CHECK(fault->kind == Fault::Kind::illegal_address);
    CHECK(fault->address == address + 400);
    CHECK(fault->access_bytes == 4);
    CHECK_FALSE(fault->write);
    CHECK(fault->thread.x == 100);
    CHECK(fault->other_threads == 3);
    CHECK(fault->kernel == "saxpy");
    CHECK(fault->file == "programs.cu");
    CHECK(fault->line == 4);
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

TEST_CASE("a misaligned store, a trap and a failed assertion are faults") {
    Device device = programs();
    std::vector<char> bytes(64);
    const auto misaligned = device.launch("misaligned", {1}, {4}, device.array(bytes));
    REQUIRE(misaligned);
    CHECK(misaligned->kind == Fault::Kind::misaligned_address);
    CHECK(misaligned->thread.x == 1);
    CHECK(misaligned->other_threads == 2);
    const auto trap = device.launch("traps", {1}, {64}, 40);
    REQUIRE(trap);
    CHECK(trap->kind == Fault::Kind::illegal_instruction);
    CHECK(trap->thread.x == 40);
    CHECK_FALSE(device.launch("traps", {1}, {64}, 64));
    const auto assertion = device.launch("asserts", {1}, {1}, 3);
    REQUIRE(assertion);
    CHECK(assertion->kind == Fault::Kind::assertion);
    CHECK(assertion->message.find("assertion `n > 3` failed") != std::string::npos);
    CHECK_FALSE(device.launch("asserts", {1}, {1}, 4));
}

TEST_CASE("a store to constant memory is a fault, whichever way the address came") {
    Device device(
        ".version 8.0\n.target sm_80\n.address_size 64\n.const .b32 c[4] = {1, 2, 3, 4};"
        ".entry k() { .reg .b64 %d<3>; mov.u64 %d1, c; cvta.const.u64 %d2, %d1; st.u32 [%d2+8], 7; ret; }");
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

TEST_CASE("an infinite loop ends by the watchdog, which names the line") {
    const Timeout timeout("0.05");
    Device device = programs();
    std::vector<int> stop(1);
    const auto fault = device.launch("forever", {1}, {32}, device.array(stop));
    REQUIRE(fault);
    CHECK(fault->kind == Fault::Kind::timeout);
    CHECK(fault->message.find("infinite loop") != std::string::npos);
    CHECK(fault->line > 0);
}

TEST_CASE("threads that wait at different barriers for ever are reported with both lines") {
    Device device = programs();
    const auto fault = device.launch("divergent_barrier", {1}, {64});
    REQUIRE(fault);
    CHECK(fault->kind == Fault::Kind::launch_failed);
    CHECK(fault->message.find("divergent barrier") == 0);
    REQUIRE(fault->waiting.size() == 1);
    CHECK(fault->waiting[0].thread.x == 32);
    CHECK(fault->waiting[0].file == "programs.cu");
    CHECK(fault->waiting[0].line != fault->line);
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
