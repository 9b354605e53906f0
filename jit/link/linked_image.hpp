// Several pieces of code as one image: what the cache is asked for when code is linked.
#pragma once

#include <memory>
#include <vector>

#include <bascule/jit/compile/image.hpp>
#include <bascule/jit/link/linker.hpp>
#include <bascule/jit/text/program.hpp>

namespace bascule {

/// Links these, whose kernels are `kernels`. The key has a digest of each code, in order, so that a text that is compiled
/// otherwise, because of a header too, is linked anew.
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
