// Links several pieces of code into one image, through the cache.
#pragma once

#include <memory>
#include <vector>

#include <bascule/jit/compile/image.hpp>
#include <bascule/jit/link/linker.hpp>
#include <bascule/jit/program/program.hpp>

namespace bascule {

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
