// Runs a kernel one thread at a time, statement by statement as it was parsed: registers as 64 bits, one
// value each. For kernels whose threads do not meet: no shared memory, no barriers, no atomics.
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
        std::vector<Region> memory;             ///< what global addresses mean
    };

    /// `text` must outlive this; its first .entry is the kernel. Throws: what the parser throws, and
    /// std::runtime_error for what no single thread can run.
    explicit Interpreter(std::string_view text);
    ~Interpreter();

    /// One thread to its end. Throws: std::runtime_error for a wild address, an endless loop, or a result
    /// that PTX leaves open.
    void run(const Launch& launch, std::uint32_t block, std::uint32_t thread) const;

  private:
    struct Program;
    std::unique_ptr<Program> program_;
};

}  // namespace reference
