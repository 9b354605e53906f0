// Shared by the vectors: counts of comparisons by row, type and modifier, special values, and pieces of kernels.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "program/table/operations.hpp"
#include "ptx_device.hpp"
#include "reference/evaluate.hpp"

namespace vectors {

using emulated::program::Flag;
using emulated::program::FlagSet;
using emulated::program::Opcode;
using emulated::program::Row;
using emulated::ptx::Type;
using reference::Answer;
using reference::Bits;
using Random = std::mt19937_64;

inline const std::string header = ".version 9.0\n.target sm_90\n.address_size 64\n";

/// The emulated device's spelling of a modifier, or an empty string.
std::string_view spelling_of(Flag flag);
std::string_view register_type(unsigned bytes);  ///< ".b16" for 1 and 2
unsigned register_bytes(Type type);  ///< of the register that holds a value; 4 for a predicate kept as 0 or 1

/// Counts comparisons and mismatches for each cell of the table.
class Tally {
  public:
    struct Count {
        std::uint64_t compared = 0, different = 0;
    };

    /// Compares, counts the comparison for every type and modifier of `opcode`, and keeps the text of the first
    /// mismatches. `where` makes the text, for a mismatch only.
    template <class Where>
    void compare(const Opcode& opcode, std::string_view spelling, const Answer& expected, Bits got,
                 Where&& where) {
        Answer wanted = expected;
        if (!judge(opcode, spelling, wanted, got)) report(spelling, wanted, got, where());
    }
    void refused(std::string_view spelling, const std::string& why);
    void fault(const Opcode& opcode, std::string_view spelling, const std::string& what);
    /// Falsifies one expected result, which the run must then report as a mismatch.
    void corrupt_next() { corrupt_ = true; }

    /// "row <number> <name> <kind> <item> <compared> <different>" for every cell of the table, then notes.
    void print() const;
    std::uint64_t compared() const { return compared_; }
    std::uint64_t different() const { return different_; }

  private:
    bool judge(const Opcode& opcode, std::string_view spelling, Answer& expected, Bits got);
    void report(std::string_view spelling, const Answer& expected, Bits got, const std::string& where);
    void count(const Opcode& opcode, std::string_view spelling, bool same);
    std::map<std::tuple<std::size_t, std::string, std::string>, Count> cells_;
    std::string current_;  ///< the spelling that current_cells_ belongs to
    std::vector<Count*> current_cells_;
    std::map<std::string, unsigned> mismatches_;  ///< by spelling
    std::vector<std::string> refusals_, lines_;
    std::uint64_t compared_ = 0, different_ = 0;
    bool corrupt_ = false;
};

/// The opcode, if the table has it.
std::optional<Opcode> known(const std::string& spelling);

/// True if a loaded instruction has no handler in the machine, so that running it would jump to an invalid address.
bool lacks_a_handler(const testing::Device& device);

/// True if an instruction of one thread loads and has a handler. Also true for all others, which only the table checks.
bool loads(const std::string& spelling, const Opcode& opcode);
/// Opcodes that load although PTX does not have them.
std::vector<std::string> accepted_though_illegal();

/// Random values, and values at which errors are likely.
Bits some_value(Type type, Random& random);
Bits some_integer(unsigned bits, Random& random);

void scalar_vectors(Tally& tally);
void packing_vectors(Tally& tally);
void memory_vectors(Tally& tally);
void video_vectors(Tally& tally);
void wide_vectors(Tally& tally);
void exchange_vectors(Tally& tally);
void control_vectors(Tally& tally);
void tensor_vectors(Tally& tally);
void async_vectors(Tally& tally);
void tensor_copy_vectors(Tally& tally);
void image_vectors(Tally& tally);

}  // namespace vectors
