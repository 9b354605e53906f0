#include "machine/operations/sampling.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "machine/operations/filtering.hpp"

namespace emulated::machine {
namespace {

using memory::Image;
using memory::ImageObject;
using memory::Sampler;
using memory::TexelFormat;
using Address = Sampler::Address;

constexpr std::int64_t outside = -1;

// Maps a texel index outside [0, extent) to another texel or to the border.
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
        case Address::seam:
            return index;
        case Address::border:
            break;
    }
    return outside;
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

// The largest value becomes 1; the two smallest signed values become -1.
double promoted(const TexelFormat& format, std::uint32_t value) {
    const unsigned bits = 8u * format.channel_bytes;
    if (format.kind == TexelFormat::Kind::unsigned_integer)
        return static_cast<double>(static_cast<float>(value) / static_cast<float>((1u << bits) - 1));
    const auto most = static_cast<float>((1u << (bits - 1)) - 1);
    return std::max(-1.0f, static_cast<float>(static_cast<std::int32_t>(value)) / most);
}

std::uint32_t demoted(const TexelFormat& format, double value) {
    const unsigned bits = 8u * format.channel_bytes;
    const bool is_signed = format.kind == TexelFormat::Kind::signed_integer;
    const double most = (1u << (is_signed ? bits - 1 : bits)) - 1;
    return static_cast<std::uint32_t>(std::lround(std::clamp(value, is_signed ? -1.0 : 0.0, 1.0) * most));
}

Texel texel_of(const ImageObject& texture, const std::byte* bytes) {
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
        if (texture.sampler.srgb && c < 3)
            made.number[c] = linear_of_srgb(static_cast<std::uint8_t>(made.bits[c]));
    }
    return made;
}

Texel border_of(const ImageObject& texture) {
    const TexelFormat& format = texture.image.format;
    Texel made;
    for (unsigned c = 0; c < format.channels; ++c) {
        made.number[c] = texture.sampler.border[c];
        if (texture.sampler.promotes) made.bits[c] = demoted(format, made.number[c]);
    }
    return made;
}

// --- cubes ---

// The axes of a face: how the programming guide's table computes m, s and t from the direction.
struct Axis {
    unsigned coordinate;
    double sign;
    double of(const Vector3& direction) const { return sign * direction[coordinate]; }
};
struct Face {
    Axis m, s, t;
};
constexpr Face faces[6] = {
    {{0, 1}, {2, -1}, {1, -1}}, {{0, -1}, {2, 1}, {1, -1}}, {{1, 1}, {0, 1}, {2, 1}},
    {{1, -1}, {0, 1}, {2, -1}}, {{2, 1}, {0, 1}, {1, -1}},  {{2, -1}, {0, -1}, {1, -1}},
};

struct CubeTexel {
    std::uint32_t face = 0;
    std::int64_t x = 0, y = 0;
};

// The neighbour of an edge texel on the adjacent face. `beyond` is one step outside its face, in x or in y. In units of
// half a texel from the cube's centre, faces are at `width` and texels at odd numbers.
CubeTexel across_edge(const CubeTexel& beyond, std::int64_t width) {
    const Face& from = faces[beyond.face];
    const auto w = static_cast<double>(width);
    const double s = static_cast<double>(2 * beyond.x + 1) - w, t = static_cast<double>(2 * beyond.y + 1) - w;
    const bool in_s = std::fabs(s) > w;
    const double outward = std::copysign(w, in_s ? s : t), along = in_s ? t : s;
    const Axis &crossed = in_s ? from.s : from.t, &kept = in_s ? from.t : from.s;
    Vector3 at{};
    at[from.m.coordinate] = from.m.sign * (w - 1);
    at[crossed.coordinate] = crossed.sign * outward;
    at[kept.coordinate] = kept.sign * along;
    const std::uint32_t number = 2 * crossed.coordinate + (at[crossed.coordinate] > 0 ? 0 : 1);
    const auto texel = [&](const Axis& axis) { return static_cast<std::int64_t>((axis.of(at) + w - 1) / 2); };
    return {number, texel(faces[number].s), texel(faces[number].t)};
}

// At a corner only three texels meet; their mean replaces the fourth.
Texel read_across_edges(const Texels& texels, const Image& level, std::int64_t x, std::int64_t y,
                        std::uint32_t slice) {
    const std::int64_t width = level.width;
    const std::uint32_t face = slice % 6, first = slice - face;
    const auto read = [&](const CubeTexel& texel) {
        return texels.read(level, static_cast<std::uint32_t>(texel.x), static_cast<std::uint32_t>(texel.y),
                           first + texel.face);
    };
    const std::int64_t inside_x = std::clamp<std::int64_t>(x, 0, width - 1),
                       inside_y = std::clamp<std::int64_t>(y, 0, width - 1);
    if (x == inside_x && y == inside_y) return read({face, x, y});
    if (x == inside_x || y == inside_y) return read(across_edge({face, x, y}, width));
    Texel made = read({face, inside_x, inside_y});
    for (const CubeTexel& beyond : {CubeTexel{face, x, inside_y}, CubeTexel{face, inside_x, y}}) {
        const Texel other = read(across_edge(beyond, width));
        for (unsigned c = 0; c < 4; ++c) {
            made.number[c] += other.number[c];
            made.bits[c] += other.bits[c];
        }
    }
    for (unsigned c = 0; c < 4; ++c) {
        made.number[c] /= 3;
        made.bits[c] = static_cast<std::uint32_t>(static_cast<std::int32_t>(made.bits[c]) / 3);
    }
    return made;
}

Texel read_or_border(const Texels& texels, const Image& level, std::int64_t x, std::int64_t y,
                     std::int64_t slice) {
    if (texels.texture->sampler.address[0] == Address::seam)
        return read_across_edges(texels, level, x, y, static_cast<std::uint32_t>(slice));
    if (x == outside || y == outside || slice == outside) return border_of(*texels.texture);
    return texels.read(level, static_cast<std::uint32_t>(x), static_cast<std::uint32_t>(y),
                       static_cast<std::uint32_t>(slice));
}

// Mixes the texels of one channel by the rule for their format.
double mixed_channel(const ImageObject& texture, Parts slice, Parts next, unsigned channel) {
    const TexelFormat& format = texture.image.format;
    if (format.kind == TexelFormat::Kind::floating)
        return format.channel_bytes == 4 ? mixed_floats(slice, next) : mixed_halves(slice, next);
    return texture.sampler.srgb && channel < 3 ? mixed_halves(slice, next)
                                               : mixed_integers(slice, next, format);
}

/// The two texels along an axis that are mixed, after the address mode, and the weight of the second in 1/256.
struct Pair {
    std::array<std::int64_t, 2> index{0, 0};
    std::uint32_t share = 0;
};

Pair pair_at(double at, bool normalized, std::uint32_t extent, Address mode) {
    const Mix mix = mix_at(at, normalized, extent);
    Pair made{{resolve(mix.texel, extent, mode), resolve(mix.texel + 1, extent, mode)}, mix.share};
    // A clamped coordinate is at the centre of the outermost texel.
    if (mode == Address::clamp && made.index[0] == made.index[1]) made.share = 0;
    return made;
}

Texel filtered(const Texels& texels, const Image& image, const SamplePlace& place) {
    const ImageObject& texture = *texels.texture;
    const Sampler& sampler = texture.sampler;
    const std::array<std::uint32_t, 3> extents{image.width, image.height, image.slices};
    std::array<Pair, 3> axes;
    for (unsigned d = 0; d < place.dimensions; ++d)
        axes[d] = pair_at(place.at[d], sampler.normalized_coordinates, extents[d], sampler.address[d]);
    // A one-dimensional image is filtered like a two-dimensional one at y = 0, where half of the weight is on the row
    // above the only one. Layered images are not.
    if (place.dimensions == 1 && !image.layered) axes[1] = pair_at(0, false, 1, sampler.address[1]);
    if (place.dimensions < 3) axes[2].index[0] = place.slice;
    const Shares shares = shares_of(axes[0].share, axes[1].share, axes[2].share);
    const unsigned channels = texture.image.format.channels;
    Part parts[4][8];
    std::array<std::size_t, 2> counts{};
    for (unsigned n = 0, at = 0; n < 8; ++n) {
        if (shares[n] == 0) continue;
        const Texel texel = read_or_border(texels, image, axes[0].index[n & 1], axes[1].index[n >> 1 & 1],
                                           axes[2].index[n >> 2]);
        for (unsigned c = 0; c < channels; ++c)
            parts[c][at] = {texel.number[c], static_cast<std::int32_t>(texel.bits[c]), shares[n]};
        ++at;
        ++counts[n >> 2];
    }
    Texel made;
    for (unsigned c = 0; c < channels; ++c)
        made.number[c] = mixed_channel(texture, {parts[c], counts[0]}, {parts[c] + counts[0], counts[1]}, c);
    return made;
}

Texel nearest(const Texels& texels, const Image& image, const SamplePlace& place) {
    const Sampler& sampler = texels.texture->sampler;
    const std::array<std::uint32_t, 3> extents{image.width, image.height, image.slices};
    std::array<std::int64_t, 3> index{0, 0, place.slice};
    for (unsigned d = 0; d < place.dimensions; ++d) {
        const std::int64_t texel = place.texels
                                       ? static_cast<std::int64_t>(place.at[d])
                                       : texel_at(place.at[d], sampler.normalized_coordinates, extents[d]);
        index[d] = resolve(texel, extents[d], sampler.address[d]);
    }
    return read_or_border(texels, image, index[0], index[1], index[2]);
}

Texel sample_level(const Texels& texels, const Image& image, const SamplePlace& place) {
    return texels.texture->sampler.linear && !place.texels ? filtered(texels, image, place)
                                                           : nearest(texels, image, place);
}

}  // namespace

bool gives_numbers(const ImageObject& texture) noexcept {
    return texture.image.format.kind == TexelFormat::Kind::floating || texture.sampler.promotes;
}

Texel Texels::read(const Image& level, std::uint32_t x, std::uint32_t y, std::uint32_t slice) const {
    const std::uint64_t address =
        level.address + level.slice_pitch * slice + level.pitch * y + std::uint64_t{level.format.bytes()} * x;
    if (log != nullptr) log->add(address, level.format.bytes(), races::Access::read);
    return texel_of(*texture, bytes + (address - texture->image.address));
}

Texel sample(const Texels& texels, const SamplePlace& place) {
    const ImageObject& texture = *texels.texture;
    if (texture.smaller_levels.empty()) return sample_level(texels, texture.image, place);
    const Sampler& sampler = texture.sampler;
    const auto last = static_cast<double>(texture.levels() - 1);
    const double most = std::clamp(double{sampler.most_level}, 0.0, last);
    const double level = std::clamp(std::isnan(place.level) ? 0 : place.level,
                                    std::clamp(double{sampler.least_level}, 0.0, most), most);
    const auto read = [&](double number) {
        return sample_level(texels, texture.level(static_cast<std::size_t>(number)), place);
    };
    if (!sampler.mixes_levels) return read(std::floor(level + 0.5));
    const double rounded = std::floor(level * 256 + 0.5) / 256;  // like the weights between texels
    const double first = std::floor(rounded), weight = rounded - first;
    Texel made = read(first);
    if (weight == 0) return made;
    const Texel second = read(first + 1);
    for (unsigned c = 0; c < 4; ++c)
        made.number[c] = (1 - weight) * made.number[c] + weight * second.number[c];
    return made;
}

Texel gather(const Texels& texels, const SamplePlace& place, unsigned component) {
    const ImageObject& texture = *texels.texture;
    const Image& image = texture.image;
    const Sampler& sampler = texture.sampler;
    const Pair x = pair_at(place.at[0], sampler.normalized_coordinates, image.width, sampler.address[0]);
    const Pair y = pair_at(place.at[1], sampler.normalized_coordinates, image.height, sampler.address[1]);
    constexpr std::array<std::array<unsigned, 2>, 4> order{{{0, 1}, {1, 1}, {1, 0}, {0, 0}}};
    Texel made;
    for (unsigned n = 0; n < 4; ++n) {
        const std::int64_t i = x.index[order[n][0]], j = y.index[order[n][1]];
        const Texel texel = read_or_border(texels, image, i, j, place.slice);
        made.number[n] = texel.number[component];
        made.bits[n] = texel.bits[component];
    }
    return made;
}

double level_of_steps(const Image& image, unsigned dimensions, const Vector3& one, const Vector3& other) {
    const std::array<std::uint32_t, 3> extents{image.width, image.height, image.slices};
    double squares[2] = {0, 0};
    for (unsigned d = 0; d < dimensions; ++d) {
        squares[0] += one[d] * extents[d] * one[d] * extents[d];
        squares[1] += other[d] * extents[d] * other[d] * extents[d];
    }
    return std::log2(std::max(squares[0], squares[1])) / 2;
}

CubePlace on_cube(const Vector3& direction) noexcept {
    const double x = std::fabs(direction[0]), y = std::fabs(direction[1]), z = std::fabs(direction[2]);
    const unsigned axis = x >= y && x >= z ? 0 : y >= z ? 1 : 2;
    const std::uint32_t number = 2 * axis + (direction[axis] >= 0 ? 0 : 1);
    const Face& face = faces[number];
    const double m = face.m.of(direction);
    if (!(m > 0)) return {0, 0.5, 0.5};  // the zero vector or NaN
    return {number, (face.s.of(direction) / m + 1) / 2, (face.t.of(direction) / m + 1) / 2};
}

Vector3 step_on_cube(std::uint32_t number, const Vector3& direction, const Vector3& step) noexcept {
    const Face& face = faces[number];
    const double m = face.m.of(direction);
    const auto moved = [&](const Axis& axis) {
        return (axis.of(step) * m - axis.of(direction) * face.m.of(step)) / (2 * m * m);
    };
    return {moved(face.s), moved(face.t), 0};
}

}  // namespace emulated::machine
