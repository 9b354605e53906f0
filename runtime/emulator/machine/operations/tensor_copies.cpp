// Handlers of copies of tiles by tensor maps. A tile is translated into runs of bytes, with all checks, when the copy is
// issued; machine/transfers performs it later. The layouts are those of the PTX ISA, "Tensors".
#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "machine/operations/bulk.hpp"
#include "machine/reduction.hpp"
#include "machine/registry.hpp"
#include "memory/tensor_map.hpp"
#include "program/tensor_access.hpp"

namespace emulated::machine {
namespace {

using memory::TensorElement;
using memory::TensorMap;
using program::TensorAccess;

constexpr u64 tile_alignment = 128;
constexpr unsigned swizzled_bytes = 16;  // which a swizzle moves together
// The value of every two bytes outside the tensor if they are filled with NaN. The PTX manual does not say which NaN it
// is; fma.oob recognises this one.
constexpr u16 outside_nan = 0x7ff7;
constexpr const char* not_a_map =
    "the bytes are not a tensor map of cuTensorMapEncodeTiled or cuTensorMapEncodeIm2col, or were changed since";

/// A tile that one lane copies.
struct AskedTile {
    TensorMap map;
    bool stores = false;
    std::array<s64, 5> start{};   ///< of the tile's first element
    std::array<s64, 3> offset{};  ///< im2col: added to each position, which still moves within the corners
    u64 shared = 0;               ///< where the tile starts in the shared memory of a block, for its swizzle
    std::size_t rank() const { return map.rank; }

    /// Elements of a row: of one slice of an interleaved tensor.
    u32 row_elements() const {
        return map.interleave == 0 ? map.row_elements() : map.slice_bytes() / map.element_bytes();
    }
    u32 slices() const { return map.row_elements() / row_elements(); }
    u32 row_bytes() const { return row_elements() * map.element_bytes(); }
    /// The distance between rows in shared memory: a swizzle pads rows to its width.
    u32 pitch() const { return map.swizzle == 0 ? row_bytes() : map.swizzle_bytes(); }
    u64 rows() const {
        u64 made = slices();
        if (map.im2col) return made * map.pixels;
        for (std::size_t d = 1; d < rank(); ++d) made *= map.box_elements(d);
        return made;
    }
    bool is_inside(std::size_t d, s64 coordinate) const {
        return coordinate >= 0 && coordinate < static_cast<s64>(map.extents[d]);
    }
};

const Instruction* bad_tensor(Lanes& s, const Instruction* i, unsigned lane, std::string message) {
    return misuse(s, i, 1u << lane, std::move(message), LaneFault::What::bad_tensor);
}

// --- tensor maps -------------------------------------------------------------------------------------------

// Returns the host address of the lane's tensor map, or null after a fault.
std::byte* place_of_map(Lanes& s, const Instruction* i, unsigned lane, u64 address) {
    if (address % TensorMap::alignment != 0)
        return fail(s, i, LaneFault::What::misaligned, lane,
                    {Space::global, address, 0, TensorMap::alignment});
    const auto is_in = [&](u64 window) { return address - window < program::window_bytes; };
    const char* elsewhere = is_in(program::shared_window)  ? "shared"
                            : is_in(program::local_window) ? "local"
                                                           : nullptr;
    if (elsewhere != nullptr) {
        bad_tensor(
            s, i, lane,
            fmt::format(
                "the tensor map is in {} memory, and must be in global, constant or parameter memory. A kernel's "
                "parameter stays there if it is declared `const __grid_constant__ CUtensorMap`",
                elsewhere));
        return nullptr;
    }
    bool read_only = false;
    const u64 at = place_of(s, Space::generic, lane, address, TensorMap::bytes, false, read_only);
    if (at == 0)
        return fail(s, i, LaneFault::What::out_of_bounds, lane, {Space::global, address, TensorMap::bytes});
    if (!is_in(program::param_window)) log_access(s, address, TensorMap::bytes, races::Access::read);
    return reinterpret_cast<std::byte*>(at);  // NOLINT(performance-no-int-to-ptr)
}

bool is_parameter(u64 address) { return address - program::param_window < program::window_bytes; }

// Returns false after a fault, if the lane's tensor map at `at` has changed since tensor copies saw it.
bool sees_map(Lanes& s, const Instruction* i, unsigned lane, u64 address, const std::byte* at) {
    if (is_parameter(address) || s.block->grid->seen_tensor_maps.see(at)) return true;
    bad_tensor(
        s, i, lane,
        "the tensor map in memory was changed without a fence.proxy.tensormap since. Execute "
        "fence.proxy.tensormap::generic.acquire on its address (cuda::ptx::fence_proxy_tensormap_generic) between "
        "the change and the tensor copy");
    return false;
}

// --- rules of a copy ---------------------------------------------------------------------------------------

// Returns why an interleaved layout is not supported; empty if it is. The manual does not say how parts of slices lie in
// shared memory.
std::string why_not_whole_slices(const AskedTile& tile) {
    const TensorMap& map = tile.map;
    if (map.interleave == 0) return {};
    const u32 channels = tile.row_elements();
    if (map.row_elements() % channels == 0 && tile.start[0] % channels == 0 && map.steps[0] == 1) return {};
    return fmt::format(
        "the emulated device copies whole slices of {} channels of an interleaved tensor, and this tile has {} from "
        "channel {} on, with a step of {}",
        channels, map.row_elements(), tile.start[0], map.steps[0]);
}

std::string why_not_at(const AskedTile& tile) {
    const TensorMap& map = tile.map;
    // PTX ISA, "Bounding Box": "The address of the bounding Box must also be aligned to 16 bytes."
    if (tile.start[0] * map.element_bytes() % 16 != 0)
        return fmt::format(
            "the tile starts at element {} of its rows, and {} elements of {} bytes are not a multiple of 16 "
            "bytes",
            tile.start[0], tile.start[0], map.element_bytes());
    for (std::size_t d = 0; d < tile.rank(); ++d) {
        // CUDA C++ Programming Guide: "the top left corner cannot have any negative indices" in a write.
        if (!map.im2col && tile.stores && tile.start[d] < 0)
            return fmt::format(
                "the tile starts at {} in dimension {}, and a tile that is written cannot start before the "
                "tensor",
                tile.start[d], d);
        if (!map.im2col || d == 0 || d + 1 == tile.rank()) continue;
        const s64 first = map.lower[d - 1], last = static_cast<s64>(map.extents[d]) - 1 + map.upper[d - 1];
        if (tile.start[d] < first || tile.start[d] > last)
            return fmt::format("the filter is at {} in dimension {}, and its positions are {} to {}",
                               tile.start[d], d, first, last);
        const s64 most = tile.rank() == 3 ? 65535 : tile.rank() == 4 ? 255 : 31;
        if (tile.offset[d - 1] > most)
            return fmt::format("the offset of dimension {} is {}, and not 0 to {}", d, tile.offset[d - 1],
                               most);
    }
    return why_not_whole_slices(tile);
}

std::string why_not(const AskedTile& tile, const TensorAccess& access) {
    const TensorMap& map = tile.map;
    if (const std::string invalid = map.why_invalid(); !invalid.empty())
        return fmt::format("the tensor map was changed, and is invalid: {}", invalid);
    if (map.rank != access.rank)
        return fmt::format("the tensor map has {} dimensions, and the instruction {}", map.rank,
                           unsigned{access.rank});
    if (map.im2col != access.im2col)
        return map.im2col
                   ? "the tensor map is for .im2col (cuTensorMapEncodeIm2col), and the instruction copies a tile"
                   : "the tensor map is for tiles (cuTensorMapEncodeTiled), and the instruction has .im2col";
    return why_not_at(tile);
}

// Reads what the lane asks for. Returns nothing after a fault. Operands: the list of coordinates and offsets, the tensor map,
// the address in shared memory.
std::optional<AskedTile> read_tile(Lanes& s, const Instruction* i, unsigned lane,
                                   const TensorAccess& access) {
    const u64 address = lanes_at<u64>(s, i->operand[1])[lane];
    const std::byte* at = place_of_map(s, i, lane, address);
    if (at == nullptr || !sees_map(s, i, lane, address, at)) return std::nullopt;
    const auto map = TensorMap::decode(at);
    if (!map) {
        bad_tensor(s, i, lane, not_a_map);
        return std::nullopt;
    }
    AskedTile tile;
    tile.map = *map;
    tile.stores = access.what == TensorAccess::What::store;
    const u32* list = s.lists + i->operand[0];
    for (unsigned d = 0; d < access.rank; ++d)
        tile.start[d] = static_cast<s32>(lanes_at<u32>(s, list[d])[lane]);
    for (unsigned d = access.rank; d < i->count; ++d)
        tile.offset[d - access.rank] = lanes_at<u16>(s, list[d])[lane];
    if (access.what != TensorAccess::What::prefetch)
        tile.shared =
            (lanes_at<u64>(s, i->operand[2])[lane] - program::shared_window) % program::cluster_stride;
    if (std::string why = why_not(tile, access); !why.empty()) {
        bad_tensor(s, i, lane, std::move(why));
        return std::nullopt;
    }
    return tile;
}

// --- tiles -> runs of bytes --------------------------------------------------------------------------------

/// Translates the rows of a tile, in their order in shared memory.
class Rows {
  public:
    Rows(Lanes& s, const Instruction* i, unsigned lane, const AskedTile& tile, races::Access access)
        : s_(s), i_(i), lane_(lane), tile_(tile), access_(access), made_(std::make_shared<Tile>()) {
        if (tile.map.fill == 1) made_->fill = outside_nan;
        const TensorElement element = tile.map.element();
        made_->rounds = element == TensorElement::tf32 || element == TensorElement::tf32_ftz;
    }

    /// Returns null after a fault.
    std::shared_ptr<const Tile> translate() {
        return (tile_.map.im2col ? translate_columns() : translate_box()) ? made_ : nullptr;
    }

  private:
    // Slices are in the order that they have in the tensor: each has the pixels of an image, and the images are outermost.
    bool translate_box() {
        const TensorMap& map = tile_.map;
        const std::size_t rank = tile_.rank();
        std::array<u32, 5> index{};  // index[0] counts slices
        for (u64 left = tile_.rows(); left > 0; --left) {
            std::array<s64, 5> at = tile_.start;
            at[0] += s64{index[0]} * tile_.row_elements();
            for (std::size_t d = 1; d < rank; ++d) at[d] += s64{index[d]} * map.steps[d];
            if (!add_row(at)) return false;
            for (std::size_t k = 1; k <= rank; ++k) {  // the dimensions of pixels, slices, images
                const std::size_t d = k == rank ? rank - 1 : k + 1 == rank ? 0 : k;
                if (++index[d] < (d == 0 ? tile_.slices() : map.box_elements(d))) break;
                index[d] = 0;
            }
        }
        return true;
    }

    bool translate_columns() {
        for (u32 slice = 0; slice < tile_.slices(); ++slice) {
            if (!translate_columns(s64{slice} * tile_.row_elements())) return false;
        }
        return true;
    }

    // The filter moves by the steps, from the lower corner to the upper one in each dimension, and then to the next image.
    bool translate_columns(s64 channel) {
        const TensorMap& map = tile_.map;
        const std::size_t images = tile_.rank() - 1;
        std::array<s64, 5> filter = tile_.start;
        filter[0] += channel;
        for (u32 left = map.pixels; left > 0; --left) {
            std::array<s64, 5> at = filter;
            for (std::size_t d = 1; d < images; ++d) at[d] += tile_.offset[d - 1];
            if (!add_row(at)) return false;
            std::size_t d = 1;
            for (; d < images; ++d) {
                filter[d] += map.steps[d];
                if (filter[d] < static_cast<s64>(map.extents[d]) + map.upper[d - 1]) break;
                filter[d] = map.lower[d - 1];
            }
            if (d == images) ++filter[images];
        }
        return true;
    }

    // Adds the row that starts at these coordinates.
    bool add_row(const std::array<s64, 5>& at) {
        const TensorMap& map = tile_.map;
        const u32 size = map.element_bytes();
        const s64 elements = tile_.row_elements(), extent = static_cast<s64>(map.extents[0]);
        bool inside = true;
        for (std::size_t d = 1; d < tile_.rank(); ++d) inside = inside && tile_.is_inside(d, at[d]);
        const s64 first = inside ? std::clamp<s64>(-at[0], 0, elements) : elements;
        const s64 last = inside ? std::clamp<s64>(extent - at[0], first, elements) : elements;
        const auto bytes = [&](s64 count) { return static_cast<u32>(count) * size; };
        put(nullptr, 0, bytes(first));
        if (last > first) {
            std::byte* host = find(address_of(at) + bytes(first), bytes(last - first));
            if (host == nullptr) return false;
            put(host, bytes(first), bytes(last - first));
        }
        put(nullptr, bytes(last), bytes(elements - last));
        next_ += tile_.pitch();
        return true;
    }

    // The address of an element. The channels of an interleaved tensor are in slices, each with all the pixels of an image.
    u64 address_of(const std::array<s64, 5>& at) const {
        const TensorMap& map = tile_.map;
        u64 made = map.address;
        for (std::size_t d = 1; d < tile_.rank(); ++d) made += static_cast<u64>(at[d]) * map.strides[d - 1];
        if (map.interleave == 0) return made + static_cast<u64>(at[0]) * map.element_bytes();
        const u64 slice = static_cast<u64>(at[0]) * map.element_bytes() / map.slice_bytes();
        return made + slice * map.strides[tile_.rank() - 3] * map.extents[tile_.rank() - 2];
    }

    // Checks and logs an access to part of a row. Returns null after a fault.
    std::byte* find(u64 address, u32 bytes) {
        const bool writes = access_ != races::Access::read;
        if (found_ == nullptr || address - found_->base >= found_->bytes) found_ = s_.memory->find(address);
        const bool whole = found_ != nullptr && found_->bytes - (address - found_->base) >= bytes;
        if (!whole || (writes && found_->read_only))
            return fail(s_, i_, whole ? LaneFault::What::read_only : LaneFault::What::out_of_bounds, lane_,
                        {Space::global, address, bytes, 1, writes});
        log_access(s_, address, bytes, access_);
        return found_->host + (address - found_->base);
    }

    // Adds bytes of the current row, from byte `at` of it on. Stores leave out what is outside of the tensor.
    void put(std::byte* global, u32 at, u32 bytes) {
        if (bytes == 0 || (tile_.stores && global == nullptr)) return;
        if (tile_.map.swizzle == 0) return made_->runs.push_back({global, next_ + at, bytes});
        while (bytes > 0) {
            const u32 taken = std::min(bytes, swizzled_bytes - at % swizzled_bytes);
            made_->runs.push_back({global, swizzled(next_ + at), taken});
            if (global != nullptr) global += taken;
            at += taken;
            bytes -= taken;
        }
    }

    // A swizzle with a width of 2^n chunks of 16 bytes XORs the n lowest bits of a chunk's index in shared memory with
    // those of the index of its 128-byte line.
    u32 swizzled(u32 offset) const {
        const u64 address = tile_.shared + offset, chunks = tile_.map.swizzle_bytes() / swizzled_bytes;
        return static_cast<u32>((address ^ (address / 128 % chunks * swizzled_bytes)) - tile_.shared);
    }

    Lanes& s_;
    const Instruction* i_;
    unsigned lane_;
    const AskedTile& tile_;
    races::Access access_;
    std::shared_ptr<Tile> made_;
    const memory::Allocation* found_ = nullptr;
    u32 next_ = 0;  // where the current row starts in shared memory
};

// --- copies ------------------------------------------------------------------------------------------------

// Begins the copy of one lane. Returns false after a fault.
bool begin_tile(Lanes& s, const Instruction* i, unsigned lane, const AskedTile& asked, Reduction reduce) {
    const u64 address = lanes_at<u64>(s, i->operand[2])[lane], span = asked.rows() * asked.pitch();
    const Space where = asked.stores ? Space::shared : shared_space(i);
    Access access{where, address, static_cast<u32>(std::min<u64>(span, program::cluster_stride)),
                  tile_alignment, !asked.stores};
    if (span > program::cluster_stride)
        return fail(s, i, LaneFault::What::out_of_bounds, lane, access) != nullptr;
    Transfer transfer;
    transfer.warp = s.warp;
    transfer.lane = lane;
    transfer.group = s.warp->bulk_groups[lane];
    transfer.reduce = reduce;
    if (asked.stores) {
        transfer.from = place(s, i, lane, access);
        if (transfer.from == nullptr) return false;
    }
    const races::Access kind = !asked.stores       ? races::Access::read
                               : reduce == nullptr ? races::Access::write
                                                   : races::Access::strong_write;
    transfer.tile = Rows(s, i, lane, asked, kind).translate();
    if (transfer.tile == nullptr) return false;
    if (asked.stores) {
        const char* name = reduce == nullptr ? "cp.async.bulk.tensor" : "cp.reduce.async.bulk.tensor";
        if (!sees_source(s, i, 1u << lane, name, transfer.from, *transfer.tile)) return false;
        transfer.bytes = static_cast<u32>(span);
        s.block->cluster->transfers.add(std::move(transfer));
        return true;
    }
    transfer.bytes = static_cast<u32>(asked.rows() * asked.row_bytes());
    const u64 barrier = lanes_at<u64>(s, i->operand[3])[lane];
    if ((i->bits & Instruction::multicast) == 0)
        return add_bulk_copy(s, i, lane, std::move(transfer), access, barrier);
    access.space = Space::generic;
    for (u32 ranks = lanes_at<u32>(s, i->operand[4])[lane] & 0xffffu; ranks != 0; ranks &= ranks - 1) {
        const auto rank = static_cast<unsigned>(__builtin_ctz(ranks));
        access.address = address_in_block(address, rank);
        if (!add_bulk_copy(s, i, lane, transfer, access, address_in_block(barrier, rank))) return false;
    }
    return true;
}

// --- instructions on tensor maps ---------------------------------------------------------------------------

/// The elements in the order of tensormap.replace's .elemtype.
constexpr TensorElement replaced_elements[] = {
    TensorElement::u8,      TensorElement::u16, TensorElement::u32,  TensorElement::s32,
    TensorElement::u64,     TensorElement::s64, TensorElement::f16,  TensorElement::f32,
    TensorElement::f32_ftz, TensorElement::f64, TensorElement::bf16, TensorElement::tf32,
    TensorElement::tf32_ftz};

void replace_field(TensorMap& map, const program::TensorMapField& replaced, u64 value) {
    const auto word = static_cast<u32>(value);
    switch (replaced.field) {
        case Flag::global_address:
            map.address = value;
            return;
        case Flag::global_stride:
            map.strides[replaced.ordinal] = value;
            return;
        case Flag::global_dim:
            map.extents[replaced.ordinal] = word;
            return;
        case Flag::box_dim:
            map.box[replaced.ordinal] = word;
            return;
        case Flag::element_stride:
            map.steps[replaced.ordinal] = word;
            return;
        case Flag::elemtype:
            map.type = static_cast<u32>(replaced_elements[word]);
            return;
        case Flag::interleave_layout:
            map.interleave = word;
            return;
        case Flag::swizzle_mode:
            map.swizzle = word;
            return;
        case Flag::fill_mode:
            map.fill = word;
            return;
        default:  // .rank counts from 0
            map.rank = std::min(word, 254u) + 1;
    }
}

// Operands: the tensor map and the new value.
const Instruction* replace_in_map(Lanes& s, const Instruction* i) {
    const auto replaced = program::unpacked<program::TensorMapField>(i);
    const bool wide = replaced.field == Flag::global_address || replaced.field == Flag::global_stride;
    for (const unsigned l : LanesOf{s.mask}) {
        const u64 address = lanes_at<u64>(s, i->operand[0])[l];
        const bool is_shared = address - program::shared_window < program::window_bytes;
        const bool in_shared =
            replaced.space == Flag::shared || (replaced.space != Flag::global && is_shared);
        std::byte* at = place(s, i, l,
                              {in_shared ? Space::shared : Space::global, address, TensorMap::bytes,
                               TensorMap::alignment, true});
        if (at == nullptr) return nullptr;
        auto map = TensorMap::decode(at);
        if (!map) return bad_tensor(s, i, l, not_a_map);
        if (map->im2col)
            return bad_tensor(s, i, l,
                              "tensormap.replace.tile changes tensor maps of tiles, and this is for .im2col");
        replace_field(*map, replaced,
                      wide ? lanes_at<u64>(s, i->operand[1])[l] : lanes_at<u32>(s, i->operand[1])[l]);
        if (!in_shared) s.block->grid->seen_tensor_maps.before_change(at);
        const auto encoded = map->encode();
        std::memcpy(at, encoded.data(), encoded.size());
        if (!in_shared) log_access(s, address, TensorMap::bytes, races::Access::write);
    }
    return i + 1;
}

// Operands: addresses in global and in shared memory. All lanes copy the same.
const Instruction* copy_map(Lanes& s, const Instruction* i) {
    for (const unsigned l : LanesOf{s.mask}) {
        const u64 to = lanes_at<u64>(s, i->operand[0])[l], from = lanes_at<u64>(s, i->operand[1])[l];
        const std::byte* source =
            place(s, i, l, {Space::shared, from, TensorMap::bytes, TensorMap::alignment});
        if (source == nullptr) return nullptr;
        std::byte* at = place(s, i, l, {Space::global, to, TensorMap::bytes, TensorMap::alignment, true});
        if (at == nullptr) return nullptr;
        s.block->grid->seen_tensor_maps.before_change(at);
        std::memcpy(at, source, TensorMap::bytes);
        log_access(s, to, TensorMap::bytes, races::Access::write);
    }
    return i + 1;
}

const Instruction* fence_map(Lanes& s, const Instruction* i) {
    for (const unsigned l : LanesOf{s.mask}) {
        const u64 address = lanes_at<u64>(s, i->operand[0])[l];
        const std::byte* at = place_of_map(s, i, l, address);
        if (at == nullptr) return nullptr;
        if (!is_parameter(address)) s.block->grid->seen_tensor_maps.acquire(at);
    }
    return i + 1;
}

const Instruction* copy_tensor(Lanes& s, const Instruction* i) { return begin_tensor_copy(s, i, nullptr); }

}  // namespace

// Operands: the list of coordinates and offsets, the tensor map, the address in shared memory, and for loads the mbarrier and
// optionally the mask of blocks.
const Instruction* begin_tensor_copy(Lanes& s, const Instruction* i, const TensorReductions* reductions) {
    const auto access = program::unpacked<TensorAccess>(i);
    if (access.what != TensorAccess::What::prefetch) s.warp->has_transfers = true;
    for (const unsigned l : LanesOf{s.mask}) {
        const auto asked = read_tile(s, i, l, access);
        if (!asked) return nullptr;
        if (access.what == TensorAccess::What::prefetch) continue;
        const Reduction reduce =
            reductions == nullptr ? nullptr : reductions->of[static_cast<unsigned>(asked->map.element())];
        if (reductions != nullptr && reduce == nullptr)
            return bad_tensor(s, i, l, "the reduction is not one of the elements of this tensor map");
        if (!begin_tile(s, i, l, *asked, reduce)) return nullptr;
    }
    return i + 1;
}

void register_tensor_copies(Registry& r) {
    r.add(Operation::tensor_copy, copy_tensor);
    r.add(Operation::tensor_map_copy, copy_map);
    r.add(Operation::tensor_map_fence, fence_map);
    for_flags<Flag::global_address, Flag::rank, Flag::box_dim, Flag::global_dim, Flag::global_stride,
              Flag::element_stride, Flag::elemtype, Flag::interleave_layout, Flag::swizzle_mode,
              Flag::fill_mode>([&]<Flag F>() { r.add(Operation::tensor_map_replace, replace_in_map, {F}); });
}

}  // namespace emulated::machine
