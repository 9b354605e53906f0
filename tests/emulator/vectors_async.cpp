// Asynchronous copies, barriers in shared memory and clusters: a kernel for each spelling whose results depend on it.
#include <cstring>
#include <functional>

#include "reference/grammar.hpp"
#include "vectors_atomics.hpp"

namespace vectors {
namespace {

constexpr unsigned threads = 32;
constexpr std::uint32_t never_copied = 0xffff'ffff;  // the content of a destination before a wait
using Words = std::vector<std::uint32_t>;            // four for each thread

// `body` computes %r, which is stored at the end. %in is the address of the thread's four numbers, %mine 16 bytes of
// shared memory of the thread, %bar an mbarrier of the thread, and `all` one of the block.
struct Program {
    std::string body;
    std::function<std::uint32_t(const Words& in, unsigned thread)> expected;
    bool stores = true;
};

std::string kernel_of(const Program& program) {
    return header +
           ".visible .entry k(.param .u64 pin, .param .u64 pout) {\n"
           ".shared .align 16 .b8 s[1024];\n.shared .align 8 .b64 bars[32];\n.shared .align 8 .b64 all;\n"
           ".reg .b64 %first, %in, %out, %mine, %bar, %at, %policy, %state, %other;\n"
           ".reg .b32 %t, %r, %x, %y, %near;\n.reg .b16 %mask;\n.reg .pred %p, %q, %leads;\n"
           "ld.param.u64 %first, [pin];\nld.param.u64 %out, [pout];\nmov.u32 %t, %tid.x;\n"
           "mul.wide.u32 %at, %t, 16;\nadd.u64 %in, %first, %at;\nmov.u64 %mine, s;\nadd.u64 %mine, %mine, %at;\n"
           "mul.wide.u32 %at, %t, 8;\nmov.u64 %bar, bars;\nadd.u64 %bar, %bar, %at;\n"
           "setp.eq.u32 %leads, %t, 0;\nmov.u64 %policy, 0;\nmov.u32 %r, 0;\n" +
           program.body +
           (program.stores ? "mul.wide.u32 %at, %t, 4;\nadd.u64 %at, %out, %at;\nst.global.u32 [%at], %r;\n"
                           : "") +
           "ret;\n}\n";
}

std::string init_all(unsigned count) {
    return "@%leads mbarrier.init.shared.b64 [all], " + std::to_string(count) + ";\nbar.sync 0;\n";
}
const std::string wait_all = "WAIT: mbarrier.test_wait.parity.shared.b64 %p, [all], 0;\n@!%p bra WAIT;\n";
const std::string read_neighbour =
    "xor.b32 %x, %t, 5;\nmul.wide.u32 %at, %x, 16;\nmov.u64 %mine, s;\nadd.u64 %mine, %mine, %at;\n"
    "ld.shared.u32 %r, [%mine+8];\n";
// Appends a bit to %r: whether the phase of parity 0 of the thread's mbarrier is complete.
const std::string observe =
    "mbarrier.test_wait.parity.shared.b64 %p, [%bar], 0;\nselp.u32 %x, 1, 0, %p;\nmad.lo.u32 %r, %r, 2, %x;\n";

Program copies(const std::string& spelling, const Opcode& opcode) {
    const std::string policy = opcode.flags.has(Flag::policy) ? ", %policy" : "";
    return {spelling + " [%mine], [%in], 16" + policy +
                ";\nld.shared.u32 %x, [%mine+4];\ncp.async.wait_all;\n" +
                "ld.shared.u32 %y, [%mine+4];\nxor.b32 %r, %x, %y;\n",
            [](const Words& in, unsigned t) { return never_copied ^ in[4 * t + 1]; }};
}

Program groups(const std::string& spelling, const Opcode& opcode) {
    const bool all = opcode.flags.has(Flag::wait_all), waits = opcode.flags.has(Flag::wait_group);
    const std::string commit = opcode.flags.has(Flag::commit_group) ? spelling : "cp.async.commit_group";
    return {"cp.async.ca.shared.global [%mine], [%in], 4;\n" + commit +
                ";\ncp.async.ca.shared.global [%mine+4], [%in+4], 4;\n" + commit + ";\n" +
                (all     ? spelling + ";\n"
                 : waits ? spelling + " 1;\n"
                         : "cp.async.wait_group 1;\n") +
                "ld.shared.u32 %x, [%mine];\nld.shared.u32 %y, [%mine+4];\nxor.b32 %r, %x, %y;\n",
            [all](const Words& in, unsigned t) { return in[4 * t] ^ (all ? in[4 * t + 1] : never_copied); }};
}

Program arrives_after_copies(const std::string& spelling, const Opcode& opcode) {
    const bool expected = opcode.flags.has(Flag::noinc);
    return {init_all(threads) + "cp.async.cg.shared.global [%mine], [%in], 16;\n" + spelling + " [all];\n" +
                (expected ? "" : "mbarrier.arrive.shared.b64 %state, [all];\n") + wait_all + read_neighbour,
            [](const Words& in, unsigned t) { return in[4 * (t ^ 5) + 2]; }};
}

Program bulk_copies(const std::string& spelling, const Opcode& opcode) {
    const std::string policy = opcode.flags.has(Flag::policy) ? ", %policy" : "";
    if (opcode.flags.has(Flag::bulk_group)) {
        return {
            "mov.u64 %mine, s;\nmul.wide.u32 %at, %t, 4;\nadd.u64 %mine, %mine, %at;\n"
            "ld.global.u32 %x, [%in];\nst.shared.u32 [%mine], %x;\nfence.proxy.async;\nbar.sync 0;\n@!%leads bra OVER;\n" +
                spelling + " [%out], [s], 128" + policy +
                ";\ncp.async.bulk.commit_group;\ncp.async.bulk.wait_group 0;\nOVER:\n",
            [](const Words& in, unsigned t) { return in[4 * t]; }, false};
    }
    const bool between = !opcode.flags.has(Flag::global);
    const std::string mask = opcode.flags.has(Flag::multicast) ? ", %mask" : "";
    const std::string size = between ? "256" : "512", source = between ? "s" : "%first";
    std::string text = init_all(1);
    // Between blocks: the first half of `s` is copied to the second.
    if (between)
        text += "ld.global.u32 %x, [%in+8];\nst.shared.u32 [%mine+8], %x;\nfence.proxy.async;\nbar.sync 0;\n";
    text += "mov.u16 %mask, 1;\n@!%leads bra ISSUED;\nmbarrier.arrive.expect_tx.shared.b64 %state, [all], " +
            size + ";\n" + spelling + (between ? " [s+256], [" : " [s], [") + source + "], " + size +
            ", [all]" + mask + policy + ";\nISSUED:\n" + wait_all + read_neighbour;
    return {text, [between](const Words& in, unsigned t) {
                const unsigned from = t ^ 5;
                return in[4 * (between && from >= 16 ? from - 16 : from) + 2];
            }};
}

Program bulk_groups(const std::string& spelling, const Opcode& opcode) {
    const bool commits = opcode.flags.has(Flag::commit_group), reads = opcode.flags.has(Flag::read);
    const std::string wait = commits ? "cp.async.bulk.wait_group 0" : spelling + " 0";
    // A wait with .read waits until the sources may be overwritten; the copy is complete when the thread has ended.
    return {
        "mov.u64 %mine, s;\nmul.wide.u32 %at, %t, 4;\nadd.u64 %mine, %mine, %at;\n"
        "ld.global.u32 %x, [%in];\nst.shared.u32 [%mine], %x;\nfence.proxy.async;\nbar.sync 0;\n@!%leads bra OVER;\n"
        "cp.async.bulk.global.shared::cta.bulk_group [%out], [s], 128;\n" +
            std::string(commits ? spelling : "cp.async.bulk.commit_group") + ";\n" + wait + ";\n" +
            (reads ? "st.shared.u32 [s], 1;\n" : "ld.global.u32 %x, [%out];\nst.global.u32 [%out+4], %x;\n") +
            "OVER:\n",
        [reads](const Words& in, unsigned t) { return in[!reads && t == 1 ? 0 : 4 * t]; }, false};
}

Program transactions(const std::string& spelling, const Opcode& opcode) {
    const bool expects = opcode.flags.has(Flag::expect_tx);
    const std::string expect = expects ? spelling : "mbarrier.expect_tx.relaxed.cta.shared.b64";
    const std::string complete = expects ? "mbarrier.complete_tx.relaxed.cta.shared.b64" : spelling;
    return {"mbarrier.init.shared.b64 [%bar], 1;\n" + expect +
                " [%bar], 48;\nmbarrier.arrive.shared.b64 %state, [%bar];\n" + observe + complete +
                " [%bar], 16;\n" + observe + complete + " [%bar], 32;\n" + observe,
            [](const Words&, unsigned) { return 0b001u; }};
}

Program lifetimes(const std::string& spelling, const Opcode& opcode) {
    const std::string begin = opcode.flags.has(Flag::init) ? spelling : "mbarrier.init.shared.b64";
    const std::string end = opcode.flags.has(Flag::inval) ? spelling : "mbarrier.inval.shared.b64";
    return {begin + " [%bar], 1;\nmbarrier.arrive.shared.b64 %state, [%bar];\n" + observe + end +
                " [%bar];\n" + begin + " [%bar], 2;\nmbarrier.arrive.shared.b64 %state, [%bar];\n" + observe +
                "mbarrier.arrive.shared.b64 %state, [%bar];\n" + observe,
            [](const Words&, unsigned) { return 0b101u; }};
}

// Two arrivals end the first phase; a dropped one is not expected in the second.
Program arrivals(const std::string& spelling, const Opcode& opcode) {
    const bool drops = opcode.flags.has(Flag::arrive_drop), counts = opcode.flags.has(Flag::expect_tx);
    const std::string to = opcode.flags.has(Flag::shared_cluster) ? " _, " : " %state, ";
    const bool stays = opcode.flags.has(Flag::noComplete);
    const std::string arrive = spelling + to + "[%bar]" + (counts ? ", 16" : stays ? ", 1" : "") + ";\n";
    const std::string other = "mbarrier.arrive.shared.b64 %other, [%bar];\n";
    std::string text = "mbarrier.init.shared.b64 [%bar], 2;\n" + arrive + observe + other + observe;
    if (counts) text += "mbarrier.complete_tx.relaxed.cta.shared.b64 [%bar], 16;\n" + observe;
    // Another phase: one arrival, which is enough after a drop.
    text += other + observe;
    if (!counts && !stays && !opcode.flags.has(Flag::shared_cluster))
        text +=
            "mbarrier.test_wait.shared.b64 %p, [%bar], %state;\nselp.u32 %x, 1, 0, %p;\nmad.lo.u32 %r, %r, 2, %x;\n";
    const bool tests = !counts && !stays && !opcode.flags.has(Flag::shared_cluster);
    return {text, [drops, counts, tests](const Words&, unsigned) {
                unsigned seen = counts ? 0b001 : 0b01;
                seen = 2 * seen +
                       (drops ? 0 : 1);  // parity 0 is the running phase again, after the second is complete
                return tests ? 2 * seen + (drops ? 0 : 1) : seen;
            }};
}

Program phase_tests(const std::string& spelling, const Opcode& opcode) {
    const bool parity = opcode.flags.has(Flag::parity);
    const std::string test = spelling + " %p, [%bar], " + (parity ? "0" : "%state") + ";\n" +
                             "selp.u32 %x, 1, 0, %p;\nmad.lo.u32 %r, %r, 2, %x;\n";
    return {"mbarrier.init.shared.b64 [%bar], 2;\nmbarrier.arrive.shared.b64 %state, [%bar];\n" + test +
                "mbarrier.arrive.shared.b64 %other, [%bar];\n" + test + test,
            [](const Words&, unsigned) { return 0b011u; }};
}

Program counts(const std::string& spelling) {
    return {
        "and.b32 %x, %t, 7;\nadd.u32 %x, %x, 1;\nmbarrier.init.shared.b64 [%bar], 20;\n"
        "mbarrier.arrive.noComplete.shared.b64 %state, [%bar], %x;\n"
        "mbarrier.arrive.noComplete.shared.b64 %state, [%bar], 1;\n" +
            spelling + " %r, %state;\n",
        [](const Words&, unsigned t) { return 20 - (t & 7) - 1; }};
}

Program cluster_barriers(const std::string& spelling, const Opcode& opcode) {
    const bool arrives = opcode.flags.has(Flag::arrive);
    const std::string both = (arrives ? spelling : "barrier.cluster.arrive") + ";\n" +
                             (arrives ? "barrier.cluster.wait" : spelling) + ";\n";
    return {"ld.global.u32 %x, [%in+8];\nst.shared.u32 [%mine+8], %x;\n" + both + both + read_neighbour,
            [](const Words& in, unsigned t) { return in[4 * (t ^ 5) + 2]; }};
}

// In a cluster of one block, whose rank is 0, an address of the cluster leads to the block's own memory.
Program mapped(const std::string& spelling, const Opcode& opcode) {
    const bool maps = opcode.row->name == "mapa", wide = opcode.type == Type::u64;
    std::string text = "ld.global.u32 %x, [%in];\nst.shared.u32 [%mine], %x;\ncvt.u32.u64 %near, %mine;\n";
    const std::string d = wide ? "%at" : "%y", a = wide ? "%mine" : "%near";
    if (maps) {
        text += spelling + " " + d + ", " + a + ", 0;\nld.shared::cluster.u32 %r, [" + d + "];\n";
        return {text, [](const Words& in, unsigned t) { return in[4 * t]; }};
    }
    text += "mapa.shared::cluster." + std::string(wide ? "u64 " : "u32 ") + d + ", " + a + ", 3;\n" +
            spelling + " %r, " + d + ";\n" + spelling + " %x, " + a + ";\nmad.lo.u32 %r, %r, 10, %x;\n";
    return {text, [](const Words&, unsigned) { return 30u; }};
}

Program elections(const std::string& spelling) {
    return {"and.b32 %x, %t, 3;\nshl.b32 %y, 0x11111111, %x;\n" + spelling +
                " %r|%p, %y;\nselp.u32 %x, 100, 0, %p;\nadd.u32 %r, %r, %x;\n",
            [](const Words&, unsigned t) { return (t & 3) + (t < 4 ? 100 : 0); }};
}

// For instructions without a visible effect, checks that the surrounding code works.
Program passes(const std::string& spelling, const Opcode& opcode) {
    const std::string operands =
        opcode.flags.has(Flag::prefetch)
            ? std::string(" [%in], 16") + (opcode.flags.has(Flag::policy) ? ", %policy" : "")
            : "";
    return {"ld.global.u32 %x, [%in+8];\nst.shared.u32 [%mine+8], %x;\n" + spelling + operands +
                ";\nbar.sync 0;\n" + read_neighbour,
            [](const Words& in, unsigned t) { return in[4 * (t ^ 5) + 2]; }};
}

Program program_of(const std::string& spelling, const Opcode& opcode) {
    using emulated::program::Operation;
    switch (opcode.row->operation) {
        case Operation::copy_async:
            return copies(spelling, opcode);
        case Operation::copy_group:
            return groups(spelling, opcode);
        case Operation::copy_arrive:
            return arrives_after_copies(spelling, opcode);
        case Operation::bulk_copy:
            return bulk_copies(spelling, opcode);
        case Operation::bulk_group:
            return bulk_groups(spelling, opcode);
        case Operation::cluster_bar:
            return cluster_barriers(spelling, opcode);
        case Operation::mapa:
        case Operation::getctarank:
            return mapped(spelling, opcode);
        case Operation::elect:
            return elections(spelling);
        case Operation::mbarrier:
            break;
        default:
            return passes(spelling, opcode);
    }
    if (opcode.flags.has(Flag::pending_count)) return counts(spelling);
    if (opcode.flags.has(Flag::init) || opcode.flags.has(Flag::inval)) return lifetimes(spelling, opcode);
    if (opcode.flags.has(Flag::arrive) || opcode.flags.has(Flag::arrive_drop))
        return arrivals(spelling, opcode);
    if (opcode.flags.has(Flag::test_wait) || opcode.flags.has(Flag::try_wait))
        return phase_tests(spelling, opcode);
    return transactions(spelling, opcode);
}

void run(Tally& tally, const std::string& spelling, const Opcode& opcode, Random& random) {
    const Program program = program_of(spelling, opcode);
    Words in(4 * threads), out(threads, 0xa5a5'5a5a);
    for (auto& value : in) value = static_cast<std::uint32_t>(random());
    testing::Device device(kernel_of(program));
    const std::string& refusal = device.module().find_kernel("k")->refusal;
    if (!refusal.empty()) return tally.refused(spelling, refusal);
    if (lacks_a_handler(device)) return tally.fault(opcode, spelling, "is accepted, but nothing runs it");
    // An H100 refuses this copy in a cluster of one block, and so does the emulated device. Both blocks write the same.
    if (spelling.starts_with("cp.async.bulk.shared::cluster.shared::cta")) device.cluster = {2};
    if (const auto fault = device.launch("k", device.cluster, {threads}, device.array(in), device.array(out)))
        return tally.fault(opcode, spelling, fault->message);
    for (unsigned t = 0; t < threads; ++t) {
        tally.compare(opcode, spelling, {Type::b32, program.expected(in, t)}, out[t],
                      [&] { return "thread " + std::to_string(t); });
    }
}

// --- instructions that combine or store elements ----------------------------------------------------------

constexpr unsigned bytes_each = 16;  // per thread, in the source and in the destination

// Each thread has 16 bytes of the first half of `s`, the source, and of the second half.
std::string writing_kernel(const std::string& spelling, const Opcode& opcode) {
    const bool bulk = opcode.flags.has(Flag::bulk), to_global = opcode.flags.has(Flag::bulk_group);
    const unsigned lanes = opcode.flags.has(Flag::v4) ? 4 : opcode.flags.has(Flag::v2) ? 2 : 1;
    const unsigned bytes = emulated::ptx::bytes_of(opcode.type);
    const std::string type(register_type(bytes)), policy = opcode.flags.has(Flag::policy) ? ", %policy" : "";
    std::string values, list, loads;
    for (unsigned k = 0; k < lanes; ++k) {
        const std::string name = "%v" + std::to_string(k);
        values += ".reg " + type + " " + name + ";\n";
        list += (k == 0 ? "" : ", ") + name;
        loads += "ld.shared" + type + " " + name + ", [%mine+" + std::to_string(k * bytes) + "];\n";
    }
    if (lanes > 1) list = "{" + list + "}";
    const unsigned counted = bulk ? threads * bytes_each : threads * lanes * bytes;
    const std::string expect =
        "@%leads mbarrier.arrive.expect_tx.shared.b64 %state, [all], " + std::to_string(counted) + ";\n";
    std::string body;
    if (to_global) {
        body = "@!%leads bra OVER;\n" + spelling + " [%first], [s], 512" + policy +
               ";\ncp.async.bulk.commit_group;\ncp.async.bulk.wait_group 0;\nOVER:\n";
    } else {
        body = init_all(1) + expect;
        body += bulk ? "@%leads " + spelling + " [s+512], [s], 512, [all];\n"
                     : loads + spelling + " [%mine+512], " + list + ", [all];\n";
        body += wait_all + "ld.shared.v2.b64 {%x, %y}, [%mine+512];\nst.global.v2.b64 [%out], {%x, %y};\n";
    }
    return header +
           ".visible .entry k(.param .u64 pin, .param .u64 pout) {\n.shared .align 16 .b8 s[1024];\n"
           ".shared .align 8 .b64 all;\n.reg .b64 %in, %out, %first, %mine, %at, %x, %y, %policy, %state;\n"
           ".reg .b32 %t;\n.reg .pred %p, %leads;\n" +
           values +
           "ld.param.u64 %in, [pin];\nld.param.u64 %first, [pout];\nmov.u32 %t, %tid.x;\nmul.wide.u32 %at, %t, 16;\n"
           "add.u64 %in, %in, %at;\nadd.u64 %out, %first, %at;\nmov.u64 %mine, s;\nadd.u64 %mine, %mine, %at;\n"
           "setp.eq.u32 %leads, %t, 0;\nmov.u64 %policy, 0;\n"
           "ld.global.v2.b64 {%x, %y}, [%in];\nst.shared.v2.b64 [%mine], {%x, %y};\n"
           "ld.global.v2.b64 {%x, %y}, [%out];\nst.shared.v2.b64 [%mine+512], {%x, %y};\n"
           "fence.proxy.async;\nbar.sync 0;\n" +
           body + "ret;\n}\n";
}

void run_writes(Tally& tally, const std::string& spelling, const Opcode& opcode, Random& random) {
    const unsigned bytes = emulated::ptx::bytes_of(opcode.type), elements = threads * bytes_each / bytes;
    const unsigned lanes = opcode.flags.has(Flag::v4) ? 4 : opcode.flags.has(Flag::v2) ? 2 : 1;
    const bool stores = opcode.row->name == "st", bulk = opcode.flags.has(Flag::bulk);
    std::vector<std::uint8_t> source(threads * bytes_each), target(source.size());
    const auto element = [&](std::vector<std::uint8_t>& of, unsigned at) {
        Bits value = 0;
        std::memcpy(&value, of.data() + at * bytes, bytes);
        return value;
    };
    for (auto* of : {&source, &target}) {
        for (unsigned at = 0; at < elements; ++at) {
            const Bits value = some_value(opcode.type, random);
            std::memcpy(of->data() + at * bytes, &value, bytes);
        }
    }
    auto before = target;
    testing::Device device(writing_kernel(spelling, opcode));
    const std::string& refusal = device.module().find_kernel("k")->refusal;
    if (!refusal.empty()) return tally.refused(spelling, refusal);
    if (lacks_a_handler(device)) return tally.fault(opcode, spelling, "is accepted, but nothing runs it");
    if (const auto fault = device.launch("k", {1}, {threads}, device.array(source), device.array(target)))
        return tally.fault(opcode, spelling, fault->message);
    for (unsigned at = 0; at < elements; ++at) {
        const bool touched = bulk || at % (bytes_each / bytes) < lanes;
        const Bits old = element(before, at), brought = element(source, at);
        const Bits expected = !touched ? old : stores ? brought : after_atomic(opcode, old, brought, 0);
        tally.compare(opcode, spelling,
                      {touched && !stores ? opcode.type
                       : bytes == 8       ? Type::b64
                       : bytes == 4       ? Type::b32
                                          : Type::b16,
                       expected},
                      element(target, at), [&] { return "element " + std::to_string(at); });
    }
}

}  // namespace

void async_vectors(Tally& tally) {
    Random random(1234);
    for (const reference::Syntax& syntax : reference::async_syntax()) {
        for (const std::string& spelling : reference::spellings_of(syntax)) {
            const auto opcode = known(spelling);
            if (!opcode) {
                tally.refused(spelling, "not in the table");
                continue;
            }
            using emulated::program::Operation;
            const Operation operation = opcode->row->operation;
            const bool writes = operation == Operation::bulk_reduce || operation == Operation::store_async ||
                                operation == Operation::reduce_async;
            (writes ? run_writes : run)(tally, spelling, *opcode, random);
        }
    }
}

}  // namespace vectors
