// The loop over all indices of a grid.
#pragma once

namespace bascule {

/// The indices below `count` that this thread visits in a grid-stride loop:
/// `for (auto i : bascule::grid_stride(count))`.
class grid_stride {
  public:
    struct iterator {
        long long index_, step_;
        __device__ long long operator*() const { return index_; }
        __device__ void operator++() { index_ += step_; }
        /// Compares with <, because the last step may go past the end.
        __device__ bool operator!=(long long end_) const { return index_ < end_; }
    };

    __device__ explicit grid_stride(long long end_) : count_(end_) {}
    __device__ iterator begin() const {
        return {static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x,
                static_cast<long long>(gridDim.x) * blockDim.x};
    }
    __device__ long long end() const { return count_; }

  private:
    long long count_;
};

}  // namespace bascule
