// The interface of linkers, the checks that they all share, and linking through the cache.
#pragma once

#include <span>

#include <bascule/jit/link/code.hpp>

namespace bascule {

/// Links device code: nvJitLink or the driver. Immutable; any thread may use it.
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

/// Links `codes`, which contain `kernels`. The key has a digest of each code, in order, so that code is linked again if
/// a text, or one of its headers, compiles to something else.
class LinkedImage final : public ImageMaker {
  public:
    LinkedImage(std::vector<Code> codes, std::vector<KernelImage> kernels, CompileOptions options,
                std::shared_ptr<const Linker> linker);

    std::string key() const override { return key_; }
    /// Throws: CompileError, LibraryError, CudaError.
    Image make(Arch arch) const override;

  private:
    std::vector<Code> codes_;
    std::vector<KernelImage> kernels_;
    CompileOptions options_;
    std::shared_ptr<const Linker> linker_;
    std::string key_;
};

}  // namespace bascule
