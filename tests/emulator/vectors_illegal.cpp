// Notes opcodes that the device accepts although PTX has no such instruction; these are not failures. Tries each row of
// the table with up to two modifiers beyond those that it requires, except for opcodes in the grammar.
#include <set>

#include "reference/grammar.hpp"
#include "vectors.hpp"

namespace vectors {
namespace {

using Identity = std::tuple<const Row*, Type, Type, Type, std::uint64_t>;

Identity identity_of(const Opcode& opcode) {
    return {opcode.row, opcode.type, opcode.second, opcode.third, opcode.flags.digest()};
}

std::set<Identity> legal_opcodes() {
    std::set<Identity> made;
    for (const auto lines :
         {reference::scalar_syntax(), reference::memory_syntax(), reference::video_syntax(),
          reference::wide_syntax(), reference::exchange_syntax(), reference::control_syntax(),
          reference::tensor_syntax(), reference::async_syntax(), reference::tensor_copy_syntax(),
          reference::image_syntax()}) {
        for (const reference::Syntax& syntax : lines) {
            for (const std::string& spelling : reference::spellings_of(syntax)) {
                if (const auto opcode = known(spelling)) made.insert(identity_of(*opcode));
            }
        }
    }
    return made;
}

std::vector<Flag> list_of(const FlagSet& flags) {
    std::vector<Flag> made;
    for (unsigned i = 0; i < static_cast<unsigned>(Flag::count); ++i) {
        if (flags.has(static_cast<Flag>(i))) made.push_back(static_cast<Flag>(i));
    }
    return made;
}

// Returns every set of modifiers to try with a row.
std::vector<FlagSet> choices_of(const Row& row) {
    std::vector<FlagSet> bases{row.all_of};
    if (!row.one_of.empty()) {
        bases.clear();
        for (const Flag one : list_of(row.one_of)) bases.push_back(row.all_of | FlagSet{one});
    }
    const std::vector<Flag> others = list_of((row.selecting | row.neutral).minus(row.one_of | row.all_of));
    std::vector<FlagSet> made;
    for (const FlagSet& base : bases) {
        made.push_back(base);
        for (std::size_t i = 0; i < others.size(); ++i) {
            made.push_back(base | FlagSet{others[i]});
            for (std::size_t j = 0; j < i; ++j) made.push_back(base | FlagSet{others[i], others[j]});
        }
    }
    return made;
}

std::string spelled(const Row& row, Type type, Type second, const FlagSet& flags) {
    std::string text(row.name);
    for (const Flag flag : list_of(flags)) text += "." + std::string(spelling_of(flag));
    const auto add = [&](Type each) {
        if (each != Type::none)
            text += "." + std::string(emulated::ptx::type_names[static_cast<unsigned>(each)].name);
    };
    add(type);
    add(second);
    row.third.each(add);  // no opcode if there are several: mma and wgmma are not tried
    return text;
}

}  // namespace

bool loads(const std::string& spelling, const Opcode& opcode) {
    const reference::Family* family = reference::family_of(opcode);
    if (!family || family->results == "Tp") return true;  // as far as the table knows
    const reference::Signature signature = signature_of(opcode, *family);
    std::string text =
        header + ".visible .entry k() {\n.reg .b16 %h;\n.reg .b32 %r;\n.reg .b64 %d;\n.reg .pred %p;\n" +
        spelling;
    const auto add = [&](Type type, bool first) {
        const unsigned bytes = type == Type::pred ? 0 : register_bytes(type);
        text += (first ? " " : ", ") + std::string(bytes == 0   ? "%p"
                                                   : bytes == 2 ? "%h"
                                                   : bytes == 4 ? "%r"
                                                                : "%d");
    };
    add(signature.results[0], true);
    for (unsigned i = 0; i < signature.source_count; ++i) {
        if (signature.source_letters[i] == 'i')
            text += ", 1";
        else
            add(signature.sources[i], false);
    }
    const testing::Device device(text + ";\nret;\n}\n");
    return device.module().kernels.at(0).refusal.empty() && !lacks_a_handler(device);
}

std::vector<std::string> accepted_though_illegal() {
    const std::set<Identity> legal = legal_opcodes();
    std::vector<std::string> made;
    for (const Row& row : emulated::program::operation_table()) {
        const std::vector<FlagSet> choices = choices_of(row);
        row.types.each([&](Type type) {
            const auto visit = [&](Type second) {
                for (const FlagSet& flags : choices) {
                    const std::string spelling = spelled(row, type, second, flags);
                    const auto opcode = known(spelling);
                    if (!opcode || opcode->row != &row || legal.contains(identity_of(*opcode))) continue;
                    if (loads(spelling, *opcode)) made.push_back(spelling);
                }
            };
            if (row.second.empty())
                visit(Type::none);
            else
                row.second.each(visit);
        });
    }
    return made;
}

}  // namespace vectors
