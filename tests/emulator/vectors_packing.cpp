// mov between a register and its parts, with and without a sink.
#include "vectors.hpp"

namespace vectors {
namespace {

constexpr unsigned threads = 72;

struct Packing {
    std::string_view spelling;
    unsigned parts;
};
constexpr Packing packings[] = {{"mov.b32", 2}, {"mov.b64", 2}, {"mov.b64", 4}};

std::string list_of(char letter, unsigned parts, bool without_first) {
    std::string text = "{";
    for (unsigned k = 0; k < parts; ++k) {
        text +=
            (k ? ", " : "") + (k == 0 && without_first ? "_" : std::string("%") + letter + std::to_string(k));
    }
    return text + "}";
}

// Packs a word from its parts, unpacks it, and unpacks it again without the lowest part.
std::string kernel_of(const Packing& packing, unsigned bytes) {
    const std::string part(register_type(bytes / packing.parts)), whole(register_type(bytes)),
        mov(packing.spelling);
    std::string text = header +
                       ".visible .entry k(.param .u64 pin, .param .u64 pout) {\n.reg .b64 %in, %out, %at;\n"
                       ".reg .b32 %t;\n.reg " +
                       whole + " %w;\n.reg " + part +
                       " %a<4>, %b<4>, %c<4>;\n"
                       "ld.param.u64 %in, [pin];\nld.param.u64 %out, [pout];\nmov.u32 %t, %tid.x;\n"
                       "mul.wide.u32 %at, %t, 8;\nadd.u64 %in, %in, %at;\nmul.wide.u32 %at, %t, 24;\n"
                       "add.u64 %out, %out, %at;\n";
    const auto slot = [&](unsigned k) { return std::to_string(k * bytes / packing.parts); };
    for (unsigned k = 0; k < packing.parts; ++k) {
        const std::string number = std::to_string(k);
        text += "ld.global" + part + " %a" + number + ", [%in+" + slot(k) + "];\nmov" + part + " %c" +
                number + ", %a" + number + ";\n";
    }
    text += mov + " %w, " + list_of('a', packing.parts, false) + ";\n" + mov + " " +
            list_of('b', packing.parts, false) + ", %w;\n" + mov + " " + list_of('c', packing.parts, true) +
            ", %w;\nst.global" + whole + " [%out], %w;\n";
    for (unsigned k = 0; k < packing.parts; ++k) {
        const std::string number = std::to_string(k);
        text += "st.global" + part + " [%out+" + std::to_string(8 + k * bytes / packing.parts) + "], %b" +
                number + ";\nst.global" + part + " [%out+" + std::to_string(16 + k * bytes / packing.parts) +
                "], %c" + number + ";\n";
    }
    return text + "ret;\n}\n";
}

}  // namespace

void packing_vectors(Tally& tally) {
    Random random(5);
    for (const Packing& packing : packings) {
        const std::string spelling(packing.spelling);
        const Opcode opcode = *known(spelling);
        const unsigned bytes = emulated::ptx::bytes_of(opcode.type);
        const Bits mask = reference::mask_of(opcode.type);
        std::vector<std::uint64_t> in(threads), out(3 * threads);
        for (auto& value : in) value = random();
        testing::Device device(kernel_of(packing, bytes));
        const std::string& refusal = device.module().find_kernel("k")->refusal;
        if (!refusal.empty()) {
            tally.refused(spelling, refusal);
            continue;
        }
        if (const auto fault = device.launch("k", {1}, {threads}, device.array(in), device.array(out))) {
            tally.fault(opcode, spelling, fault->message);
            continue;
        }
        for (unsigned i = 0; i < 3 * threads; ++i) {
            static constexpr const char* what[] = {"packed", "taken apart",
                                                   "taken apart but for the lowest part"};
            tally.compare(opcode, spelling, {opcode.type, in[i / 3] & mask}, out[i] & mask,
                          [&] { return std::to_string(packing.parts) + " parts, " + what[i % 3]; });
        }
    }
}

}  // namespace vectors
