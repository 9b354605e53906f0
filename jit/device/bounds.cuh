// Bounds checks of views, for texts compiled with BASCULE_CHECK_BOUNDS: the first index that leaves its view
// is written to memory that the host can read afterwards, then the kernel traps.
#pragma once

namespace bascule {

/// The numbers below N: values<0, 1, ...>.
template <int N_, int... D_>
struct numbers_below : numbers_below<N_ - 1, N_ - 1, D_...> {};
template <int... D_>
struct numbers_below<0, D_...> {
    using result_ = values<D_...>;
};

#if BASCULE_CHECK_BOUNDS

/// Which parameter of which kernel a view came in by; written by the launch.
struct view_tag {
    unsigned int kernel_;
    int parameter_;
};

/// What the host reads after the trap: BoundsRecord in runtime/faults/bounds_report.cpp.
struct bounds_record {
    unsigned int state_;  // 0: free, 1: being written, 2: complete
    unsigned int count_;  // threads that left their views
    unsigned int image_;
    view_tag view_;
    int axis_, rank_, line_;
    long long index_, extent_;
    unsigned int block_[3], thread_[3];
    char file_[232];
};

/// Where records go, and the number by which the host knows this image: set when the image is loaded.
struct bounds_hook {
    bounds_record* record_;
    unsigned int image_;
};
inline __device__ bounds_hook the_bounds_hook;

/// An index that knows where it was written: the defaults are evaluated where an integer becomes one.
struct placed_index {
    long long value_;
    int line_;
    const char* file_;
    template <class I_>
    __host__ __device__ placed_index(I_ index_, int line_at_ = __builtin_LINE(),
                                     const char* file_at_ = __builtin_FILE())
        : value_(static_cast<long long>(index_)), line_(line_at_), file_(file_at_) {}
};

/// Of all threads that come here the first one traps; the others end in silence, so that it has the time to
/// write.
inline __device__ __noinline__ void leave_bounds(const placed_index& index_, long long extent_, int axis_,
                                                 int rank_, view_tag view_) {
    bounds_record* record_ = the_bounds_hook.record_;
    if (record_ == nullptr) __trap();
    atomicAdd(&record_->count_, 1u);
    if (atomicCAS(&record_->state_, 0u, 1u) != 0u) asm volatile("exit;");
    record_->image_ = the_bounds_hook.image_;
    record_->view_ = view_;
    record_->axis_ = axis_;
    record_->rank_ = rank_;
    record_->line_ = index_.line_;
    record_->index_ = index_.value_;
    record_->extent_ = extent_;
    record_->block_[0] = blockIdx.x;
    record_->block_[1] = blockIdx.y;
    record_->block_[2] = blockIdx.z;
    record_->thread_[0] = threadIdx.x;
    record_->thread_[1] = threadIdx.y;
    record_->thread_[2] = threadIdx.z;
    for (int i_ = 0; i_ < static_cast<int>(sizeof record_->file_) - 1; ++i_) {
        record_->file_[i_] = index_.file_[i_];
        if (index_.file_[i_] == '\0') break;
    }
    __threadfence_system();
    *static_cast<volatile unsigned int*>(&record_->state_) = 2u;
    __threadfence_system();
    __trap();
}

/// Every index against its extent, first axis first.
template <int N_>
__device__ void check_bounds(const placed_index* indices_, const long long* extents_, view_tag view_) {
    for (int d_ = 0; d_ < N_; ++d_) {
        // Unsigned: what is negative is beyond every extent.
        if (static_cast<unsigned long long>(indices_[d_].value_) >=
            static_cast<unsigned long long>(extents_[d_])) {
            leave_bounds(indices_[d_], extents_[d_], d_, N_, view_);
        }
    }
}

template <int>
struct placed_index_at {
    using result_ = placed_index;
};

/// The calls of a view with one placed index a dimension: a parameter pack would not convert to them. There
/// is no overload for other numbers of indices: NVRTC would give its line for __builtin_LINE().
template <class View_, class T_, class Axes_>
class checked_element;
template <class View_, class T_, int... D_>
class checked_element<View_, T_, values<D_...>> {
  public:
    __host__ __device__ T_& operator()(typename placed_index_at<D_>::result_... indices_) const {
        const placed_index all_[sizeof...(D_) + 1] = {indices_..., 0};
        return static_cast<const View_*>(this)->checked_at_(all_);
    }
};
template <class View_, class Axes_>
class checked_valid;
template <class View_, int... D_>
class checked_valid<View_, values<D_...>> {
  public:
    __host__ __device__ bool valid(typename placed_index_at<D_>::result_... indices_) const {
        const placed_index all_[sizeof...(D_) + 1] = {indices_..., 0};
        return static_cast<const View_*>(this)->checked_valid_(all_);
    }
};

#endif

}  // namespace bascule
