// ld, ldu and st in every space, width, vector length and order; prefetch; addresses of each space as generic ones.
#include <array>
#include <cstring>
#include <stdexcept>

#include "reference/grammar.hpp"
#include "vectors_atomics.hpp"

namespace vectors {
namespace {

constexpr unsigned threads = 72, data_bytes = 512, slot_bytes = 32;
constexpr Bits poison = 0xa5a5'a5a5'a5a5'a5a5ull, marker = 0x5c5c'5c5c'5c5c'5c5cull;
using Data = std::array<std::uint8_t, data_bytes>;

// One access, with the randomly chosen parts of its form.
struct Access {
    std::string spelling;
    Opcode opcode;
    Flag home;              ///< the actual space of the data
    bool generic;           ///< no space in the opcode
    unsigned lanes, bytes;  ///< of the vector, of an element
    unsigned registers;     ///< bytes of each register
    bool narrow, guarded;   ///< a 32-bit address; only odd threads
    std::int32_t displacement;
};

std::string number(Bits value) { return std::to_string(value); }

std::vector<Flag> homes_of(const Opcode& opcode) {
    for (const Flag space : {Flag::global, Flag::constant, Flag::shared, Flag::local, Flag::param}) {
        if (opcode.flags.has(space)) return {space};
    }
    if (opcode.flags.has(Flag::shared_cluster)) return {Flag::shared};
    if (opcode.row->name == "ldu") return {Flag::global};
    if (opcode.row->name == "st") return {Flag::global, Flag::shared, Flag::local};
    return {Flag::global, Flag::shared, Flag::local, Flag::constant, Flag::param};
}

// Puts the address of variable `name` into %base, in the form of the access.
std::string base_of(const Access& a, std::string_view space, std::string_view name) {
    std::string text = "mov.u64 %base, " + std::string(name) + ";\n";
    if (a.generic) text += "cvta." + std::string(space) + ".u64 %base, %base;\n";
    return text;
}

std::string address_of(const Access& a) {
    return std::string("[") + (a.narrow ? "%near" : "%at") + "+" + std::to_string(a.displacement) + "]";
}

// An L2 policy: any number is valid.
std::string policy_of(const Access& a) { return a.opcode.flags.has(Flag::policy) ? ", 77" : ""; }

// `%d0`, or `{%d0, %d1}`.
std::string registers_of(const Access& a) {
    std::string list;
    for (unsigned k = 0; k < a.lanes; ++k) list += (k ? ", %d" : "%d") + number(k);
    return a.lanes == 1 ? list : "{" + list + "}";
}

std::string declarations(const Access& a) {
    std::string text =
        ".reg .b64 %data, %offsets, %out, %base, %at, %x, %i;\n.reg .b32 %t, %off, %near, %c;\n"
        ".reg .pred %p, %q;\n";
    for (unsigned k = 0; k < a.lanes; ++k) {
        text += ".reg " + std::string(register_type(a.registers)) + " %d" + number(k) + ";\n";
    }
    return text;
}

// Reads parameters; %off is the thread's offset, %p is true if it takes part.
const std::string prologue =
    "ld.param.u64 %data, [pdata];\nld.param.u64 %offsets, [poffsets];\nld.param.u64 %out, [pout];\n"
    "mov.u32 %t, %tid.x;\nmul.wide.u32 %i, %t, 4;\nadd.u64 %at, %offsets, %i;\nld.global.u32 %off, [%at];\n"
    "and.b32 %c, %t, 1;\nsetp.ne.u32 %p, %c, 0;\n";

std::string locate(const Access& a) {
    return "cvt.u64.u32 %i, %off;\nadd.u64 %at, %base, %i;\nadd.s64 %at, %at, " +
           std::to_string(-std::int64_t{a.displacement}) + ";\ncvt.u32.u64 %near, %at;\n";
}

std::string load_kernel(const Access& a) {
    std::string variables, setup;
    switch (a.home) {
        case Flag::constant:
            setup = base_of(a, "const", "constants");
            break;
        case Flag::shared:
            variables = ".shared .align 16 .b8 s[512];\n";
            setup =
                "setp.lt.u32 %q, %t, 64;\nmul.wide.u32 %i, %t, 8;\nadd.u64 %at, %data, %i;\n"
                "@%q ld.global.b64 %x, [%at];\nmov.u64 %at, s;\nadd.u64 %at, %at, %i;\n"
                "@%q st.shared.b64 [%at], %x;\nbar.sync 0;\n" +
                base_of(a, "shared", "s");
            break;
        case Flag::local:  // each thread has its own copy
            variables = ".local .align 16 .b8 l[512];\n";
            setup =
                "mov.u64 %at, l;\nmov.u32 %c, 0;\nmov.u64 %base, %data;\nFILL:\nld.global.b64 %x, [%base];\n"
                "cvt.u64.u32 %i, %t;\nxor.b64 %x, %x, %i;\nst.local.b64 [%at], %x;\nadd.u64 %at, %at, 8;\n"
                "add.u64 %base, %base, 8;\nadd.u32 %c, %c, 1;\nsetp.lt.u32 %q, %c, 64;\n@%q bra FILL;\n" +
                base_of(a, "local", "l");
            break;
        case Flag::param:
            setup = base_of(a, "param", "pbytes");
            break;
        default:
            setup = "mov.u64 %base, %data;\n";
            break;
    }
    std::string text = header + ".const .align 16 .b8 constants[512] = {1};\n" +
                       ".visible .entry k(.param .u64 pdata, .param .u64 poffsets, .param .u64 pout, .param "
                       ".align 16 .b8 pbytes[512]) {\n" +
                       variables + declarations(a) + prologue + setup + locate(a);
    for (unsigned k = 0; k < a.lanes; ++k) {
        const Bits mask = a.registers == 8 ? ~Bits{0} : (Bits{1} << (8 * a.registers)) - 1;
        text += "mov" + std::string(register_type(a.registers)) + " %d" + number(k) + ", " +
                number(marker & mask) + ";\n";
    }
    text += (a.guarded ? "@%p " : "") + a.spelling + " " + registers_of(a) + ", " + address_of(a) +
            policy_of(a) + ";\n";
    text += "mul.wide.u32 %i, %t, 32;\nadd.u64 %out, %out, %i;\n";
    for (unsigned k = 0; k < a.lanes; ++k) {
        text += "st.global" + std::string(register_type(a.registers)) + " [%out+" + number(8 * k) + "], %d" +
                number(k) + ";\n";
    }
    return text + "ret;\n}\n";
}

// A store writes to one of 72 slots of 32 bytes, which are finally copied to global memory from any space.
std::string store_kernel(const Access& a) {
    std::string variables, setup, finish;
    if (a.home == Flag::shared) {
        variables = ".shared .align 16 .b8 s[2304];\n";
        setup = "mul.wide.u32 %i, %t, 32;\nmov.u64 %at, s;\nadd.u64 %at, %at, %i;\n";
        finish =
            "bar.sync 0;\nmul.wide.u32 %i, %t, 32;\nmov.u64 %at, s;\nadd.u64 %at, %at, %i;\n"
            "add.u64 %base, %out, %i;\n";
        for (unsigned k = 0; k < 4; ++k) {
            setup += "st.shared.b64 [%at+" + number(8 * k) + "], " + number(poison) + ";\n";
            finish += "ld.shared.b64 %x, [%at+" + number(8 * k) + "];\nst.global.b64 [%base+" +
                      number(8 * k) + "], %x;\n";
        }
        setup += "bar.sync 0;\n" + base_of(a, "shared", "s");
    } else if (a.home == Flag::local) {
        variables = ".local .align 16 .b8 l[32];\n";
        setup = "mov.u64 %at, l;\n";
        finish =
            "mov.u64 %at, l;\nand.b32 %c, %off, 0xffffffe0;\ncvt.u64.u32 %i, %c;\nadd.u64 %base, %out, %i;\n";
        for (unsigned k = 0; k < 4; ++k) {
            setup += "st.local.b64 [%at+" + number(8 * k) + "], " + number(poison) + ";\n";
            finish += "ld.local.b64 %x, [%at+" + number(8 * k) + "];\nst.global.b64 [%base+" + number(8 * k) +
                      "], %x;\n";
        }
        setup += base_of(a, "local", "l") +
                 "and.b32 %c, %off, 0xffffffe0;\ncvt.u64.u32 %i, %c;\n"
                 "sub.u64 %base, %base, %i;\n";
    } else {
        setup = "mov.u64 %base, %out;\n";
    }
    std::string text = header +
                       ".visible .entry k(.param .u64 pdata, .param .u64 poffsets, .param .u64 pout) {\n" +
                       variables + declarations(a) + prologue + setup +
                       "mul.wide.u32 %i, %t, 32;\n"
                       "add.u64 %data, %data, %i;\n";
    for (unsigned k = 0; k < a.lanes; ++k) {
        text += "ld.global" + std::string(register_type(a.registers)) + " %d" + number(k) + ", [%data+" +
                number(8 * k) + "];\n";
    }
    return text + locate(a) + (a.guarded ? "@%p " : "") + a.spelling + " " + address_of(a) + ", " +
           registers_of(a) + policy_of(a) + ";\n" + finish + "ret;\n}\n";
}

Access access_of(const std::string& spelling, const Opcode& opcode, Flag home, Random& random) {
    Access a{spelling, opcode, home, true, 1, emulated::ptx::bytes_of(opcode.type), 0, false, false, 0};
    a.generic = (opcode.flags & FlagSet{Flag::global, Flag::constant, Flag::shared, Flag::shared_cluster,
                                        Flag::local, Flag::param})
                    .empty();
    a.lanes = opcode.flags.has(Flag::v4) ? 4 : opcode.flags.has(Flag::v2) ? 2 : 1;
    a.registers = register_bytes(opcode.type);
    if (!is_float(opcode.type) && random() % 2) {
        while (a.registers < 8 && random() % 2) a.registers *= 2;
    }
    a.narrow = home != Flag::global && home != Flag::constant && !a.generic && random() % 2;
    a.guarded = random() % 4 == 0;
    a.displacement = static_cast<std::int32_t>(random() % 3) * 16 - 16;
    return a;
}

// Runs the kernel unless it is refused; returns false if there is nothing to compare.
template <class... Arguments>
bool launched(Tally& tally, const Access& a, testing::Device& device, const Arguments&... arguments) {
    if (lacks_a_handler(device)) {
        tally.fault(a.opcode, a.spelling, "is accepted, but nothing runs it");
        return false;
    }
    if (const auto fault = device.launch("k", {1}, {threads}, arguments...)) {
        tally.fault(a.opcode, a.spelling, fault->message);
        return false;
    }
    return true;
}

// The contents of `space`: the data if the access should find it there, else its complement.
Data seen_in(const Access& a, Flag space, const Data& data) {
    Data made = data;
    for (auto& byte : made) byte = static_cast<std::uint8_t>(a.home == space ? byte : ~byte);
    return made;
}

void load(Tally& tally, const Access& a, Random& random) {
    Data data{};
    for (auto& byte : data) byte = static_cast<std::uint8_t>(random());
    std::vector<std::uint64_t> words(data_bytes / 8), out(4 * threads, poison);
    const bool copied = a.home == Flag::shared || a.home == Flag::local;  // from global memory
    std::memcpy(words.data(), (copied ? data : seen_in(a, Flag::global, data)).data(), data_bytes);
    std::vector<std::uint32_t> offsets(threads);
    const unsigned size = a.bytes * a.lanes, places = data_bytes / size, pattern = random() % 3;
    for (unsigned t = 0; t < threads; ++t) {
        const std::uint64_t place = pattern == 0 ? t : pattern == 1 ? 3 : random();
        offsets[t] = static_cast<std::uint32_t>(place % places * size);
    }
    testing::Device device(load_kernel(a));
    std::memcpy(device.global("constants"), seen_in(a, Flag::constant, data).data(), data_bytes);
    if (!device.module().find_kernel("k")->refusal.empty()) {
        return tally.refused(a.spelling, device.module().find_kernel("k")->refusal);
    }
    if (!launched(tally, a, device, device.array(words), device.array(offsets), device.array(out),
                  seen_in(a, Flag::param, data)))
        return;
    for (unsigned t = 0; t < threads; ++t) {
        for (unsigned k = 0; k < a.lanes; ++k) {
            Bits value = 0;
            const unsigned at = offsets[t] + k * a.bytes;
            for (unsigned b = 0; b < a.bytes; ++b) {
                const Bits own = a.home == Flag::local && (at + b) % 8 == 0 ? t : 0;
                value |= (data[at + b] ^ own) << (8 * b);
            }
            const Type held = a.registers == 2 ? Type::b16 : a.registers == 4 ? Type::b32 : Type::b64;
            Bits expected = is_float(a.opcode.type)
                                ? value
                                : static_cast<Bits>(reference::integer_of(a.opcode.type, value));
            if (a.guarded && t % 2 == 0) expected = marker;
            const Bits above = a.registers == 8 ? 0 : ~Bits{0} << (8 * a.registers);
            expected = (expected & ~above) | (poison & above);
            tally.compare(a.opcode, a.spelling, {above ? Type::b64 : held, expected}, out[4 * t + k],
                          [&] { return "thread " + number(t) + " part " + number(k); });
        }
    }
}

void store(Tally& tally, const Access& a, Random& random) {
    std::vector<std::uint64_t> values(4 * threads), out(4 * threads, poison), expected(4 * threads, poison);
    for (auto& value : values) value = random();
    std::vector<std::uint32_t> offsets(threads);
    const unsigned size = a.bytes * a.lanes;
    // Either the values are contiguous (except in local memory), or each is at a random place in its thread's slot.
    const bool dense = size < slot_bytes && random() % 2;
    const std::uint64_t step = random() % 2 ? 1 : 5;  // coprime to the number of slots
    for (unsigned t = 0; t < threads; ++t) {
        offsets[t] = static_cast<std::uint32_t>(t * step % threads * slot_bytes +
                                                random() % (slot_bytes / size) * size);
        if (dense && a.home != Flag::local) offsets[t] = t * size;
        if (a.guarded && t % 2 == 0) continue;
        for (unsigned k = 0; k < a.lanes; ++k) {
            std::memcpy(reinterpret_cast<std::uint8_t*>(expected.data()) + offsets[t] + k * a.bytes,
                        &values[4 * t + k], a.bytes);
        }
    }
    testing::Device device(store_kernel(a));
    if (!device.module().find_kernel("k")->refusal.empty()) {
        return tally.refused(a.spelling, device.module().find_kernel("k")->refusal);
    }
    if (!launched(tally, a, device, device.array(values), device.array(offsets), device.array(out))) return;
    for (unsigned i = 0; i < 4 * threads; ++i) {
        tally.compare(a.opcode, a.spelling, {Type::b64, expected[i]}, out[i],
                      [&] { return "byte " + number(8 * i); });
    }
}

// Loads from a variable by its name and an offset, without a register, which is the same for every thread.
void load_by_name(Tally& tally, const std::string& spelling, const Opcode& opcode, Flag home,
                  Random& random) {
    Access a = access_of(spelling, opcode, home, random);
    const unsigned size = a.bytes * a.lanes,
                   at = static_cast<unsigned>(random() % (data_bytes / size)) * size;
    Data data{};
    for (auto& byte : data) byte = static_cast<std::uint8_t>(random());
    const std::string variable = home == Flag::param      ? "pbytes"
                                 : home == Flag::constant ? "constants"
                                                          : "globals";
    std::string text = header +
                       ".const .align 16 .b8 constants[512] = {1};\n"
                       ".global .align 16 .b8 globals[512] = {1};\n"
                       ".visible .entry k(.param .align 16 .b8 pbytes[512], .param .u64 pout) {\n" +
                       declarations(a) + "ld.param.u64 %out, [pout];\nmov.u32 %t, %tid.x;\n" + spelling +
                       " " + registers_of(a) + ", [" + variable + "+" + number(at) + "]" + policy_of(a) +
                       ";\nmul.wide.u32 %i, %t, 32;\nadd.u64 %out, %out, %i;\n";
    for (unsigned k = 0; k < a.lanes; ++k) {
        text += "st.global" + std::string(register_type(a.registers)) + " [%out+" + number(8 * k) + "], %d" +
                number(k) + ";\n";
    }
    testing::Device device(text + "ret;\n}\n");
    std::memcpy(device.global("constants"), seen_in(a, Flag::constant, data).data(), data_bytes);
    std::memcpy(device.global("globals"), seen_in(a, Flag::global, data).data(), data_bytes);
    std::vector<std::uint64_t> out(4 * threads, 0);
    if (!device.module().find_kernel("k")->refusal.empty()) {
        return tally.refused(a.spelling, device.module().find_kernel("k")->refusal);
    }
    if (!launched(tally, a, device, seen_in(a, Flag::param, data), device.array(out))) return;
    const Bits mask = a.registers == 8 ? ~Bits{0} : (Bits{1} << (8 * a.registers)) - 1;
    for (unsigned t = 0; t < threads; ++t) {
        for (unsigned k = 0; k < a.lanes; ++k) {
            Bits value = 0;
            std::memcpy(&value, &data[at + k * a.bytes], a.bytes);
            if (!is_float(opcode.type))
                value = static_cast<Bits>(reference::integer_of(opcode.type, value)) & mask;
            tally.compare(opcode, spelling, {Type::b64, value}, out[4 * t + k],
                          [&] { return "by name, part " + number(k); });
        }
    }
}

}  // namespace

void memory_vectors(Tally& tally) {
    Random random(77);
    for (const reference::Syntax& syntax : reference::memory_syntax()) {
        for (const std::string& spelling : reference::spellings_of(syntax)) {
            const auto opcode = known(spelling);
            if (!opcode) {
                tally.refused(spelling, "not in the table");
                continue;
            }
            const std::string_view name = opcode->row->name;
            if (name == "atom" || name == "red") {
                atomic_vectors(tally, spelling, *opcode, random);
            } else if (name == "ld" || name == "ldu" || name == "st") {
                for (const Flag home : homes_of(*opcode)) {
                    const Access a = access_of(spelling, *opcode, home, random);
                    name == "st" ? store(tally, a, random) : load(tally, a, random);
                }
                for (const Flag home : {Flag::param, Flag::constant, Flag::global}) {
                    if (name == "st" || !opcode->flags.has(home)) continue;
                    load_by_name(tally, spelling, *opcode, home, random);
                }
            } else {
                address_vectors(tally, spelling, *opcode);
            }
        }
    }
}

}  // namespace vectors
