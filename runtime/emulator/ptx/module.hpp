// A parsed PTX text: its declarations and instructions, with names resolved by lexical scope and without interpretation.
// Everything borrows the text.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "ptx/types.hpp"

namespace emulated::ptx {

/// A variable of any memory space, or a parameter.
struct Variable {
    /// Bytes of a symbol's address, stored at `offset` of the initial value.
    struct Reference {
        std::uint64_t offset = 0;
        std::string_view symbol;
        std::int64_t addend = 0;
        unsigned first_byte = 0;
        unsigned bytes = 8;  ///< 1 with a mask: 0xFF00(generic(symbol))
    };
    std::string_view name;
    Space space = Space::global;
    Type type = Type::b8;
    std::uint32_t alignment = 1;
    std::uint64_t bytes = 0;
    bool is_extern = false;
    bool unsized = false;  ///< `d[]`: dynamic shared memory
    std::uint32_t line = 0;
    std::vector<std::byte> initial;  ///< as long as the initialiser; the rest is zero
    std::vector<Reference> references;
};

struct Operand {
    enum class Kind : std::uint8_t {
        reg,         ///< `index`, possibly negated; `name` is a selector after it: b0 of %r1.b0
        special,     ///< `name`: %tid.x
        integer,     ///< `bits`
        floating,    ///< a double's bits
        float_bits,  ///< a float's bits
        variable,    ///< a variable of the function: `index`
        symbol,      ///< a symbol of the module: `name`
        label,       ///< `index`
        sum,         ///< parts[0], a name, plus `bits`
        address,     ///< parts[0] + `bits`; without parts an absolute address
        vector,      ///< {parts}
        list,        ///< (parts) of a call
        pair,        ///< parts[0] | parts[1]
        sink,        ///< _
    };
    Kind kind = Kind::sink;
    bool negated = false;
    std::int32_t index = -1;
    std::uint64_t bits = 0;
    std::string_view name;
    std::vector<Operand> parts;
};

/// The opcode of a pseudo-instruction after a label that brx.idx names. Its operands are labels.
inline constexpr std::string_view branch_targets = ".branchtargets";

struct Instruction {
    std::uint32_t line = 0;
    std::uint32_t file = 0, source_line = 0;  ///< from .loc; 0 if there is none
    /// For inlined code: the line of the call in the function that is not inlined.
    std::uint32_t caller_file = 0, caller_line = 0;
    std::int32_t guard = -1;  ///< a predicate register, or -1
    bool guard_negated = false;
    std::string_view opcode;         ///< `ld.global.f32`, or branch_targets
    std::uint32_t used_bytes = ~0u;  ///< for a load: bit i is set if byte i is used
    std::vector<Operand> operands;
};

struct Function {
    struct Label {
        std::string_view name;
        std::size_t at = 0;  ///< index of the instruction that it precedes
    };
    std::string_view name;
    bool is_entry = false;
    bool has_body = false;
    std::uint32_t line = 0;
    std::vector<Type> registers;      ///< by register index; inner scopes have indices of their own
    std::vector<Variable> variables;  ///< parameters first
    std::vector<std::int32_t> results, parameters;  ///< indices into variables
    std::vector<Label> labels;
    std::vector<Instruction> body;
    std::uint32_t max_threads = 0;                  ///< from .maxntid or .reqntid; 0 when not given
    std::array<std::uint32_t, 3> required_block{};  ///< threads, from .reqntid; 0 when not given
    std::uint32_t max_registers = 0;                ///< from .maxnreg; 0 when not given
    std::uint32_t min_blocks = 0;                   ///< per SM, from .minnctapersm; 0 when not given
    std::array<std::uint32_t, 3> cluster{};         ///< blocks, from .reqnctapercluster; 0 when not given
    bool explicit_cluster = false;       ///< from .explicitcluster: can only be launched in clusters
    std::uint32_t max_cluster_rank = 0;  ///< blocks, from .maxclusterrank; 0 when not given

    const Variable& variable(std::int32_t index) const { return variables[static_cast<std::size_t>(index)]; }
};

struct Module {
    struct File {
        std::uint32_t index = 0;
        std::string_view name;
    };
    int major = 0, minor = 0;
    std::string_view target;
    int architecture = 0;                ///< 80 for sm_80
    bool architecture_specific = false;  ///< sm_90a: the text runs only on that architecture
    bool debug = false;                  ///< the target has `debug`: compiled without optimisation
    std::vector<Variable> variables;
    std::vector<Function> functions;
    std::vector<File> files;
};

/// Parses a text, which the result borrows. A target above `newest_architecture` (80 for sm_80) is an error; 0 accepts all
/// targets. Throws: SyntaxError.
Module parse(std::string_view text, int newest_architecture = 0);

/// Makes the checks of a driver's assembler after parsing: throws SyntaxError if parameters or constants are larger than the
/// architecture allows, or if a function or variable is used and not defined.
void verify(const Module& module);
/// True for functions that CUDA itself provides inside kernels.
bool is_provided(std::string_view function) noexcept;

}  // namespace emulated::ptx
