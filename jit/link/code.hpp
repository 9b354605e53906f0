// Compiled code, its architecture, the names that it defines and needs, and its image.
#pragma once

#include <bascule/jit/program/program.hpp>
#include <bascule/jit/signatures/reflection.hpp>

namespace bascule {

enum class CodeKind : std::uint8_t {
    ptx,
    cubin,       ///< ELF for one architecture
    lto_ir,      ///< NVVM's intermediate code, for link-time optimisation
    fat_binary,  ///< a container of the kinds above
    unknown,
};

/// Recognises code by its first bytes. Fat binaries are recognised so that the error can name them.
CodeKind kind_of_code(std::string_view bytes) noexcept;
const char* to_string(CodeKind kind) noexcept;  ///< "PTX", "a cubin"

/// One piece of code, with a name for messages, such as the file's. A value type.
struct Code {
    std::string name;
    std::string bytes;
    CodeKind kind = CodeKind::unknown;
};

/// A symbol of module scope.
struct CodeSymbol {
    enum class Kind : std::uint8_t { kernel, function, variable };
    enum class Linkage : std::uint8_t {
        local,     ///< visible in this code only
        global,    ///< only one definition is allowed in all linked code
        weak,      ///< several definitions are merged
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

/// Throws: CompileError with the code's name if it is not PTX.
CodeOutline outline_of_ptx(const Code& ptx);
/// Whether the stack size cannot be known from the PTX: functions call themselves, directly or through others, or there
/// are calls through pointers, or `alloca`. Fast if there are no calls.
bool has_unknown_stack(std::string_view ptx);
/// Throws: CompileError with the code's name if it is not a CUDA ELF file.
CodeOutline outline_of_cubin(const Code& cubin);
/// The outline of PTX or a cubin; for other kinds it has no symbols.
CodeOutline outline_of(const Code& code);

/// The kernels of an outline. `name` and `expression` are "ns::scale<float>"; for overloads they include the
/// parameters: "add(float*, int)".
std::vector<KernelImage> kernels_of(const CodeOutline& outline);

/// The code as an image, with its kernels. Throws: CompileError if it is neither PTX nor a cubin.
Image image_of_code(const Code& code);

}  // namespace bascule
