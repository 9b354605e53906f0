// Random PTX programs whose threads do not interact, for the machine and the reference interpreter to run side by side.
#pragma once

#include <cstdint>
#include <random>
#include <string>
#include <vector>

namespace random_programs {

/// Each thread's parts of global memory, in words of 8 bytes.
inline constexpr unsigned input_words = 24, scratch_words = 8, output_words = 26;

struct Program {
    std::string text;  ///< .entry k(.param .u64 in, .param .u64 scratch, .param .u64 out)
    std::uint32_t grid = 1, block = 1;
};

/// The opcodes of single threads that the device accepts, whose results PTX defines to the bit.
class Opcodes {
  public:
    Opcodes();
    /// A random opcode; each line of the syntax has the same probability.
    const std::string& any(std::mt19937_64& random) const;

  private:
    std::vector<std::vector<std::string>> lines_;
};

/// The same seed gives the same program.
Program generate(const Opcodes& opcodes, std::uint64_t seed);

}  // namespace random_programs
