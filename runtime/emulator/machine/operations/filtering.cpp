#include "machine/operations/filtering.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

namespace emulated::machine {
namespace {

using std::int64_t;

// The number of fraction bits that a normalised coordinate keeps when it is multiplied by the extent.
constexpr int normalized_bits = 21;

// From 2^24 on all floats are even: they are 0 after wrapping or mirroring, and otherwise outside every image.
double finite(double coordinate) {
    constexpr double most = 1 << 24;
    return std::isnan(coordinate) ? 0 : std::clamp(coordinate, -most, most);
}

int64_t scaled(double normalized, std::uint32_t extent) {
    constexpr double one = 1 << normalized_bits;
    return static_cast<int64_t>(std::floor(finite(normalized) * one)) * extent;
}

// whole * share / 256, rounded half up.
constexpr std::uint32_t part_of(std::uint32_t whole, std::uint32_t share) {
    return (whole * share + 128) >> 8;
}

// --- floating point ---

constexpr int fraction_bits = 52;  // of a double

int exponent_of(double number) {
    return static_cast<int>(std::bit_cast<std::uint64_t>(number) >> fraction_bits & 0x7ff) - 1022;
}

double power_of_two(int exponent) {
    return std::bit_cast<double>(static_cast<std::uint64_t>(exponent + 1023) << fraction_bits);
}

// Rounds to `bits` significant bits, halfway cases away from 0.
double rounded(double number, int bits) {
    const int dropped = fraction_bits + 1 - bits;
    const std::uint64_t last = std::uint64_t{1} << dropped;
    return std::bit_cast<double>((std::bit_cast<std::uint64_t>(number) + last / 2) & ~(last - 1));
}

// Shifts the texels of a slice to the exponent of the largest one, and cuts them off after `bits` bits.
double mixed_slice(Parts slice, int bits) {
    double largest = 0;
    for (const Part& part : slice) largest = std::max(largest, std::fabs(part.number));
    if (largest == 0) return 0;
    const int exponent = exponent_of(largest);
    const double unit = power_of_two(bits - exponent);
    int64_t sum = 0;
    for (const Part& part : slice) sum += static_cast<int64_t>(part.number * unit) * part.share;
    return static_cast<double>(sum) * power_of_two(exponent - bits - 8);
}

// Infinities and NaN behave as in ordinary arithmetic.
double plain_sum(Parts slice, Parts next) {
    double sum = 0;
    for (const Parts& parts : {slice, next}) {
        for (const Part& part : parts) sum += part.number * part.share;
    }
    return sum;
}

double mixed(Parts slice, Parts next, int bits) {
    constexpr int guard_bits = 4;
    if (const double plain = plain_sum(slice, next); !std::isfinite(plain)) return plain;
    const double sum = mixed_slice(slice, bits + guard_bits) + mixed_slice(next, bits + guard_bits);
    return sum == 0 ? 0 : rounded(sum, bits);
}

// --- sRGB ---

// In units of 1/16384, as an H100 returns them.
constexpr std::array<std::uint16_t, 256> linear_light{
    0,     5,     10,    15,    20,    25,    30,    35,    40,    45,    50,    55,    60,    66,    72,
    78,    85,    92,    99,    107,   115,   123,   131,   140,   150,   159,   169,   180,   190,   201,
    213,   224,   236,   250,   262,   276,   290,   304,   318,   332,   348,   364,   380,   396,   412,
    430,   448,   466,   484,   504,   524,   544,   564,   584,   604,   624,   648,   672,   692,   716,
    740,   764,   788,   816,   840,   864,   896,   920,   944,   976,   1000,  1032,  1064,  1088,  1120,
    1152,  1184,  1216,  1248,  1280,  1312,  1352,  1384,  1416,  1456,  1488,  1528,  1560,  1600,  1640,
    1672,  1712,  1752,  1792,  1832,  1872,  1920,  1952,  2000,  2048,  2080,  2128,  2176,  2224,  2272,
    2320,  2368,  2416,  2464,  2512,  2560,  2608,  2656,  2704,  2752,  2816,  2864,  2912,  2976,  3024,
    3072,  3136,  3184,  3248,  3296,  3360,  3424,  3472,  3536,  3600,  3664,  3712,  3776,  3840,  3904,
    3968,  4032,  4096,  4160,  4224,  4288,  4352,  4416,  4512,  4576,  4640,  4704,  4768,  4864,  4928,
    4992,  5056,  5152,  5216,  5280,  5376,  5440,  5536,  5600,  5696,  5760,  5824,  5920,  6016,  6080,
    6176,  6240,  6336,  6400,  6496,  6592,  6688,  6752,  6848,  6944,  7008,  7104,  7200,  7296,  7392,
    7488,  7584,  7680,  7744,  7872,  7936,  8064,  8128,  8256,  8320,  8448,  8512,  8640,  8768,  8832,
    8960,  9024,  9152,  9280,  9344,  9472,  9600,  9664,  9792,  9920,  9984,  10112, 10240, 10304, 10432,
    10560, 10688, 10816, 10880, 11008, 11136, 11264, 11392, 11456, 11584, 11712, 11840, 11968, 12096, 12224,
    12352, 12480, 12608, 12736, 12864, 12992, 13120, 13248, 13376, 13504, 13632, 13760, 13888, 14016, 14144,
    14272, 14400, 14528, 14656, 14848, 14976, 15104, 15232, 15360, 15488, 15616, 15744, 16000, 16128, 16256,
    16384,
};

}  // namespace

Mix mix_at(double coordinate, bool normalized, std::uint32_t extent) noexcept {
    // In units of 1/256 of a texel, rounded half up, relative to the centre of the first texel.
    constexpr int rest = normalized_bits - 8;
    const int64_t at = normalized ? (scaled(coordinate, extent) + (1 << (rest - 1))) >> rest
                                  : static_cast<int64_t>(std::floor(finite(coordinate) * 256 + 0.5));
    const int64_t from_middle = at - 128;
    return {from_middle >> 8, static_cast<std::uint32_t>(from_middle & 255)};
}

int64_t texel_at(double coordinate, bool normalized, std::uint32_t extent) noexcept {
    return normalized ? scaled(coordinate, extent) >> normalized_bits
                      : static_cast<int64_t>(std::floor(finite(coordinate)));
}

Shares shares_of(std::uint32_t x, std::uint32_t y, std::uint32_t z) noexcept {
    Shares made{};
    for (unsigned k = 0; k < 2; ++k) {
        const std::uint32_t slice = k == 0 ? 256 - z : z;
        const std::uint32_t right = part_of(slice, x), left = slice - right;
        std::uint32_t* of = &made[std::size_t{4} * k];
        of[3] = part_of(right, y);
        of[1] = right - of[3];
        of[0] = part_of(left, 256 - y);
        of[2] = left - of[0];
    }
    return made;
}

double mixed_floats(Parts slice, Parts next) noexcept { return mixed(slice, next, 24); }

double mixed_halves(Parts slice, Parts next) noexcept { return mixed(slice, next, 11); }

double mixed_integers(Parts slice, Parts next, const memory::TexelFormat& format) noexcept {
    std::int32_t sum = 0;  // in units of 1/256
    for (const Parts& parts : {slice, next}) {
        for (const Part& part : parts) sum += part.integer * static_cast<std::int32_t>(part.share);
    }
    // The result always has 16 bits. Weighted sums of 8-bit texels have 16 bits already and are stretched to the full
    // range.
    const bool wide = format.channel_bytes == 2;
    if (format.kind == memory::TexelFormat::Kind::unsigned_integer) {
        const std::int32_t value = wide ? (sum + 128) >> 8 : sum + ((sum + 128) >> 8);
        return static_cast<double>(static_cast<float>(value) / 65535);
    }
    const std::int32_t value = wide ? (sum + 128) >> 8 : sum + ((sum + 16 * (sum >> 12) + 64) >> 7);
    return static_cast<double>(static_cast<float>(std::max(value, -32767)) / 32767);
}

double linear_of_srgb(std::uint8_t texel) noexcept { return linear_light[texel] / 16384.0; }

}  // namespace emulated::machine
