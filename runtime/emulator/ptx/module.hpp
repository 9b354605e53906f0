// What the parser makes of PTX: declarations and statements, names resolved by lexical scope, nothing
// interpreted. Everything borrows the text.
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
    /// Bytes of the address of a symbol, stored at `offset` of the initial value.
    struct Reference {
        std::uint64_t offset = 0;
        std::string_view symbol;
        std::int64_t addend = 0;
        unsigned first_byte = 0;
        unsigned bytes = 8;  ///< 1 behind a mask: 0xFF00(generic(symbol))
    };
    std::string_view name;
    Space space = Space::global;
    Type type = Type::b8;
    std::uint32_t alignment = 1;
    std::uint64_t bytes = 0;
    bool is_extern = false;
    bool unsized = false;  ///< `d[]`: dynamic shared memory
    std::uint32_t line = 0;
    std::vector<std::byte> initial;  ///< as long as the initialiser says: the rest is zero
    std::vector<Reference> references;
};

struct Operand {
    enum class Kind : std::uint8_t {
        reg,         ///< `index`, perhaps negated; `name`: a selector behind it, b0 of %r1.b0
        special,     ///< `name`: %tid.x
        integer,     ///< `bits`
        floating,    ///< a double's bits
        float_bits,  ///< a float's bits
        variable,    ///< of the function: `index`
        symbol,      ///< of the module: `name`
        label,       ///< `index`
        sum,         ///< parts[0], a name, + `bits`
        address,     ///< parts[0] + `bits`; no parts: an absolute address
        vector,      ///< {parts}
        list,        ///< (parts), of a call
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

/// Stands among a function's instructions, after a label by which brx.idx names it. Its operands are labels.
inline constexpr std::string_view branch_targets = ".branchtargets";

struct Instruction {
    std::uint32_t line = 0;
    std::uint32_t file = 0, source_line = 0;  ///< from .loc; 0 when there is none
    /// Of inlined code: where the function that is not inlined calls it.
    std::uint32_t caller_file = 0, caller_line = 0;
    std::int32_t guard = -1;  ///< a predicate register, or -1
    bool guard_negated = false;
    std::string_view opcode;         ///< `ld.global.f32`, or branch_targets
    std::uint32_t used_bytes = ~0u;  ///< of a load: bit i is set if byte i of what it reads is used
    std::vector<Operand> operands;
};

struct Function {
    struct Label {
        std::string_view name;
        std::size_t at = 0;  ///< index of the instruction it stands before
    };
    std::string_view name;
    bool is_entry = false;
    bool has_body = false;
    std::uint32_t line = 0;
    std::vector<Type> registers;      ///< by register index; same names in inner scopes are other indices
    std::vector<Variable> variables;  ///< parameters first
    std::vector<std::int32_t> results, parameters;  ///< indices into variables
    std::vector<Label> labels;
    std::vector<Instruction> body;
    std::uint32_t max_threads = 0;                  ///< from .maxntid or .reqntid; 0 when not given
    std::array<std::uint32_t, 3> required_block{};  ///< threads, from .reqntid; 0 when not given
    std::uint32_t max_registers = 0;                ///< from .maxnreg; 0 when not given
    std::uint32_t min_blocks = 0;            ///< a multiprocessor, from .minnctapersm; 0 when not given
    std::array<std::uint32_t, 3> cluster{};  ///< blocks, from .reqnctapercluster; 0 when not given
    bool explicit_cluster = false;           ///< from .explicitcluster: it is launched in clusters alone
    std::uint32_t max_cluster_rank = 0;      ///< blocks, from .maxclusterrank; 0 when not given

    const Variable& variable(std::int32_t index) const { return variables[static_cast<std::size_t>(index)]; }
};

struct Module {
    struct File {
        std::uint32_t index = 0;
        std::string_view name;
    };
    int major = 0, minor = 0;
    std::string_view target;
    int architecture = 0;  ///< 80 for sm_80; 0 where the target has no number
    std::vector<Variable> variables;
    std::vector<Function> functions;
    std::vector<File> files;
};

}  // namespace emulated::ptx
