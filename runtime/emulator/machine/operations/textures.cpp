// Handlers of texture and surface instructions. An object is looked up once for all lanes that name it.
#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <memory>
#include <string>

#include <fmt/format.h>

#include "machine/groups.hpp"
#include "machine/operations/sampling.hpp"
#include "machine/registry.hpp"
#include "machine/warp.hpp"
#include "program/variants.hpp"

namespace emulated::machine {
namespace {

using memory::Image;
using memory::ImageObject;
using memory::TexelFormat;
using program::Geometry;
using program::ImageAccess;

// --- objects -----------------------------------------------------------------------------------------------

constexpr const char* name_of(bool is_surface) { return is_surface ? "surface" : "texture"; }

template <class... Values>
const Instruction* bad_image(Lanes& s, const Instruction* i, u32 lanes, fmt::format_string<Values...> message,
                             Values&&... values) {
    return misuse(s, i, lanes, fmt::format(message, std::forward<Values>(values)...),
                  LaneFault::What::bad_image);
}

std::shared_ptr<const ImageObject> find_object(const Lanes& s, u64 handle) {
    const memory::ImageObjects* objects = s.block->grid->request->images;
    return objects == nullptr ? nullptr : objects->find(handle);
}

/// An object that lanes use, and the host address of its bytes.
struct Opened {
    std::shared_ptr<const ImageObject> object;
    std::byte* bytes = nullptr;
};

// Returns null after a fault of these lanes.
const Instruction* open(Lanes& s, const Instruction* i, u64 handle, u32 lanes, bool is_surface,
                        Opened& opened) {
    opened.object = find_object(s, handle);
    const char* kind = name_of(is_surface);
    if (opened.object == nullptr)
        return bad_image(
            s, i, lanes,
            "{:#x} is not a {} object: it was never one, or was destroyed before the kernel had finished",
            handle, kind);
    if (opened.object->is_surface != is_surface)
        return bad_image(s, i, lanes, "the kernel uses a {} object as a {}", name_of(!is_surface), kind);
    const Image& image = opened.object->image;
    const memory::Allocation* found = s.memory->find(image.address);
    const u64 span = opened.object->span();
    if (found == nullptr || image.address + span > found->base + found->bytes) {
        fault(s, i, LaneFault::What::out_of_bounds, lanes, image.address);
        s.fault.bytes = static_cast<u32>(span);
        s.fault.space = kind;
        return nullptr;
    }
    if (found->serial != image.serial)
        return bad_image(s, i, lanes,
                         "the memory of this {} was freed: another allocation has its address now", kind);
    opened.bytes = found->host + (image.address - found->base);
    return i + 1;
}

// Calls use(opened, lanes) for each distinct object. Returns null after a fault, as must `use`.
template <class Use>
const Instruction* for_objects(Lanes& s, const Instruction* i, const u64* handles, bool is_surface,
                               const Use& use) {
    for (u32 left = s.mask; left != 0;) {
        const u64 handle = handles[__builtin_ctz(left)];
        const u32 lanes = lanes_where(left, [&](unsigned l) { return handles[l] == handle; });
        left &= ~lanes;
        Opened opened;
        if (open(s, i, handle, lanes, is_surface, opened) == nullptr || use(opened, lanes) == nullptr)
            return nullptr;
    }
    return i + 1;
}

const char* shape_of(const Image& image) {
    if (image.kind == Image::Kind::linear) return "linear memory";
    if (image.cube) return image.layered ? "layers of cubes" : "a cube";
    static constexpr const char* plain[] = {"one dimension", "two dimensions", "three dimensions"};
    static constexpr const char* layered[] = {"layers of one dimension", "layers of two dimensions"};
    return image.layered ? layered[image.dimensions - 1] : plain[image.dimensions - 1];
}

// True if an instruction of this geometry can access such an image. Surface instructions treat a cube's faces as layers.
bool fits(const Image& image, const Geometry& geometry, bool is_surface) {
    const bool takes_faces = is_surface && geometry.flag == Flag::a2d;
    if (image.cube) return takes_faces || (geometry.cube && geometry.layered == image.layered);
    return !geometry.cube && geometry.dimensions == image.dimensions && geometry.layered == image.layered;
}

// --- textures ----------------------------------------------------------------------------------------------

// Why a texture cannot be read by this access; empty if it can.
std::string objection(const ImageObject& texture, const ImageAccess& access, bool gathers) {
    const Image& image = texture.image;
    if (!fits(image, access.geometry(), false)) {
        return fmt::format("the kernel reads the texture by tex.{}, and it is of {}", access.geometry().name,
                           shape_of(image));
    }
    const bool numbers = access.type == Type::f32;
    if (numbers != gives_numbers(texture)) {
        return numbers
                   ? "the kernel reads floating-point numbers, and the texture gives integers: let it promote them "
                     "(cudaReadModeNormalizedFloat), or read integers"
                   : "the kernel reads integers, and the texture gives floating-point numbers";
    }
    if (access.coordinate == Type::f32 && image.kind == Image::Kind::linear)
        return "a texture over linear memory is read at integers: tex1Dfetch";
    const bool by_texels = access.coordinate == Type::s32;
    if (by_texels && texture.sampler.normalized_coordinates)
        return "the kernel reads at integer coordinates, and the texture's are normalised";
    if (gathers && !image.gathers)
        return "tex2Dgather needs a CUDA array that was made for it (CUDA_ARRAY3D_TEXTURE_GATHER)";
    return {};
}

SamplePlace place_of(Lanes& s, const Instruction* i, const ImageAccess& access, const ImageObject& texture,
                     unsigned lane) {
    const Image& image = texture.image;
    const Geometry& geometry = access.geometry();
    const u32* list = s.lists + i->operand[0];
    const auto number_at = [&](u32 slot) { return double{lanes_at<float>(s, slot)[lane]}; };
    SamplePlace place;
    place.dimensions = geometry.dimensions;
    place.texels = access.coordinate == Type::s32;
    u32 layer = 0;
    if (geometry.layered) layer = lanes_at<u32>(s, *list++)[lane];
    for (unsigned d = 0; d < geometry.dimensions; ++d) {
        place.at[d] =
            place.texels ? static_cast<double>(lanes_at<std::int32_t>(s, list[d])[lane]) : number_at(list[d]);
    }
    const u32* levels = list + geometry.dimensions;
    Vector3 steps[2] = {};
    if (access.what == Flag::lod) place.level = number_at(levels[0]) + double{texture.sampler.level_bias};
    if (access.what == Flag::grad) {
        for (unsigned d = 0; d < 2 * geometry.dimensions; ++d)
            steps[d / geometry.dimensions][d % geometry.dimensions] = number_at(levels[d]);
    }
    u32 layers = image.slices;
    if (image.cube) {
        const CubePlace on = on_cube(place.at);
        for (Vector3& step : steps) step = step_on_cube(on.face, place.at, step);
        place.dimensions = 2;
        place.at = {on.s, on.t, 0};
        place.slice = on.face;
        layers /= 6;
    }
    if (geometry.layered) {
        const u32 within = std::min(layer, layers - 1);
        place.slice += image.cube ? 6 * within : within;
    }
    if (access.what == Flag::grad)
        place.level =
            level_of_steps(image, place.dimensions, steps[0], steps[1]) + double{texture.sampler.level_bias};
    return place;
}

template <bool Gathers>
const Instruction* read_texture(Lanes& s, const Instruction* i) {
    const ImageAccess access = program::unpacked<ImageAccess>(i);
    const auto component = static_cast<unsigned>(access.what == Flag::g   ? 1
                                                 : access.what == Flag::b ? 2
                                                 : access.what == Flag::a ? 3
                                                                          : 0);
    u32 results[4][32];
    const Instruction* after =
        for_objects(s, i, lanes_at<u64>(s, i->operand[5]), false, [&](const Opened& opened, u32 lanes) {
            const ImageObject& texture = *opened.object;
            if (const std::string why = objection(texture, access, Gathers); !why.empty())
                return bad_image(s, i, lanes, "{}", why);
            const Texels texels{&texture, opened.bytes, s.log};
            for (const unsigned l : LanesOf{lanes}) {
                const SamplePlace place = place_of(s, i, access, texture, l);
                const Texel texel = Gathers ? gather(texels, place, component) : sample(texels, place);
                for (unsigned c = 0; c < 4; ++c) {
                    const auto number = static_cast<float>(texel.number[c]);
                    results[c][l] = access.type == Type::f32 ? std::bit_cast<u32>(number) : texel.bits[c];
                }
            }
            return i;
        });
    if (after == nullptr) return nullptr;
    for (unsigned c = 0; c < 4; ++c) write_lanes(s, i->operand[1 + c], results[c]);
    return after;
}

// --- surfaces ----------------------------------------------------------------------------------------------

/// One lane's access: its byte offset in the surface, and whether it is inside and aligned.
struct SurfacePlace {
    u64 offset = 0;
    bool inside = true;
    bool aligned = true;
};

SurfacePlace surface_place(Lanes& s, const Instruction* i, const ImageAccess& access, const Image& image,
                           u32 access_bytes, unsigned lane) {
    const Geometry& geometry = access.geometry();
    const u32* list = s.lists + i->operand[0];
    const auto next = [&] { return std::int64_t{lanes_at<std::int32_t>(s, *list++)[lane]}; };
    std::int64_t slice = geometry.layered ? next() : 0;
    std::int64_t x = next();
    if (access.formatted) x *= image.format.bytes();
    std::int64_t y = geometry.dimensions > 1 ? next() : 0;
    if (geometry.dimensions > 2) slice = next();
    SurfacePlace made;
    const auto place = [&](std::int64_t& at, std::int64_t last) {
        if (at >= 0 && at <= last) return;
        made.inside = false;
        at = std::clamp<std::int64_t>(at, 0, std::max<std::int64_t>(last, 0));
    };
    const std::int64_t row = std::int64_t{image.width} * image.format.bytes();
    made.aligned = x % access_bytes == 0;
    if (row < access_bytes) made.aligned = false;
    place(x, row - access_bytes);
    place(y, std::int64_t{image.height} - 1);
    place(slice, std::int64_t{image.slices} - 1);
    made.offset =
        image.slice_pitch * static_cast<u64>(slice) + image.pitch * static_cast<u64>(y) + static_cast<u64>(x);
    return made;
}

u32 access_bytes_of(const ImageAccess& access, const Image& image) {
    return access.formatted ? image.format.bytes() : ptx::bytes_of(access.type) * access.values;
}

// Calls use(opened, offset, lane) for every lane, but with .zero only for accesses inside the surface. With .clamp, the
// offset of an access outside is that of the nearest place inside. Returns null after a fault.
template <class Use>
const Instruction* for_places(Lanes& s, const Instruction* i, const u64* handles, const ImageAccess& access,
                              const Use& use) {
    return for_objects(s, i, handles, true, [&](const Opened& opened, u32 lanes) {
        const Image& image = opened.object->image;
        if (!fits(image, access.geometry(), true))
            return bad_image(s, i, lanes, "the kernel uses the surface by .{}, and it is of {}",
                             access.geometry().name, shape_of(image));
        const u32 bytes = access_bytes_of(access, image);
        std::array<SurfacePlace, 32> places;
        for (const unsigned l : LanesOf{lanes}) places[l] = surface_place(s, i, access, image, bytes, l);
        const u32 left = lanes_where(lanes, [&](unsigned l) { return !places[l].inside; });
        const u32 misaligned = lanes_where(lanes, [&](unsigned l) { return !places[l].aligned; });
        if (access.outside == Flag::trap && left != 0)
            return bad_image(
                s, i, left,
                "an access of {} bytes outside of the surface, which has {} bytes x {} rows x {} slices "
                "(x counts bytes)",
                bytes, u64{image.width} * image.format.bytes(), image.height, image.slices);
        if (misaligned != 0)
            return bad_image(s, i, misaligned,
                             "an access of {} bytes to a surface needs an x that is a multiple of them",
                             bytes);
        for (const unsigned l : LanesOf{access.outside == Flag::zero ? lanes & ~left : lanes})
            use(opened, places[l].offset, l);
        return i;
    });
}

const Instruction* load_surface(Lanes& s, const Instruction* i) {
    const ImageAccess access = program::unpacked<ImageAccess>(i);
    const u32 bytes = ptx::bytes_of(access.type);
    u64 values[4][32] = {};
    const auto load = [&](const Opened& opened, u64 offset, unsigned l) {
        if (s.log != nullptr)
            s.log->add(opened.object->image.address + offset, u64{bytes} * access.values,
                       races::Access::read);
        for (unsigned v = 0; v < access.values; ++v)
            std::memcpy(&values[v][l], opened.bytes + offset + std::size_t{v} * bytes, bytes);
    };
    const auto* handles = lanes_at<u64>(s, i->operand[1u + access.values]);
    if (for_places(s, i, handles, access, load) == nullptr) return nullptr;
    const u32 wide = std::max(2u, bytes);  // register size
    for (unsigned v = 0; v < access.values; ++v) {
        std::byte* d = s.registers + i->operand[1 + v];
        for (const unsigned l : LanesOf{s.mask}) std::memcpy(d + std::size_t{l} * wide, &values[v][l], wide);
    }
    return i + 1;
}

/// Saturates a channel of sust.p: an integer outside the format's range becomes the nearest value inside, as on an H100.
u32 saturated(u32 bits, const TexelFormat& format) {
    if (format.channel_bytes == 4) return bits;
    const unsigned width = 8u * format.channel_bytes;
    if (format.kind == TexelFormat::Kind::unsigned_integer) return std::min(bits, (1u << width) - 1);
    const std::int32_t limit = 1 << (width - 1);
    return static_cast<u32>(std::clamp(static_cast<std::int32_t>(bits), -limit, limit - 1));
}

// A formatted store converts 32-bit values to the format of the surface's texels.
const Instruction* store_surface(Lanes& s, const Instruction* i) {
    const ImageAccess access = program::unpacked<ImageAccess>(i);
    const u32 bytes = ptx::bytes_of(access.type), wide = std::max(2u, bytes);
    const Geometry& geometry = access.geometry();
    const u32* sources = s.lists + i->operand[0] + geometry.coordinates();
    const auto value = [&](unsigned v, unsigned l) {
        return s.registers + sources[v] + std::size_t{l} * wide;
    };
    const auto store = [&](const Opened& opened, u64 offset, unsigned l) {
        const TexelFormat& format = opened.object->image.format;
        std::byte* at = opened.bytes + offset;
        const u64 written = access.formatted ? format.bytes() : u64{bytes} * access.values;
        if (s.log != nullptr)
            s.log->add(opened.object->image.address + offset, written, races::Access::write);
        if (!access.formatted) {
            for (unsigned v = 0; v < access.values; ++v)
                std::memcpy(at + std::size_t{v} * bytes, value(v, l), bytes);
            return;
        }
        for (unsigned c = 0; c < format.channels; ++c, at += format.channel_bytes) {
            u32 bits = 0;
            if (c < access.values) std::memcpy(&bits, value(c, l), sizeof bits);
            bits = saturated(bits, format);
            std::memcpy(at, &bits, format.channel_bytes);
        }
    };
    if (access.formatted) {
        // Half-precision texels would need a conversion from float.
        const u32 halves = lanes_where(s.mask, [&](unsigned l) {
            const auto object = find_object(s, lanes_at<u64>(s, i->operand[1])[l]);
            return object != nullptr && object->image.format.kind == TexelFormat::Kind::floating &&
                   object->image.format.channel_bytes == 2;
        });
        if (halves != 0)
            return bad_image(s, i, s.mask, "sust.p to a surface of halves is not supported: use sust.b");
    }
    return for_places(s, i, lanes_at<u64>(s, i->operand[1]), access, store);
}

template <class T>
void reduce_at(std::byte* at, Flag what, T value) {
    auto* to = reinterpret_cast<T*>(at);
    T old = __atomic_load_n(to, __ATOMIC_RELAXED);
    for (;;) {
        const T made = what == Flag::add    ? static_cast<T>(old + value)
                       : what == Flag::min  ? std::min(old, value)
                       : what == Flag::max  ? std::max(old, value)
                       : what == Flag::and_ ? static_cast<T>(old & value)
                                            : static_cast<T>(old | value);
        if (__atomic_compare_exchange_n(to, &old, made, true, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED)) return;
    }
}

const Instruction* reduce_surface(Lanes& s, const Instruction* i) {
    const ImageAccess access = program::unpacked<ImageAccess>(i);
    const Geometry& geometry = access.geometry();
    const u32 source = s.lists[i->operand[0] + geometry.dimensions];
    u32 wrong = 0;
    const auto reduce = [&](const Opened& opened, u64 offset, unsigned l) {
        const Image& image = opened.object->image;
        std::byte* at = opened.bytes + offset;
        const u32 bytes = ptx::bytes_of(access.type);
        if (access.formatted && image.format.bytes() != 4) {
            wrong |= 1u << l;
            return;
        }
        if (s.log != nullptr) s.log->add(image.address + offset, bytes, races::Access::strong_write);
        const bool is_signed = access.formatted ? image.format.kind == TexelFormat::Kind::signed_integer
                                                : access.type == Type::s32;
        if (access.type == Type::u64)
            reduce_at(at, access.what, lanes_at<u64>(s, source)[l]);
        else if (is_signed)
            reduce_at(at, access.what, lanes_at<std::int32_t>(s, source)[l]);
        else
            reduce_at(at, access.what, lanes_at<u32>(s, source)[l]);
    };
    const Instruction* after = for_places(s, i, lanes_at<u64>(s, i->operand[1]), access, reduce);
    if (after == nullptr || wrong == 0) return after;
    return bad_image(s, i, wrong, "sured.p needs a surface of one 32-bit integer a texel");
}

// --- queries -----------------------------------------------------------------------------------------------

u32 answer_of(const ImageObject& object, Flag what) {
    const Image& image = object.image;
    const u32 layers = image.cube ? image.slices / 6 : image.slices;
    return what == Flag::width               ? image.width
           : what == Flag::height            ? (image.dimensions > 1 ? image.height : 0)
           : what == Flag::depth             ? (image.dimensions > 2 ? image.slices : 0)
           : what == Flag::array_size        ? (image.layered ? layers : 0)
           : what == Flag::num_mipmap_levels ? static_cast<u32>(object.levels())
                                             : 1;  // num_samples
}

template <bool IsSurface>
const Instruction* query(Lanes& s, const Instruction* i) {
    const ImageAccess access = program::unpacked<ImageAccess>(i);
    u32 results[32];
    const auto ask = [&](const Opened& opened, u32 lanes) {
        for (const unsigned l : LanesOf{lanes}) results[l] = answer_of(*opened.object, access.what);
        return i;
    };
    const Instruction* after = for_objects(s, i, lanes_at<u64>(s, i->operand[1]), IsSurface, ask);
    if (after != nullptr) write_lanes(s, i->operand[0], results);
    return after;
}

// istypep tests variables of opaque types. An H100 returns false for the handle of a texture object.
const Instruction* is_kind(Lanes& s, const Instruction* i) {
    write_predicate(s, i->operand[0], 0);
    return i + 1;
}

}  // namespace

void register_textures(Registry& r) {
    r.add(Operation::tex, read_texture<false>);
    r.add(Operation::tld4, read_texture<true>);
    r.add(Operation::suld, load_surface);
    r.add(Operation::sust, store_surface);
    r.add(Operation::sured, reduce_surface);
    r.add(Operation::txq, query<false>);
    r.add(Operation::suq, query<true>);
    r.add(Operation::istypep, is_kind);
}

}  // namespace emulated::machine
