// Handlers that move matrices between memory and the registers of a warp. One register of the warp holds eight rows of
// a tile ("block"), so rows that are contiguous in memory are copied whole.
#include "handlers/tensor.hpp"

namespace emulated::machine::BASCULE_ISA {
namespace {

// --- wmma.load, wmma.store ---------------------------------------------------------------------------------

inline void copy(bool loads, std::byte* lane, std::byte* memory, std::size_t bytes) {
    std::memcpy(loads ? lane : memory, loads ? memory : lane, bytes);
}

/// Offsets of a fragment's elements from its first one.
struct Strides {
    Fragment f;
    u64 outer = 0, inner = 0;  // in bits, between neighbouring elements

    Strides(const Fragment& fragment, u32 stride) : f(fragment) {
        const u64 far = u64{stride} * f.bits;
        outer = f.inner_contiguous ? far : f.bits;
        inner = f.inner_contiguous ? f.bits : far;
    }
    u64 at(u32 o, u32 k) const { return (o * outer + k * inner) / 8; }
    u32 width() const { return u32{f.per_register} * f.registers; }  // elements per lane in a block
    /// The size in bytes from the first to the last element.
    u64 extent() const {
        const u32 last = f.inner * 4u * width() - 1;
        return (((f.outer * 8u - 1) * outer + last * inner) + f.bits + 7) / 8;
    }
};

// Calls visit(first register of a block, its first outer index, its first inner index).
template <class Visit>
inline void each_block(const Strides& at, const Visit& visit) {
    const Fragment& f = at.f;
    for (u32 o = 0; o < f.outer; ++o) {
        for (u32 k = 0; k < f.inner; ++k) {
            const u32 block = f.outer_first ? o + f.outer * k : k + f.inner * o;
            visit(block * f.registers, 8 * o, 4 * k * at.width());
        }
    }
}

template <bool Loads, u32 Bytes>
inline void move_elements(Lanes& s, const Instruction* i, const Strides& at, std::byte* host) {
    each_block(at, [&](u32 first, u32 o, u32 k) {
        for (u32 r = 0; r < at.f.registers; ++r) {
            std::byte* lanes = listed(s, i, first + r);
            for (u32 l = 0; l < 32; ++l) {
                const u32 from = k + l % 4 * at.width() + r;
                for (u32 e = 0; e < at.f.per_register; ++e, lanes += Bytes)
                    copy(Loads, lanes, host + at.at(o + l / 4, from + e), Bytes);
            }
        }
    });
}

// Moves a matrix that is at `host` as a whole: all lanes have the same address and stride.
template <bool Loads>
void move_whole(Lanes& s, const Instruction* i, const Strides& at, std::byte* host) {
    if (at.f.inner_contiguous && at.f.registers == 1) {
        const u32 row = at.f.bits == 64 ? 32 : 16;
        each_block(at, [&](u32 first, u32 o, u32 k) {
            std::byte* lanes = listed(s, i, first);
            std::byte* memory = host + at.at(o, k);
            for (u32 r = 0; r < 8; ++r, lanes += row, memory += at.outer / 8) {
                if (row == 16) copy(Loads, lanes, memory, 16);
                if (row == 32) copy(Loads, lanes, memory, 32);
            }
        });
        return;
    }
    if (at.f.bits == 8) return move_elements<Loads, 1>(s, i, at, host);
    if (at.f.bits == 16) return move_elements<Loads, 2>(s, i, at, host);
    if (at.f.bits == 32) return move_elements<Loads, 4>(s, i, at, host);
    move_elements<Loads, 8>(s, i, at, host);
}

// Moves the matrix lane by lane, for lanes whose addresses or strides differ or a matrix that is not in one place.
// Writes nothing if an access fails.
template <bool Loads, Space Where>
bool move_lanes(Lanes& s, const Instruction* i, const Fragment& f) {
    const u32* strides = lanes_at<u32>(s, i->operand[2]);
    const u32 bits = f.inner_contiguous ? u32{f.bits} * f.per_register : f.bits;  // per contiguous piece
    const u32 pieces = f.inner_contiguous ? 1 : f.per_register;
    const auto each_piece = [&](auto&& visit) {
        for (u32 l = 0; l < 32; ++l) {
            const Strides at(f, strides[l]);
            each_block(at, [&](u32 first, u32 o, u32 k) {
                for (u32 r = 0; r < f.registers; ++r) {
                    for (u32 p = 0; p < pieces; ++p) {
                        const u64 address = s.offset[l] + at.at(o + l / 4, k + l % 4 * at.width() + r + p);
                        visit(l, first + r, p * bits / 8, address);
                    }
                }
            });
        }
    };
    u32 wrong = 0;
    u64 wrong_address = 0;
    bool read_only = false;
    each_piece([&](u32 l, u32, u32, u64 address) {
        if (place_of(s, Where, l, address, bits / 8, !Loads, read_only) != 0) return;
        if (wrong == 0) wrong_address = address;
        wrong |= 1u << l;
    });
    if (wrong != 0) {
        return fail(s, read_only ? LaneFault::What::read_only : LaneFault::What::out_of_bounds, wrong,
                    wrong_address, bits / 8, !Loads, name_of(Where));
    }
    const std::size_t lane_bytes = u32{f.bits} * f.per_register / 8;
    std::byte values[8 * 32 * 8];  // loaded values, kept here because a register may hold a stride
    each_piece([&](u32 l, u32 k, u32 byte, u64 address) {
        const u64 place = place_of(s, Where, l, address, bits / 8, !Loads, read_only);
        std::byte* lane = Loads ? values + (k * 32 + l) * lane_bytes : listed(s, i, k) + l * lane_bytes;
        copy(Loads, lane + byte, reinterpret_cast<std::byte*>(place), bits / 8);
        if (Where == Space::generic && s.log != nullptr &&
            address - program::shared_window >= 3 * program::window_bytes)
            s.log->add(address, bits / 8, access_of(i, !Loads));
    });
    if (!Loads) return true;
    const u32 registers = u32{f.outer} * f.inner * f.registers;
    for (u32 k = 0; k < registers; ++k)
        std::memcpy(listed(s, i, k), values + k * 32 * lane_bytes, 32 * lane_bytes);
    return true;
}

// The host address of the whole matrix at `address`; null if it is not in one place.
template <Space Where>
std::byte* whole_place(Lanes& s, const Instruction* i, u64 address, u64 extent, bool write) {
    const auto inside = [&](u64 base, u64 bytes) {
        const u64 offset = address - base;
        return offset <= bytes && bytes - offset >= extent;
    };
    if (inside(program::shared_window, s.shared_bytes)) return s.shared + (address - program::shared_window);
    if (Where == Space::shared) return nullptr;
    AllocationCache& cache = s.caches[i->extra];
    if (!inside(cache.base, cache.bytes)) {
        const memory::Allocation* found = s.memory->find(address);
        if (!found) return nullptr;
        remember(cache, *found);
        if (!inside(cache.base, cache.bytes)) return nullptr;
    }
    return write && cache.read_only ? nullptr : cache.host + (address - cache.base);
}

// Logs the rows of the matrix as contiguous accesses.
void note_matrix(Lanes& s, const Instruction* i, const Strides& at, u64 address, bool write) {
    const u32 outer = at.f.outer * 8u, inner = at.f.inner * 4u * at.width();
    const u32 lines = at.f.inner_contiguous ? outer : inner, length = at.f.inner_contiguous ? inner : outer;
    for (u32 k = 0; k < lines; ++k) {
        const u64 line = at.f.inner_contiguous ? at.at(k, 0) : at.at(0, k);
        s.log->add(address + line, u64{length} * at.f.bits / 8, access_of(i, write));
    }
}

template <bool Loads, Space Where>
const Instruction* move_matrix(Lanes& s, const Instruction* i) {
    if (!whole_warp(s, i)) return nullptr;
    const Fragment f = descriptor_of<Fragment>(i);
    const u64 displacement = *lanes_at<u64>(s, i->operand[3]);
    const u32* strides = lanes_at<u32>(s, i->operand[2]);
    u64 differs = 0;
    if (i->bits & Instruction::narrow) {
        const u32* a = lanes_at<u32>(s, i->operand[1]);
        for (unsigned l = 0; l < 32; ++l) s.offset[l] = static_cast<u32>(a[l] + displacement);
    } else {
        const u64* a = lanes_at<u64>(s, i->operand[1]);
        for (unsigned l = 0; l < 32; ++l) s.offset[l] = a[l] + displacement;
    }
    const u64 address = s.offset[0];
    for (unsigned l = 0; l < 32; ++l) differs |= (s.offset[l] ^ address) | (strides[l] ^ strides[0]);
    const Strides at(f, strides[0]);
    const u32 alignment = f.inner_contiguous ? u32{f.bits} * f.per_register / 8 : f.bits / 8u;
    if (!aligned(s, Where, alignment, alignment, !Loads)) return stopped(s, i);
    // A row that does not start at a byte boundary has no address.
    std::byte* host = differs == 0 && (f.bits >= 8 || strides[0] * f.bits % 8 == 0)
                          ? whole_place<Where>(s, i, address, at.extent(), !Loads)
                          : nullptr;
    if (host != nullptr) {
        if (s.log != nullptr && Where == Space::generic &&
            address - program::shared_window >= program::window_bytes)
            note_matrix(s, i, at, address, !Loads);
        move_whole<Loads>(s, i, at, host);
    } else if (!move_lanes<Loads, Where>(s, i, f)) {
        return stopped(s, i);
    }
    if (Loads && f.copies > 1) {
        const u32 registers = u32{f.outer} * f.inner * f.registers;
        for (u32 k = registers; k < i->count; ++k)
            std::memcpy(listed(s, i, k), listed(s, i, k % registers), 32 * sizeof(u32));
    }
    return next(s, i + 1);
}

// --- ldmatrix, stmatrix, movmatrix -------------------------------------------------------------------------

using Halves = u16[8][8];  // the layout in memory and in the lanes of one register

inline void transpose(const Halves& from, Halves& to) {
    for (unsigned r = 0; r < 8; ++r) {
        for (unsigned c = 0; c < 8; ++c) to[c][r] = from[r][c];
    }
}

// Lane 8 j + r has the address of row r of matrix j.
template <bool Loads, bool Transposes>
const Instruction* move_rows(Lanes& s, const Instruction* i) {
    if (!whole_warp(s, i)) return nullptr;
    const u32 count = i->count;
    s.mask = count == 4 ? full_mask : (1u << (8 * count)) - 1;
    const bool found = locate<Space::shared>(s, i, i->operand[1], 16, 16, !Loads);
    s.mask = full_mask;
    if (!found) return stopped(s, i);
    for (u32 j = 0; j < count; ++j) {
        std::byte* lanes = listed(s, i, j);
        Halves rows, turned;
        if (!Loads) std::memcpy(rows, lanes, sizeof rows);
        if (!Loads && Transposes) transpose(rows, turned);
        auto& stored = Transposes ? turned : rows;
        for (u32 r = 0; r < 8; ++r) {
            auto* memory = reinterpret_cast<std::byte*>(s.base + s.offset[8 * j + r]);
            if (Loads)
                std::memcpy(rows[r], memory, sizeof rows[r]);
            else
                std::memcpy(memory, stored[r], sizeof rows[r]);
        }
        if (!Loads) continue;
        if (Transposes) transpose(rows, turned);
        std::memcpy(lanes, stored, sizeof rows);
    }
    return next(s, i + 1);
}

const Instruction* transpose_registers(Lanes& s, const Instruction* i) {
    if (!whole_warp(s, i)) return nullptr;
    Halves from, to;
    std::memcpy(from, lanes_at<u32>(s, i->operand[1]), sizeof from);
    transpose(from, to);
    std::memcpy(lanes_at<u32>(s, i->operand[0]), to, sizeof to);
    return next(s, i + 1);
}

}  // namespace

void register_tensor_memory(Registry& r) {
    const auto none = Type::none;
    r.add(Operation::load_matrix, move_matrix<true, Space::generic>);
    r.add(Operation::load_matrix, move_matrix<true, Space::shared>, {Flag::shared});
    r.add(Operation::store_matrix, move_matrix<false, Space::generic>);
    r.add(Operation::store_matrix, move_matrix<false, Space::shared>, {Flag::shared});
    r.add(Operation::ldmatrix, Type::u16, none, {}, move_rows<true, false>);
    r.add(Operation::ldmatrix, Type::u16, none, {Flag::trans}, move_rows<true, true>);
    r.add(Operation::stmatrix, Type::u16, none, {}, move_rows<false, false>);
    r.add(Operation::stmatrix, Type::u16, none, {Flag::trans}, move_rows<false, true>);
    r.add(Operation::movmatrix, Type::u16, none, {}, transpose_registers);
}

}  // namespace emulated::machine::BASCULE_ISA
