// The DLPack tensor that a DeviceArray lends to other libraries' C code.
#pragma once

#include <memory>
#include <vector>

#include <bascule/interface/dlpack.hpp>

namespace bascule::python {

/// Made at its first use and kept, because whoever borrows it needs the extents to stay where they are. It is
/// not copied or moved with its array: it describes that one, and its copy may become another.
class LentTensor {
  public:
    LentTensor() = default;
    LentTensor(const LentTensor&) noexcept {}
    LentTensor& operator=(const LentTensor&) noexcept {
        made_.reset();
        return *this;
    }

    const dlpack::Tensor* get() const noexcept { return made_ == nullptr ? nullptr : &made_->tensor; }

    /// From `tensor` without its extents, and those. What is there already stays: somebody may have borrowed
    /// it. Guarded by the GIL.
    const dlpack::Tensor& make(const dlpack::Tensor& tensor, std::vector<std::int64_t> extents) const {
        if (made_ != nullptr) return made_->tensor;
        auto made = std::make_unique<Made>(Made{tensor, std::move(extents)});
        made->tensor.shape = made->extents.data();
        made->tensor.strides = made->extents.data() + tensor.ndim;
        made_ = std::move(made);
        return made_->tensor;
    }

  private:
    struct Made {
        dlpack::Tensor tensor;
        std::vector<std::int64_t> extents;  // shape, then strides in elements
    };
    mutable std::unique_ptr<Made> made_;
};

}  // namespace bascule::python
