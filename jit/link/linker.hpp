// What makes one piece of code of several: an interface, and the checks that all linkers share.
#pragma once

#include <span>
#include <string>

#include <bascule/jit/link/code.hpp>

namespace bascule {

/// A library that links. Immutable; any thread may use it.
class Linker {
  public:
    virtual ~Linker() = default;
    /// What it is called in messages: "nvJitLink 13.0".
    virtual std::string name() const = 0;
    /// Linkers of equal identity link the same.
    virtual std::string identity() const = 0;
    /// The code of them all, for this architecture. `check_symbols` has accepted them. Of the options, `lineinfo`, `debug`
    /// and `max_registers` count. Throws: CompileError with the linker's words; LibraryError, CudaError.
    virtual std::string link(std::span<const Code> codes, Arch arch, const CompileOptions& options) const = 0;
};

/// Throws: CompileError that names the symbol and the codes, where two of them define a name that may be defined once,
/// and where one needs a name that none defines. Of LTO-IR no names are known: with some of it only the first is
/// checked.
void check_symbols(std::span<const Code> codes);

}  // namespace bascule
