// Runs a kernel one thread at a time, statement by statement as parsed; registers hold one 64-bit value each. For
// kernels whose threads do not interact: no shared memory, no barriers, no atomics.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

namespace reference {

class Interpreter {
  public:
    struct Region {
        std::uint64_t base;
        std::span<std::byte> bytes;
    };
    struct Launch {
        std::uint32_t grid = 1, block = 1;
        std::span<const std::byte> parameters;  ///< as the kernel declares them, each at its alignment
        std::vector<Region> memory;             ///< the valid global addresses
    };

    /// `text` must outlive this; its first .entry is the kernel. Throws: the parser's errors, and std::runtime_error
    /// for instructions that a single thread cannot run.
    explicit Interpreter(std::string_view text);
    ~Interpreter();

    /// Runs one thread. Throws: std::runtime_error for an invalid address, an endless loop, or an undefined result.
    void run(const Launch& launch, std::uint32_t block, std::uint32_t thread) const;

  private:
    struct Program;
    std::unique_ptr<Program> program_;
};

}  // namespace reference
