// PTX text -> a Module: its global variables, and its kernels as bytecode or as a reason why not.
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

/// A module-scope variable. Its memory is made when the module is loaded into a context.
struct Global {
    /// At `offset` in the variable stands the address of another symbol plus `addend`.
    struct Relocation {
        std::uint64_t offset = 0;
        std::size_t global = 0;  ///< index into Module::globals
        std::int64_t addend = 0;
        unsigned first_byte = 0;  ///< of the address
        unsigned bytes = 8;
    };
    std::string name;
    std::uint64_t bytes = 0;
    std::uint32_t alignment = 1;
    bool constant = false;           ///< .const: kernels cannot store to it
    std::vector<std::byte> initial;  ///< as far as PTX gives it; zeros follow
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
    std::uint32_t local_bytes = 0;  ///< per thread, the deepest known call chain included where it is known
    std::uint32_t registers = 0;    ///< per thread: what is alive at once, in 32-bit registers
    std::uint32_t max_threads = 1024;  ///< per block, from .maxntid
    /// The block that every launch must have, from .reqntid; 0 where the text does not say.
    std::array<std::uint32_t, 3> required_block{};
    /// What the text asks of the assembler, 0 where it does not: at most so many registers, at least so many
    /// blocks per multiprocessor, room for blocks of so many threads.
    std::uint32_t max_registers = 0, min_blocks = 0, bound_threads = 0;
    /// Blocks of the clusters that it must be launched in, and at most; 0 where the text does not say.
    std::array<std::uint32_t, 3> cluster{};
    std::uint32_t max_cluster_rank = 0;
    bool explicit_cluster =
        false;  ///< launched in clusters alone, whose size the launch gives if not `cluster`
    /// Empty, or why this kernel cannot run here: "redux.sync.f32 is not supported\n  in function 'total(float)'\n
    /// at line 7 of sums.cu\n  PTX line 412".
    std::string refusal;
    std::shared_ptr<const Code> code;  ///< null when refused
};

/// A parsed PTX module. Immutable: any thread, any number of contexts.
struct Module {
    std::vector<Global> globals;
    std::vector<Kernel> kernels;

    const Kernel* find_kernel(std::string_view name) const noexcept;
    const Global* find_global(std::string_view name) const noexcept;
};

/// Why a text is not a module: CUDA_ERROR_INVALID_PTX with this in the caller's log.
struct LoadError {
    std::uint32_t line = 0;  ///< PTX line, from 1
    std::string message;
};

/// Parses and translates. What one kernel uses and the operation table lacks refuses that kernel alone. PTX
/// for a target above `newest_architecture` (80 for sm_80) is an error; 0: there is none.
std::variant<std::shared_ptr<const Module>, LoadError> load(std::string_view ptx,
                                                            int newest_architecture = 0);

}  // namespace emulated::program
