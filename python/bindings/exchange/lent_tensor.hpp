// The DLPack tensor that other libraries' C code borrows from a DeviceArray.
#pragma once

#include <atomic>
#include <memory>
#include <vector>

#include <bascule/interface/arrays/dlpack.hpp>

namespace bascule::python {

/// Made at its first use and kept, because borrowers need the extents to stay where they are. It is
/// not copied or moved with its array: it describes that one, and its copy may become another.
/// Any number of threads may make it; assign only to arrays that no other thread uses.
class LentTensor {
  public:
    LentTensor() = default;
    ~LentTensor() { delete made_.load(std::memory_order_relaxed); }
    LentTensor(const LentTensor&) noexcept {}
    LentTensor& operator=(const LentTensor&) noexcept {
        delete made_.exchange(nullptr);
        return *this;
    }

    const dlpack::Tensor* get() const noexcept {
        const Made* made = made_.load(std::memory_order_acquire);
        return made == nullptr ? nullptr : &made->tensor;
    }

    /// From `tensor` without its extents, and the extents. A tensor that exists stays: it may be borrowed.
    const dlpack::Tensor& make(const dlpack::Tensor& tensor, std::vector<std::int64_t> extents) const {
        auto made = std::make_unique<Made>(Made{tensor, std::move(extents)});
        made->tensor.shape = made->extents.data();
        made->tensor.strides = made->extents.data() + tensor.ndim;
        const Made* first = nullptr;
        if (!made_.compare_exchange_strong(first, made.get(), std::memory_order_acq_rel))
            return first->tensor;
        return made.release()->tensor;
    }

  private:
    struct Made {
        dlpack::Tensor tensor;
        std::vector<std::int64_t> extents;  // shape, then strides in elements
    };
    mutable std::atomic<const Made*> made_{nullptr};
};

}  // namespace bascule::python
