// isspacep, conversions of addresses to generic ones and back, and prefetch, which changes nothing.
#include "vectors_atomics.hpp"

namespace vectors {
namespace {

struct Home {
    Flag flag;
    std::string_view space, variable;
};
constexpr Home homes[] = {
    {Flag::global, "global", "globals"}, {Flag::constant, "const", "constants"},
    {Flag::shared, "shared", "s"},       {Flag::local, "local", "l"},
    {Flag::param, "param", "pbytes"},
};

constexpr unsigned threads = 104;

// `body` computes %x from two addresses of `home`'s variable: %i in its own space, and %g, the generic one.
std::vector<std::uint64_t> run(Tally& tally, const std::string& spelling, const Opcode& opcode,
                               const Home& home, const std::string& body) {
    const std::string text =
        header +
        ".global .align 8 .u64 globals[4] = {71, 72};\n.const .align 8 .u64 constants[4] = {71, 72};\n"
        ".visible .entry k(.param .align 8 .b8 pbytes[16], .param .u64 pout) {\n.shared .align 8 .b64 s[4];\n"
        ".local .align 8 .b64 l[4];\n.reg .b64 %out, %i, %g, %x, %at;\n.reg .b32 %t, %near;\n.reg .pred %p;\n"
        "ld.param.u64 %out, [pout];\nmov.u32 %t, %tid.x;\nmul.wide.u32 %at, %t, 8;\n"
        "add.u64 %out, %out, %at;\n"
        "st.local.u64 [l], 71;\nst.shared.u64 [s], 71;\nbar.sync 0;\n"
        "mov.u64 %i, " +
        std::string(home.variable) + ";\ncvta." + std::string(home.space) + ".u64 %g, %i;\n" + body +
        "st.global.u64 [%out], %x;\nret;\n}\n";
    std::vector<std::uint64_t> out(threads, ~0ull);
    testing::Device device(text);
    const std::string& refusal = device.module().find_kernel("k")->refusal;
    if (!refusal.empty()) {
        tally.refused(spelling, refusal);
        return {};
    }
    if (lacks_a_handler(device)) {
        tally.fault(opcode, spelling, "is accepted, but nothing runs it");
        return {};
    }
    const std::array<std::uint64_t, 2> bytes{71, 72};
    if (const auto fault = device.launch("k", {1}, {threads}, bytes, device.array(out))) {
        tally.fault(opcode, spelling, fault->message);
        return {};
    }
    return out;
}

}  // namespace

void address_vectors(Tally& tally, const std::string& spelling, const Opcode& opcode) {
    const std::string_view name = opcode.row->name;
    const auto names_space_of = [&](const Home& home) {
        return opcode.flags.has(home.flag) ||
               (home.flag == Flag::shared && opcode.flags.has(Flag::shared_cluster));
    };
    for (const Home& home : homes) {
        const std::string where = "an address in " + std::string(home.space);
        const auto expect = [&](const std::string& body, Bits expected) {
            for (const std::uint64_t got : run(tally, spelling, opcode, home, body)) {
                tally.compare(opcode, spelling, {Type::b64, expected}, got, [&] { return where; });
            }
        };
        if (name == "isspacep") {
            expect(spelling + " %p, %g;\nselp.u64 %x, 1, 0, %p;\n", names_space_of(home));
        } else if (name.starts_with("prefetch")) {
            const bool generic = (opcode.flags & FlagSet{Flag::global, Flag::local}).empty();
            if (!generic && !opcode.flags.has(home.flag)) continue;
            expect(spelling + " [" + (generic ? "%g" : "%i") + "];\nld.u64 %x, [%g];\n", 71);
        } else if (names_space_of(home)) {
            const std::string space(home.space);
            if (opcode.type == Type::u32) {  // to generic and back
                const std::string there = opcode.flags.has(Flag::to) ? "cvta." : "cvta.to.";
                if (home.flag == Flag::global || home.flag == Flag::constant) {
                    expect("mov.u32 %near, 71;\n" + spelling + " %near, %near;\n" + there + space +
                               ".u32 %near, %near;\ncvt.u64.u32 %x, %near;\n",
                           71);
                    continue;
                }
                expect("cvt.u32.u64 %near, %i;\n" + spelling + " %near, %near;\n" + there + space +
                           ".u32 %near, %near;\ncvt.u64.u32 %x, %near;\nsub.u64 %x, %x, %i;\n",
                       0);
            } else if (opcode.flags.has(Flag::to)) {
                expect(spelling + " %x, %g;\nsub.u64 %x, %x, %i;\n", 0);
            } else {
                expect(spelling + " %x, %i;\nld.u64 %x, [%x];\n", 71);
            }
        }
    }
}

}  // namespace vectors
