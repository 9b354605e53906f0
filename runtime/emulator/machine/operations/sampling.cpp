#include "machine/operations/sampling.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

namespace emulated::machine {
namespace {

using memory::Image;
using memory::ImageObject;
using memory::Sampler;
using memory::TexelFormat;
using Address = Sampler::Address;

constexpr std::int64_t outside = -1;

// What a texel index outside [0, extent) means: another one, or the border.
std::int64_t resolve(std::int64_t index, std::int64_t extent, Address mode) {
    if (index >= 0 && index < extent) return index;
    switch (mode) {
        case Address::clamp:
            return index < 0 ? 0 : extent - 1;
        case Address::wrap: {
            const std::int64_t rest = index % extent;
            return rest < 0 ? rest + extent : rest;
        }
        case Address::mirror: {
            std::int64_t rest = index % (2 * extent);
            if (rest < 0) rest += 2 * extent;
            return rest < extent ? rest : 2 * extent - 1 - rest;
        }
        case Address::border:
            break;
    }
    return outside;
}

// The texels along one axis that a sample is made of.
struct Taps {
    std::array<std::int64_t, 2> index{0, 0};
    std::array<double, 2> weight{1, 0};
    unsigned count = 1;
};

// Coordinates beyond these lie outside of every image on the same side, and after wrapping nowhere in particular.
double finite(double at) {
    constexpr double most = 1e15;
    return std::isnan(at) ? 0 : std::clamp(at, -most, most);
}

Taps taps_of(const Sampler& sampler, double at, std::uint32_t extent, Address mode, bool texels, bool pair) {
    const auto size = static_cast<std::int64_t>(extent);
    if (texels) return {{resolve(static_cast<std::int64_t>(at), size, mode)}, {1, 0}, 1};
    const double given = finite(at);
    if (!pair && sampler.normalized_coordinates && mode == Address::mirror) {
        // "If floor(x) is even frac(x), else 1-frac(x)": exactly between two texels this is not what the index says.
        const double whole = std::floor(given), rest = given - whole;
        const double mirrored = std::fmod(whole, 2) == 0 ? rest : 1 - rest;
        return {{std::min(static_cast<std::int64_t>(std::floor(mirrored * extent)), size - 1)}, {1, 0}, 1};
    }
    const double scaled = sampler.normalized_coordinates ? given * extent : given;
    if (!pair) return {{resolve(static_cast<std::int64_t>(std::floor(scaled)), size, mode)}, {1, 0}, 1};
    const double shifted = scaled - 0.5;
    const double first = std::floor(shifted);
    // "Stored in 9-bit fixed point format with 8 bits of fractional value (so 1.0 is exactly represented)".
    const double weight = std::floor((shifted - first) * 256 + 0.5) / 256;
    const auto index = static_cast<std::int64_t>(first);
    return {{resolve(index, size, mode), resolve(index + 1, size, mode)}, {1 - weight, weight}, 2};
}

double from_half(std::uint16_t bits) {
    const int exponent = bits >> 10 & 31;
    const double fraction = bits & 1023;
    const double sign = (bits & 0x8000) != 0 ? -1 : 1;
    if (exponent == 0) return sign * std::ldexp(fraction, -24);
    if (exponent == 31)
        return fraction == 0 ? sign * HUGE_VAL : std::bit_cast<double>(0x7ff8'0000'0000'0000ull);
    return sign * std::ldexp(1024 + fraction, exponent - 25);
}

double linear_of_srgb(double value) {
    return value <= 0.04045 ? value / 12.92 : std::pow((value + 0.055) / 1.055, 2.4);
}

template <class T>
T read_as(const std::byte* bytes) {
    T value;
    std::memcpy(&value, bytes, sizeof value);
    return value;
}

template <class Narrow>
std::uint32_t extended(const std::byte* bytes) {
    return static_cast<std::uint32_t>(static_cast<std::int64_t>(read_as<Narrow>(bytes)));
}

std::uint32_t integer_at(const TexelFormat& format, const std::byte* bytes) {
    const bool is_signed = format.kind == TexelFormat::Kind::signed_integer;
    if (format.channel_bytes == 1)
        return is_signed ? extended<std::int8_t>(bytes) : extended<std::uint8_t>(bytes);
    if (format.channel_bytes == 2)
        return is_signed ? extended<std::int16_t>(bytes) : extended<std::uint16_t>(bytes);
    return read_as<std::uint32_t>(bytes);
}

// The largest value is 1; of signed ones the two smallest are -1.
double promoted(const TexelFormat& format, std::uint32_t value) {
    const unsigned bits = 8u * format.channel_bytes;
    if (format.kind == TexelFormat::Kind::unsigned_integer)
        return static_cast<double>(static_cast<float>(value) / static_cast<float>((1u << bits) - 1));
    const auto most = static_cast<float>((1u << (bits - 1)) - 1);
    return std::max(-1.0f, static_cast<float>(static_cast<std::int32_t>(value)) / most);
}

Texel texel_at(const ImageObject& texture, const std::byte* bytes) {
    const TexelFormat& format = texture.image.format;
    Texel made;
    for (unsigned c = 0; c < format.channels; ++c, bytes += format.channel_bytes) {
        if (format.kind == TexelFormat::Kind::floating) {
            made.number[c] = format.channel_bytes == 4 ? static_cast<double>(read_as<float>(bytes))
                                                       : from_half(read_as<std::uint16_t>(bytes));
            continue;
        }
        made.bits[c] = integer_at(format, bytes);
        if (!texture.sampler.promotes) continue;
        made.number[c] = promoted(format, made.bits[c]);
        if (texture.sampler.srgb && c < 3) made.number[c] = linear_of_srgb(made.number[c]);
    }
    return made;
}

Texel border_of(const ImageObject& texture) {
    Texel made;
    for (unsigned c = 0; c < texture.image.format.channels; ++c) made.number[c] = texture.sampler.border[c];
    return made;
}

}  // namespace

bool gives_numbers(const ImageObject& texture) noexcept {
    return texture.image.format.kind == TexelFormat::Kind::floating || texture.sampler.promotes;
}

Texel Texels::read(std::uint32_t x, std::uint32_t y, std::uint32_t slice) const {
    const Image& image = texture->image;
    const std::uint64_t offset =
        image.slice_pitch * slice + image.pitch * y + std::uint64_t{image.format.bytes()} * x;
    if (log != nullptr) log->add(image.address + offset, image.format.bytes(), races::Access::read);
    return texel_at(*texture, bytes + offset);
}

namespace {

Texel read_or_border(const Texels& texels, std::int64_t x, std::int64_t y, std::int64_t slice) {
    if (x == outside || y == outside || slice == outside) return border_of(*texels.texture);
    return texels.read(static_cast<std::uint32_t>(x), static_cast<std::uint32_t>(y),
                       static_cast<std::uint32_t>(slice));
}

}  // namespace

Texel sample(const Texels& texels, const SamplePlace& place) {
    const ImageObject& texture = *texels.texture;
    const Image& image = texture.image;
    const Sampler& sampler = texture.sampler;
    const bool pair = sampler.linear && !place.texels;
    const std::array<std::uint32_t, 3> extents{image.width, image.height, image.slices};
    std::array<Taps, 3> axes;
    for (unsigned d = 0; d < place.dimensions; ++d)
        axes[d] = taps_of(sampler, place.at[d], extents[d], sampler.address[d], place.texels, pair);
    if (place.dimensions < 3) axes[2].index[0] = place.slice;

    Texel made;
    bool first = true;
    for (unsigned k = 0; k < axes[2].count; ++k) {
        for (unsigned j = 0; j < axes[1].count; ++j) {
            for (unsigned i = 0; i < axes[0].count; ++i) {
                const double weight = axes[0].weight[i] * axes[1].weight[j] * axes[2].weight[k];
                if (weight == 0) continue;
                const std::int64_t x = axes[0].index[i], y = axes[1].index[j], z = axes[2].index[k];
                const Texel texel = read_or_border(texels, x, y, z);
                if (first) made.bits = texel.bits;
                for (unsigned c = 0; c < 4; ++c)
                    made.number[c] =
                        first ? weight * texel.number[c] : made.number[c] + weight * texel.number[c];
                first = false;
            }
        }
    }
    return made;
}

Texel gather(const Texels& texels, const SamplePlace& place, unsigned component) {
    const ImageObject& texture = *texels.texture;
    const Image& image = texture.image;
    const Sampler& sampler = texture.sampler;
    const Taps x = taps_of(sampler, place.at[0], image.width, sampler.address[0], false, true);
    const Taps y = taps_of(sampler, place.at[1], image.height, sampler.address[1], false, true);
    constexpr std::array<std::array<unsigned, 2>, 4> order{{{0, 1}, {1, 1}, {1, 0}, {0, 0}}};
    Texel made;
    for (unsigned n = 0; n < 4; ++n) {
        const std::int64_t i = x.index[order[n][0]], j = y.index[order[n][1]];
        const Texel texel = read_or_border(texels, i, j, place.slice);
        made.number[n] = texel.number[component];
        made.bits[n] = texel.bits[component];
    }
    return made;
}

CubePlace on_cube(double x, double y, double z) noexcept {
    const double ax = std::fabs(x), ay = std::fabs(y), az = std::fabs(z);
    double m = az, s = z >= 0 ? x : -x, t = -y;
    std::uint32_t face = z >= 0 ? 4 : 5;
    if (ax >= ay && ax >= az) {
        m = ax;
        face = x >= 0 ? 0 : 1;
        s = x >= 0 ? -z : z;
    } else if (ay >= az) {
        m = ay;
        face = y >= 0 ? 2 : 3;
        s = x;
        t = y >= 0 ? z : -z;
    }
    if (!(m > 0)) return {0, 0.5, 0.5};  // no direction
    return {face, (s / m + 1) / 2, (t / m + 1) / 2};
}

}  // namespace emulated::machine
