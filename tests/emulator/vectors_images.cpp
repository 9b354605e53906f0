// Textures and surfaces: every opcode on random texels at random places, compared with the expected texels. Texture
// filtering is tested from Python (tests/python/textures).
#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <map>
#include <memory>
#include <stdexcept>

#include "memory/images.hpp"
#include "reference/grammar.hpp"
#include "vectors.hpp"

namespace vectors {
namespace {

using emulated::memory::Image;
using emulated::memory::ImageObject;
using emulated::memory::TexelFormat;

constexpr unsigned threads = 64;
constexpr std::uint32_t width = 8, height = 4;

struct Shape {
    Flag flag;
    std::uint8_t dimensions;
    bool layered, cube;
    std::uint32_t width, height, slices;
    unsigned coordinates;  ///< with the layer, which comes first
};
constexpr Shape shapes[] = {
    {Flag::geometry_1d, 1, false, false, width, 1, 1, 1},
    {Flag::geometry_2d, 2, false, false, width, height, 1, 2},
    {Flag::geometry_3d, 3, false, false, width, height, 3, 3},
    {Flag::a1d, 1, true, false, width, 1, 5, 2},
    {Flag::a2d, 2, true, false, width, height, 5, 3},
    {Flag::cube, 2, false, true, width, width, 6, 3},
    {Flag::acube, 2, true, true, width, width, 12, 4},
};

const Shape& shape_of(const Opcode& opcode) {
    for (const Shape& shape : shapes) {
        if (opcode.flags.has(shape.flag)) return shape;
    }
    return shapes[1];
}

/// Texels of four channels of 32 bits, or of one, in memory that a kernel accesses as an image.
struct Subject {
    Subject(testing::Device& device, const Shape& of, TexelFormat format, bool is_surface, Random& random)
        : shape(of), channels(format.channels) {
        words.resize(std::size_t{of.width} * of.height * of.slices * channels);
        for (auto& word : words) {
            word = format.kind == TexelFormat::Kind::floating
                       ? std::bit_cast<std::uint32_t>(static_cast<float>(random() % 100000) / 64)
                       : static_cast<std::uint32_t>(random());
        }
        auto made = std::make_shared<ImageObject>();
        made->is_surface = is_surface;
        Image& image = made->image;
        image.dimensions = of.dimensions;
        image.layered = of.layered;
        image.cube = of.cube;
        image.gathers = true;
        image.format = format;
        image.address = device.array(words);
        image.width = of.width;
        image.height = of.height;
        image.slices = of.slices;
        image.pitch = std::uint64_t{of.width} * format.bytes();
        image.slice_pitch = image.pitch * of.height;
        made->sampler.normalized_coordinates = of.cube;
        handle = device.images.add(made);
    }
    std::size_t index(std::size_t x, std::size_t y, std::size_t slice) const {
        return ((slice * shape.height + y) * shape.width + x) * channels;
    }

    const Shape& shape;
    unsigned channels;
    std::vector<std::uint32_t> words;
    std::uint64_t handle = 0;
};

std::string numbered(const char* prefix, unsigned count) {
    std::string made = "{";
    for (unsigned i = 0; i < count; ++i) made += (i ? ", " : "") + std::string(prefix) + std::to_string(i);
    return made + "}";
}

/// A kernel whose threads read 16 words each and write 8; `body` computes %o0 to %o7 from %i0 to %i15 and %h.
std::string kernel_of(const std::string& body) {
    std::string text =
        header +
        ".visible .entry k(.param .u64 ph, .param .u64 pin, .param .u64 pout) {\n.reg .b64 %h, %in, %out, "
        "%at, %d<4>;\n.reg .b32 %t, %i<16>, %o<8>;\n.reg .b16 %s<4>;\n.reg .pred %p, %q;\n"
        "ld.param.u64 %h, [ph];\nld.param.u64 %in, [pin];\nld.param.u64 %out, [pout];\n"
        "mov.u32 %t, %tid.x;\nmul.wide.u32 %at, %t, 64;\nadd.u64 %in, %in, %at;\n"
        "mul.wide.u32 %at, %t, 32;\nadd.u64 %out, %out, %at;\n";
    for (unsigned i = 0; i < 16; ++i)
        text += "ld.global.b32 %i" + std::to_string(i) + ", [%in+" + std::to_string(4 * i) + "];\n";
    for (unsigned i = 0; i < 8; ++i) text += "mov.b32 %o" + std::to_string(i) + ", 0;\n";
    text += body;
    for (unsigned i = 0; i < 8; ++i)
        text += "st.global.b32 [%out+" + std::to_string(4 * i) + "], %o" + std::to_string(i) + ";\n";
    return text + "ret;\n}\n";
}

struct Words {
    std::vector<std::uint32_t> in = std::vector<std::uint32_t>(16 * threads);
    std::vector<std::uint32_t> out = std::vector<std::uint32_t>(8 * threads);
};

/// Returns false, after reporting it, if the kernel is refused or faults.
bool run(Tally& tally, const std::string& spelling, const Opcode& opcode, testing::Device& device,
         std::uint64_t handle, Words& words) {
    const std::string& refusal = device.module().find_kernel("k")->refusal;
    if (!refusal.empty()) {
        tally.refused(spelling, refusal);
        return false;
    }
    if (lacks_a_handler(device)) {
        tally.fault(opcode, spelling, "is accepted, but nothing runs it");
        return false;
    }
    const std::uint64_t in = device.array(words.in), out = device.array(words.out);
    if (const auto fault = device.launch("k", {1}, {threads}, handle, in, out)) {
        tally.fault(opcode, spelling, fault->message);
        return false;
    }
    return true;
}

// --- textures ---

std::int64_t clamped(std::int64_t index, std::uint32_t extent) {
    return std::clamp<std::int64_t>(index, 0, std::int64_t{extent} - 1);
}

/// x and y in texels, and the slice.
struct Place {
    double x = 0, y = 0;
    std::int64_t slice = 0;
};

/// The place that a direction meets on a cube of faces of `width` texels, by the table in the programming guide.
Place on_cube(const std::array<double, 3>& at) {
    const double ax = std::abs(at[0]), ay = std::abs(at[1]), az = std::abs(at[2]);
    const unsigned axis = ax >= ay && ax >= az ? 0 : ay >= az ? 1 : 2;
    const bool positive = at[axis] >= 0;
    const double sign = positive ? 1 : -1, m = std::abs(at[axis]);
    const double s = axis == 0 ? -sign * at[2] : axis == 1 ? at[0] : sign * at[0];
    const double t = axis == 1 ? sign * at[2] : -at[1];
    // A normalised coordinate has 21 bits of fraction on an H100.
    const auto texels = [&](double at) {
        return std::floor(std::ldexp((at / m + 1) / 2, 21)) / (1 << 21) * width;
    };
    return {texels(s), texels(t), 2 * axis + (positive ? 0 : 1)};
}

/// The place that the thread's words specify.
Place place_of(const Shape& shape, const std::uint32_t* words, bool integers) {
    std::int64_t layer = 0;
    if (shape.layered) layer = *words++;  // unsigned: a negative number selects the last layer
    std::array<double, 3> at{};
    const unsigned count = shape.coordinates - (shape.layered ? 1 : 0);
    for (unsigned i = 0; i < count; ++i)
        at[i] = integers ? static_cast<std::int32_t>(words[i]) : double{std::bit_cast<float>(words[i])};
    if (shape.cube) {
        Place made = on_cube(at);
        made.slice += 6 * clamped(layer, shape.slices / 6);
        return made;
    }
    Place made{at[0], at[1], clamped(layer, shape.slices)};
    if (shape.dimensions == 3)
        made.slice = clamped(static_cast<std::int64_t>(std::floor(at[2])), shape.slices);
    return made;
}

void fill_coordinates(const Shape& shape, std::uint32_t* words, bool integers, Random& random) {
    const auto somewhere = [&](int from, int to) {
        return from + static_cast<int>(random() % static_cast<unsigned>(to - from));
    };
    if (shape.layered)
        *words++ = static_cast<std::uint32_t>(somewhere(-1, static_cast<int>(shape.slices) + 1));
    for (unsigned i = 0; i < 3; ++i) {
        const float coordinate =
            static_cast<float>(somewhere(-80, 320)) / 32 + (shape.cube ? 0.01f - 4.0f : 0);
        words[i] = integers ? static_cast<std::uint32_t>(somewhere(-3, 12))
                            : std::bit_cast<std::uint32_t>(coordinate);
    }
}

TexelFormat format_of(Type type, unsigned channels) {
    const auto kind = type == Type::f32   ? TexelFormat::Kind::floating
                      : type == Type::s32 ? TexelFormat::Kind::signed_integer
                                          : TexelFormat::Kind::unsigned_integer;
    return {kind, 4, static_cast<std::uint8_t>(channels)};
}

void texture(Tally& tally, const std::string& spelling, const Opcode& opcode, Random& random) {
    const Shape& shape = shape_of(opcode);
    const bool integers = opcode.second == Type::s32;
    const bool gathers = opcode.row->name == "tld4";
    const bool predicate = opcode.flags.has(Flag::geometry_2d) && !gathers;
    std::string extra;
    if (opcode.flags.has(Flag::lod)) extra = ", %i8";
    const unsigned directions = shape.coordinates - (shape.layered ? 1 : 0);
    const std::string derivative = "{" + numbered("%i", directions).substr(1);
    if (opcode.flags.has(Flag::grad)) extra = ", " + derivative + ", " + derivative;
    testing::Device device(kernel_of(spelling + " " + numbered("%o", 4) + (predicate ? "|%p" : "") +
                                     ", [%h, " + numbered("%i", shape.coordinates) + "]" + extra + ";\n" +
                                     (predicate ? "selp.b32 %o4, 1, 0, %p;\n" : "")));
    Subject subject(device, shape, format_of(opcode.type, 4), false, random);
    Words words;
    for (unsigned t = 0; t < threads; ++t) fill_coordinates(shape, &words.in[16 * t], integers, random);
    if (!run(tally, spelling, opcode, device, subject.handle, words)) return;
    const unsigned component = opcode.flags.has(Flag::g)   ? 1
                               : opcode.flags.has(Flag::b) ? 2
                               : opcode.flags.has(Flag::a) ? 3
                                                           : 0;
    for (unsigned t = 0; t < threads; ++t) {
        const Place at = place_of(shape, &words.in[16 * t], integers);
        for (unsigned c = 0; c < 4; ++c) {
            // The texels around a gather's coordinate are found as for linear filtering: to 1/256, on an H100.
            const auto lower = [&](double texels) {
                return static_cast<std::int64_t>(
                    std::floor(gathers ? std::floor(texels * 256 + 0.5) / 256 - 0.5 : texels));
            };
            std::int64_t x = lower(at.x), y = lower(at.y);
            if (gathers && (c == 1 || c == 2)) ++x;
            if (gathers && c < 2) ++y;
            const std::size_t index = subject.index(static_cast<std::size_t>(clamped(x, shape.width)),
                                                    static_cast<std::size_t>(clamped(y, shape.height)),
                                                    static_cast<std::size_t>(at.slice));
            const std::uint32_t expected = subject.words[index + (gathers ? component : c)];
            tally.compare(opcode, spelling, {Type::b32, expected}, words.out[8 * t + c],
                          [&] { return "thread " + std::to_string(t) + ", component " + std::to_string(c); });
        }
        if (predicate)
            tally.compare(opcode, spelling, {Type::b32, 1}, words.out[8 * t + 4],
                          [] { return "is not resident"; });
    }
}

// --- surfaces ---

/// One access of a thread: its first byte, and whether it is in bounds.
struct Access {
    std::size_t byte = 0;
    bool inside = true;
};

/// Fills the coordinates with values in bounds or, unless that is a fault, also out of bounds.
Access fill_access(const Subject& subject, const Opcode& opcode, std::uint32_t* words, unsigned bytes,
                   Random& random) {
    const Shape& shape = subject.shape;
    const bool outside_too = !opcode.flags.has(Flag::trap);
    const auto row = static_cast<int>(shape.width * 4 * subject.channels / bytes);
    const auto pick = [&](int extent) {
        const int beyond = outside_too ? 2 : 0;
        return static_cast<int>(random() % static_cast<unsigned>(extent + 2 * beyond)) - beyond;
    };
    const int x = pick(row), y = pick(static_cast<int>(shape.height)),
              slice = pick(static_cast<int>(shape.slices));
    std::uint32_t* next = words;
    if (shape.layered) *next++ = static_cast<std::uint32_t>(slice);
    *next++ = static_cast<std::uint32_t>(opcode.flags.has(Flag::p) ? x : x * static_cast<int>(bytes));
    if (shape.dimensions > 1) *next++ = static_cast<std::uint32_t>(y);
    if (shape.dimensions > 2) *next++ = static_cast<std::uint32_t>(slice);
    const bool slices = shape.layered || shape.dimensions > 2, rows = shape.dimensions > 1;
    Access made;
    const auto within = [&](int at, int extent) {
        made.inside = made.inside && at >= 0 && at < extent;
        return static_cast<std::size_t>(std::clamp(at, 0, extent - 1));
    };
    const std::size_t column = within(x, row);
    const std::size_t line = rows ? within(y, static_cast<int>(shape.height)) : 0;
    const std::size_t plane = slices ? within(slice, static_cast<int>(shape.slices)) : 0;
    made.byte = 4 * subject.index(0, line, plane) + column * bytes;
    if (opcode.flags.has(Flag::clamp)) made.inside = true;
    return made;
}

std::string coordinates_of(const Shape& shape) { return "[%h, " + numbered("%i", shape.coordinates) + "]"; }

unsigned lanes_of(const Opcode& opcode) {
    return opcode.flags.has(Flag::v4) ? 4 : opcode.flags.has(Flag::v2) ? 2 : 1;
}

const char* registers_of(unsigned bytes) { return bytes <= 2 ? "%s" : bytes == 4 ? "%o" : "%d"; }

/// PTX that moves values between the 32-bit words of a thread and the registers of an access.
std::string moved(unsigned bytes, unsigned lanes, bool to_words) {
    std::string text;
    for (unsigned k = 0; k < lanes; ++k) {
        const std::string n = std::to_string(k), low = std::to_string(2 * k),
                          high = std::to_string(2 * k + 1);
        if (bytes <= 2)
            text += to_words ? "cvt.u32.u16 %o" + n + ", %s" + n + ";\n"
                             : "cvt.u16.u32 %s" + n + ", %i" + std::to_string(8 + k) + ";\n";
        if (bytes == 8) {
            text += to_words ? "mov.b64 {%o" + low + ", %o" + high + "}, %d" + n + ";\n"
                             : "mov.b64 %d" + n + ", {%i" + std::to_string(8 + 2 * k) + ", %i" +
                                   std::to_string(9 + 2 * k) + "};\n";
        }
        if (bytes == 4 && !to_words) text += "mov.b32 %o" + n + ", %i" + std::to_string(8 + k) + ";\n";
    }
    return text;
}

void load(Tally& tally, const std::string& spelling, const Opcode& opcode, Random& random) {
    const Shape& shape = shape_of(opcode);
    const unsigned bytes = emulated::ptx::bytes_of(opcode.type), lanes = lanes_of(opcode);
    testing::Device device(kernel_of(spelling + " " + numbered(registers_of(bytes), lanes) + ", " +
                                     coordinates_of(shape) + ";\n" + moved(bytes, lanes, true)));
    Subject subject(device, shape, format_of(Type::u32, 4), true, random);
    Words words;
    std::vector<Access> accesses;
    for (unsigned t = 0; t < threads; ++t)
        accesses.push_back(fill_access(subject, opcode, &words.in[16 * t], bytes * lanes, random));
    if (!run(tally, spelling, opcode, device, subject.handle, words)) return;
    const auto* memory = reinterpret_cast<const std::byte*>(subject.words.data());
    for (unsigned t = 0; t < threads; ++t) {
        for (unsigned k = 0; k < lanes; ++k) {
            Bits expected = 0, got = 0;
            if (accesses[t].inside) std::memcpy(&expected, memory + accesses[t].byte + k * bytes, bytes);
            std::memcpy(&got, &words.out[8 * t + (bytes == 8 ? 2 * k : k)], bytes == 8 ? 8 : 4);
            tally.compare(opcode, spelling, {Type::b64, expected}, got,
                          [&] { return "thread " + std::to_string(t); });
        }
    }
}

/// Writes a thread's values at its place, as bytes.
using Effect = void (*)(const Opcode& opcode, const std::uint32_t* values, std::byte* at, unsigned bytes);

void put(const Opcode& opcode, const std::uint32_t* values, std::byte* at, unsigned bytes) {
    const unsigned each = emulated::ptx::bytes_of(opcode.type), lanes = lanes_of(opcode);
    if (opcode.flags.has(Flag::p)) {  // channels without a value are 0
        std::memset(at, 0, bytes);
        std::memcpy(at, values, std::size_t{4} * lanes);
        return;
    }
    for (unsigned k = 0; k < lanes; ++k) std::memcpy(at + k * each, values + (each == 8 ? 2 * k : k), each);
}

template <class T>
void combine(const Opcode& opcode, const std::uint32_t* values, std::byte* at) {
    T old{}, value{};
    std::memcpy(&old, at, sizeof old);
    std::memcpy(&value, values, sizeof value);
    T made = static_cast<T>(old | value);
    if (opcode.flags.has(Flag::add)) made = static_cast<T>(old + value);
    if (opcode.flags.has(Flag::and_)) made = static_cast<T>(old & value);
    if (opcode.flags.has(Flag::min)) made = value < old ? value : old;
    if (opcode.flags.has(Flag::max)) made = value > old ? value : old;
    std::memcpy(at, &made, sizeof made);
}

void reduce(const Opcode& opcode, const std::uint32_t* values, std::byte* at, unsigned) {
    if (opcode.type == Type::u64) return combine<std::uint64_t>(opcode, values, at);
    if (opcode.type == Type::s32) return combine<std::int32_t>(opcode, values, at);
    combine<std::uint32_t>(opcode, values, at);
}

/// Runs a store or a reduction, and compares the whole surface afterwards.
void change(Tally& tally, const std::string& spelling, const Opcode& opcode, Effect effect, Random& random) {
    const Shape& shape = shape_of(opcode);
    const unsigned each = emulated::ptx::bytes_of(opcode.type), lanes = lanes_of(opcode);
    const bool formatted = opcode.flags.has(Flag::p), reduces = opcode.row->name == "sured";
    const unsigned channels = reduces && formatted ? 1 : 4;
    const unsigned bytes = formatted ? 4 * channels : each * lanes;
    const std::string values = numbered(registers_of(each), lanes);
    testing::Device device(kernel_of(moved(each, lanes, false) + spelling + " " + coordinates_of(shape) +
                                     ", " + (reduces ? values.substr(1, values.size() - 2) : values) +
                                     ";\n"));
    Subject subject(device, shape, format_of(Type::u32, channels), true, random);
    std::vector<std::uint32_t> expected = subject.words;
    auto* memory = reinterpret_cast<std::byte*>(expected.data());
    Words words;
    std::map<std::size_t, unsigned> writers;  // by place
    for (unsigned t = 0; t < threads; ++t) {
        std::uint32_t* own = &words.in[16 * t];
        for (unsigned k = 8; k < 16; ++k) own[k] = static_cast<std::uint32_t>(random());
        const Access access = fill_access(subject, opcode, own, bytes, random);
        if (!access.inside) continue;
        // Two threads store the same values at one place, so that their order does not matter.
        const auto [writer, first] = writers.try_emplace(access.byte, t);
        if (!reduces && !first) std::copy_n(&words.in[16 * writer->second + 8], 8, own + 8);
        effect(opcode, own + 8, memory + access.byte, bytes);
    }
    if (!run(tally, spelling, opcode, device, subject.handle, words)) return;
    for (std::size_t i = 0; i < expected.size(); ++i)
        tally.compare(opcode, spelling, {Type::b32, expected[i]}, subject.words[i],
                      [&] { return "word " + std::to_string(i); });
}

// --- queries ---

/// Runs a query on a three-dimensional image, and on a layered two-dimensional one.
void query(Tally& tally, const std::string& spelling, const Opcode& opcode, Random& random) {
    const bool is_surface = opcode.row->name == "suq";
    for (const Shape& shape : {shapes[2], shapes[4]}) {
        testing::Device device(kernel_of(spelling + " %o0, [%h];\n"));
        Subject subject(device, shape, format_of(Type::s32, 2), is_surface, random);
        Words words;
        if (!run(tally, spelling, opcode, device, subject.handle, words)) return;
        const auto is = [&](Flag flag) { return opcode.flags.has(flag); };
        const std::uint32_t expected = is(Flag::width)        ? shape.width
                                       : is(Flag::height)     ? shape.height
                                       : is(Flag::depth)      ? (shape.dimensions == 3 ? shape.slices : 0)
                                       : is(Flag::array_size) ? (shape.layered ? shape.slices : 0)
                                                              : 1;  // levels and samples
        for (unsigned t = 0; t < threads; ++t)
            tally.compare(opcode, spelling, {Type::b32, expected}, words.out[8 * t],
                          [] { return "a query"; });
    }
}

void kind(Tally& tally, const std::string& spelling, const Opcode& opcode, Random& random) {
    for (const bool is_surface : {false, true}) {
        testing::Device device(kernel_of(spelling + " %p, %h;\nselp.b32 %o0, 1, 0, %p;\n"));
        Subject subject(device, shapes[1], format_of(Type::u32, 1), is_surface, random);
        Words words;
        if (!run(tally, spelling, opcode, device, subject.handle, words)) return;
        // A handle of an object is not one of the variables that the instruction asks about.
        for (unsigned t = 0; t < threads; ++t)
            tally.compare(opcode, spelling, {Type::b32, 0}, words.out[8 * t], [] { return "a kind"; });
    }
}

}  // namespace

void image_vectors(Tally& tally) {
    Random random(20);
    for (const reference::Syntax& syntax : reference::image_syntax()) {
        for (const std::string& spelling : reference::spellings_of(syntax)) {
            const auto opcode = known(spelling);
            if (!opcode) {
                tally.refused(spelling, "not in the table");
                continue;
            }
            const std::string_view name = opcode->row->name;
            if (name == "tex" || name == "tld4")
                texture(tally, spelling, *opcode, random);
            else if (name == "suld")
                load(tally, spelling, *opcode, random);
            else if (name == "sust")
                change(tally, spelling, *opcode, put, random);
            else if (name == "sured")
                change(tally, spelling, *opcode, reduce, random);
            else if (name == "istypep")
                kind(tally, spelling, *opcode, random);
            else
                query(tally, spelling, *opcode, random);
        }
    }
}

}  // namespace vectors
