// The interface of linkers, and the checks that they all share.
#pragma once

#include <span>
#include <string>

#include <bascule/jit/link/code.hpp>
#include <bascule/jit/options/compile_options.hpp>

namespace bascule {

/// A library that links. Immutable; any thread may use it.
class Linker {
  public:
    virtual ~Linker() = default;
    /// The name in messages: "nvJitLink 13.0".
    virtual std::string name() const = 0;
    /// Linkers with equal identities produce the same code.
    virtual std::string identity() const = 0;
    /// Links all codes for this architecture. `check_symbols` must have accepted them. Uses only the options `lineinfo`,
    /// `debug` and `max_registers`. Throws: CompileError with the linker's message; LibraryError, CudaError.
    virtual std::string link(std::span<const Code> codes, Arch arch, const CompileOptions& options) const = 0;
};

/// Throws: CompileError that names the symbol and the codes, if two of them define a name that may have only one definition,
/// or if one needs a name that none defines. The names in LTO-IR are not known, so with LTO-IR only the first is checked.
void check_symbols(std::span<const Code> codes);

}  // namespace bascule
