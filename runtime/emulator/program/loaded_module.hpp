// A loaded PTX module: its global variables, and its kernels as bytecode or with a reason why they cannot run.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace emulated::program {

struct Code;  // bytecode; program/code.hpp

/// A module-scope variable. Its memory is allocated when the module is loaded into a context.
struct Global {
    /// Part of an initial value: at `offset`, the address of another symbol plus `addend`.
    struct Relocation {
        std::uint64_t offset = 0;
        std::size_t global = 0;  ///< index into Module::globals
        std::int64_t addend = 0;
        unsigned first_byte = 0;  ///< the first byte of the address that is stored
        unsigned bytes = 8;
    };
    std::string name;
    std::uint64_t bytes = 0;
    std::uint32_t alignment = 1;
    bool constant = false;           ///< .const: kernels cannot store to it
    std::vector<std::byte> initial;  ///< the initialised bytes; the rest is zero
    std::vector<Relocation> relocations;
};

/// One .entry function.
struct Kernel {
    struct Parameter {
        std::uint32_t offset = 0;  ///< in the parameter buffer
        std::uint32_t bytes = 0;
        std::uint32_t alignment = 1;
    };
    std::string name;
    std::vector<Parameter> parameters;
    std::uint32_t parameter_bytes = 0;
    std::uint32_t static_shared_bytes = 0;
    std::uint32_t local_bytes = 0;     ///< per thread: of the kernel and its functions, without the stack
    std::uint32_t registers = 0;       ///< per thread: live at once, in 32-bit registers
    std::uint32_t max_threads = 1024;  ///< per block, from .maxntid
    /// The block size that every launch must have, from .reqntid; 0 if not given.
    std::array<std::uint32_t, 3> required_block{};
    /// Bounds for the assembler, 0 if not given: maximum registers, minimum blocks per SM, and the threads per block for
    /// which there must be room.
    std::uint32_t max_registers = 0, min_blocks = 0, bound_threads = 0;
    /// The required cluster size in blocks and the maximum number of blocks in a cluster; 0 if not given.
    std::array<std::uint32_t, 3> cluster{};
    std::uint32_t max_cluster_rank = 0;
    bool explicit_cluster =
        false;  ///< can only be launched in clusters, of size `cluster` or of the launch's
    /// Empty, or why this kernel cannot run here, in several lines: "redux.sync.f32 is not supported", "  in function
    /// 'total(float)'", "  at line 7 of sums.cu", "  PTX line 412".
    std::string refusal;
    std::shared_ptr<const Code> code;  ///< null if refused
};

/// A parsed PTX module. Immutable, so any thread and any number of contexts may use it.
struct Module {
    std::vector<Global> globals;
    std::vector<Kernel> kernels;

    const Kernel* find_kernel(std::string_view name) const noexcept;
    const Global* find_global(std::string_view name) const noexcept;
};

/// Why a text is not a valid module. The driver returns CUDA_ERROR_INVALID_PTX and writes this to the caller's log.
struct LoadError {
    std::uint32_t line = 0;  ///< PTX line, from 1
    std::string message;
};

/// Parses and translates. Operations that are missing in the operation table refuse only the kernels that use them. A
/// target above `newest_architecture` (80 for sm_80) is an error; 0 accepts all targets.
std::variant<std::shared_ptr<const Module>, LoadError> load(std::string_view ptx,
                                                            int newest_architecture = 0);

}  // namespace emulated::program
