// Video instructions with every combination of types and modifiers, and random selectors, masks and signs.
#include "reference/grammar.hpp"
#include "reference/video.hpp"
#include "vectors.hpp"

namespace vectors {
namespace {

using reference::Selectors;

constexpr unsigned threads = 96;

std::string one_part(Random& random) {
    static const char* const parts[] = {".b0", ".b1", ".b2", ".b3", ".h0", ".h1"};
    return random() % 3 == 0 ? "" : parts[random() % std::size(parts)];
}

std::string some_lanes(char letter, unsigned lanes, Random& random) {
    if (random() % 3 == 0) return "";
    std::string made{'.', letter};
    for (unsigned lane = 0; lane < lanes; ++lane) made += static_cast<char>('0' + random() % (2 * lanes));
    return made;
}

std::string some_mask(char letter, unsigned lanes, Random& random) {
    const auto bits = static_cast<unsigned>(random() % (1u << lanes));
    if (bits == 0) return "";
    std::string made{'.', letter};
    for (unsigned lane = lanes; lane-- > 0;) {
        if (bits >> lane & 1) made += static_cast<char>('0' + lane);
    }
    return made;
}

Selectors some_selectors(const Opcode& opcode, bool merges, Random& random) {
    Selectors made;
    const char last = opcode.row->name.back();
    if (last == '2' || last == '4') {
        const unsigned lanes = static_cast<unsigned>(last - '0');
        const char letter = lanes == 2 ? 'h' : 'b';
        made.d = some_mask(letter, lanes, random);
        made.a = some_lanes(letter, lanes, random);
        made.b = some_lanes(letter, lanes, random);
        return made;
    }
    made.a = one_part(random);
    made.b = one_part(random);
    while (merges && made.d.empty()) made.d = one_part(random);
    if (opcode.row->name == "vmad" && !opcode.flags.has(Flag::po)) {
        const auto choice = random() % 4;
        made.negate_a = choice == 1;
        made.negate_b = choice == 2;
        made.negate_c = choice == 3;
    }
    return made;
}

std::string kernel_of(const std::string& spelling, const Selectors& by, bool with_c) {
    const auto sign = [](bool negates) { return negates ? "-" : ""; };
    return header +
           ".visible .entry k(.param .u64 pin, .param .u64 pout) {\n.reg .b64 %in, %out, %at;\n"
           ".reg .b32 %t, %d, %a, %b, %c;\nld.param.u64 %in, [pin];\nld.param.u64 %out, [pout];\n"
           "mov.u32 %t, %tid.x;\nmul.wide.u32 %at, %t, 12;\nadd.u64 %in, %in, %at;\n"
           "mul.wide.u32 %at, %t, 4;\nadd.u64 %out, %out, %at;\nld.global.u32 %a, [%in];\n"
           "ld.global.u32 %b, [%in+4];\nld.global.u32 %c, [%in+8];\n" +
           spelling + " %d" + by.d + ", " + sign(by.negate_a) + "%a" + by.a + ", " + sign(by.negate_b) +
           "%b" + by.b + (with_c ? std::string(", ") + sign(by.negate_c) + "%c" : "") +
           ";\nst.global.u32 [%out], %d;\nret;\n}\n";
}

void run(Tally& tally, const std::string& spelling, const Opcode& opcode, bool merges, Random& random) {
    const Selectors by = some_selectors(opcode, merges, random);
    const char last = opcode.row->name.back();
    const bool secondary = !(opcode.flags & FlagSet{Flag::add, Flag::min, Flag::max}).empty();
    const bool with_c = merges || secondary || last == '2' || last == '4' || opcode.row->name == "vmad";
    std::vector<std::uint32_t> in(3 * threads), out(threads, 0xa5a5'a5a5u);
    for (auto& value : in) value = static_cast<std::uint32_t>(some_integer(32, random));
    for (unsigned t = 0; t < threads; t += 5) in[3 * t + 1] = in[3 * t];  // equal
    testing::Device device(kernel_of(spelling, by, with_c));
    if (!device.module().find_kernel("k")->refusal.empty())
        return tally.refused(spelling, device.module().find_kernel("k")->refusal);
    if (lacks_a_handler(device)) return tally.fault(opcode, spelling, "is accepted, but nothing runs it");
    if (const auto fault = device.launch("k", {1}, {threads}, device.array(in), device.array(out)))
        return tally.fault(opcode, spelling, fault->message);
    for (unsigned t = 0; t < threads; ++t) {
        const Bits expected = reference::video(opcode, by, in[3 * t], in[3 * t + 1], in[3 * t + 2]);
        tally.compare(opcode, spelling, {Type::b32, expected}, out[t], [&] {
            char text[160];
            std::snprintf(text, sizeof text, "d%s a%s %x b%s %x c %x", by.d.c_str(), by.a.c_str(), in[3 * t],
                          by.b.c_str(), in[3 * t + 1], in[3 * t + 2]);
            return std::string(text);
        });
    }
}

}  // namespace

void video_vectors(Tally& tally) {
    Random random(1993);
    for (const reference::Syntax& syntax : reference::video_syntax()) {
        for (const std::string& spelling : reference::spellings_of(syntax)) {
            const auto opcode = known(spelling);
            if (!opcode) {
                tally.refused(spelling, "not in the table");
                continue;
            }
            const char last = opcode->row->name.back();
            const bool plain = (opcode->flags & FlagSet{Flag::add, Flag::min, Flag::max}).empty();
            const bool may_merge = plain && last != '2' && last != '4' && opcode->row->name != "vmad";
            for (unsigned round = 0; round < 3; ++round) {
                run(tally, spelling, *opcode, false, random);
                if (may_merge) run(tally, spelling, *opcode, true, random);
            }
        }
    }
}

}  // namespace vectors
