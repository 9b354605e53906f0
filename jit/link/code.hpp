// Code that was compiled elsewhere: which kind it is, for which architecture, and the names that it defines and needs.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <bascule/jit/text/source.hpp>
#include <bascule/jit/types/mangled_signature.hpp>

namespace bascule {

enum class CodeKind : std::uint8_t {
    ptx,
    cubin,       ///< ELF for one architecture
    lto_ir,      ///< NVVM's intermediate code, for link-time optimisation
    fat_binary,  ///< a container of those
    unknown,
};

/// By how it begins. A fat binary is recognised so that it can be refused.
CodeKind kind_of_code(std::string_view bytes) noexcept;
const char* to_string(CodeKind kind) noexcept;  ///< "PTX", "a cubin"

/// One piece of code, with a name for people: a file's. A value.
struct Code {
    std::string name;
    std::string bytes;
    CodeKind kind = CodeKind::unknown;
};

/// A name of a module's scope.
struct CodeSymbol {
    enum class Kind : std::uint8_t { kernel, function, variable };
    enum class Linkage : std::uint8_t {
        local,     ///< of this code alone
        global,    ///< one definition among all that are linked
        weak,      ///< several definitions are one
        external,  ///< defined elsewhere
    };
    std::string name;  ///< mangled
    Kind kind = Kind::function;
    Linkage linkage = Linkage::local;
    bool is_needed = false;                   ///< external, and something uses it
    std::uint64_t bytes = 0;                  ///< of a variable
    bool is_constant = false;                 ///< a `__constant__` variable
    std::vector<CodeParameter> parameters{};  ///< of a kernel
};

struct CodeOutline {
    Arch arch;  ///< virtual for PTX
    std::vector<CodeSymbol> symbols;

    const CodeSymbol* find(std::string_view name) const noexcept;
};

/// Throws: CompileError with the code's name where it is not PTX.
CodeOutline outline_of_ptx(const Code& ptx);
/// Whether nobody can tell from the PTX how much stack it needs: functions call themselves, directly or through others,
/// there are calls through pointers, or `alloca`. Takes time only where there are calls.
bool has_unknown_stack(std::string_view ptx);
/// Throws: CompileError with the code's name where it is not an ELF file of CUDA's.
CodeOutline outline_of_cubin(const Code& cubin);
/// Of either; without symbols for other kinds.
CodeOutline outline_of(const Code& code);

}  // namespace bascule
