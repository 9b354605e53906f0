// Counts comparisons for each cell of the operation table, and prints them.
#include <cstdio>

#include "machine/registry.hpp"
#include "program/code.hpp"
#include "vectors.hpp"

namespace vectors {
namespace {

// The spelling of each modifier; the table's eviction hints share one.
constexpr std::string_view spellings[] = {
#define FLAG(name) #name,
#define NAMED(name, part) part,
    BASCULE_PTX_FLAGS(FLAG, NAMED)
#undef NAMED
#undef FLAG
};

template <class Visit>
void each_flag(const FlagSet& flags, Visit&& visit) {
    for (unsigned i = 0; i < static_cast<unsigned>(Flag::count); ++i) {
        if (flags.has(static_cast<Flag>(i))) visit(static_cast<Flag>(i));
    }
}

std::string name_of(Type type) {
    return std::string(emulated::ptx::type_names[static_cast<unsigned>(type)].name);
}

std::size_t number_of(const Row& row) {
    return static_cast<std::size_t>(&row - emulated::program::operation_table().data());
}

}  // namespace

std::string_view spelling_of(Flag flag) { return spellings[static_cast<unsigned>(flag)]; }

std::string_view register_type(unsigned bytes) { return bytes <= 2 ? ".b16" : bytes == 4 ? ".b32" : ".b64"; }
unsigned register_bytes(Type type) { return std::max(2u, emulated::ptx::bytes_of(type)); }

std::optional<Opcode> known(const std::string& spelling) {
    auto found = emulated::program::find_operation(spelling);
    if (auto* opcode = std::get_if<Opcode>(&found)) return *opcode;
    return std::nullopt;
}

bool lacks_a_handler(const testing::Device& device) {
    for (const auto& kernel : device.module().kernels) {
        if (!kernel.refusal.empty()) continue;
        for (const auto& key : kernel.code->keys) {
            if (!emulated::machine::registry().find(key)) return true;
        }
    }
    return false;
}

// Counts a comparison for each cell of the table that the opcode belongs to.
void Tally::count(const Opcode& opcode, std::string_view spelling, bool same) {
    if (current_ != spelling) {
        current_ = spelling;
        current_cells_.clear();
        const std::size_t row = number_of(*opcode.row);
        const auto add = [&](const char* kind, const std::string& item) {
            current_cells_.push_back(&cells_[{row, kind, item}]);
        };
        add("any", "-");
        if (opcode.type != Type::none) add("type", name_of(opcode.type));
        if (opcode.second != Type::none) add("second", name_of(opcode.second));
        if (opcode.third != Type::none) add("third", name_of(opcode.third));
        if (opcode.fourth != Type::none) add("fourth", name_of(opcode.fourth));
        each_flag(opcode.flags, [&](Flag flag) { add("modifier", std::string(spelling_of(flag))); });
    }
    for (Count* cell : current_cells_) {
        ++cell->compared;
        cell->different += !same;
    }
    ++compared_;
    different_ += !same;
}

bool Tally::judge(const Opcode& opcode, std::string_view spelling, Answer& expected, Bits got) {
    if (expected.unspecified) return true;
    if (corrupt_) {
        // Beyond any tolerance, and not another NaN.
        expected.bits ^= expected.type == Type::pred ? 1 : Bits{3} << (reference::bits_in(expected.type) - 2);
        corrupt_ = reference::agrees(expected, got);
    }
    const bool same = reference::agrees(expected, got);
    count(opcode, spelling, same);
    return same;
}

void Tally::report(std::string_view spelling, const Answer& expected, Bits got, const std::string& where) {
    if (++mismatches_[std::string(spelling)] > 3) return;
    char text[400];
    std::snprintf(text, sizeof text, "mismatch %.*s expected %llx got %llx: %s",
                  static_cast<int>(spelling.size()), spelling.data(),
                  static_cast<unsigned long long>(expected.bits), static_cast<unsigned long long>(got),
                  where.c_str());
    lines_.emplace_back(text);
}

void Tally::refused(std::string_view spelling, const std::string& why) {
    refusals_.push_back(std::string(spelling) + ": " + why);
}

void Tally::fault(const Opcode& opcode, std::string_view spelling, const std::string& what) {
    count(opcode, spelling, false);
    lines_.push_back("fault " + std::string(spelling) + ": " + what);
}

void Tally::print() const {
    const auto table = emulated::program::operation_table();
    for (std::size_t row = 0; row < table.size(); ++row) {
        const auto cell = [&](const char* kind, const std::string& item) {
            const auto found = cells_.find({row, kind, item});
            const Count count = found == cells_.end() ? Count{} : found->second;
            std::printf("row %zu %.*s %s %s %llu %llu\n", row, static_cast<int>(table[row].name.size()),
                        table[row].name.data(), kind, item.c_str(),
                        static_cast<unsigned long long>(count.compared),
                        static_cast<unsigned long long>(count.different));
        };
        cell("any", "-");
        table[row].types.each([&](Type type) {
            if (type != Type::none) cell("type", name_of(type));
        });
        table[row].second.each([&](Type type) { cell("second", name_of(type)); });
        table[row].third.each([&](Type type) { cell("third", name_of(type)); });
        table[row].fourth.each([&](Type type) { cell("fourth", name_of(type)); });
        each_flag(table[row].selecting | table[row].neutral | table[row].one_of | table[row].all_of,
                  [&](Flag flag) { cell("modifier", std::string(spelling_of(flag))); });
    }
    for (const std::string& line : lines_) std::printf("%s\n", line.c_str());
    for (const std::string& line : refusals_) std::printf("refused %s\n", line.c_str());
}

}  // namespace vectors
