// Bounds checks of views, for texts compiled with BASCULE_CHECK_BOUNDS: the first index outside its view is
// written to memory that the host can read afterwards, then the kernel traps.
#pragma once

namespace bascule {

/// The numbers below N: values<0, 1, ...>.
template <int N_, int... D_>
struct numbers_below : numbers_below<N_ - 1, N_ - 1, D_...> {};
template <int... D_>
struct numbers_below<0, D_...> : type_is<values<D_...>> {};

#if BASCULE_CHECK_BOUNDS

/// Identifies the kernel and the parameter that a view was passed to. The launch writes it.
struct view_tag {
    unsigned int kernel_;
    int parameter_;
};

/// The record that the host reads after the trap: BoundsRecord in runtime/faults/bounds_report.cpp.
struct bounds_record {
    unsigned int state_;  // 0: free, 1: being written, 2: complete
    unsigned int count_;  // threads with an index outside a view
    unsigned int image_;
    view_tag view_;
    int axis_, rank_, line_;
    long long index_, extent_;
    unsigned int block_[3], thread_[3];
    char file_[232];
};

/// The address of the record and the host's number for this image. The host sets both when it loads the image.
struct bounds_hook {
    bounds_record* record_;
    unsigned int image_;
};
inline __device__ bounds_hook the_bounds_hook;

/// An index with its place in the source: the default arguments are evaluated where an integer is converted.
struct placed_index {
    long long value_;
    int line_;
    const char* file_;
    template <class I_>
    __host__ __device__ placed_index(I_ index_, int line_at_ = __builtin_LINE(),
                                     const char* file_at_ = __builtin_FILE())
        : value_(static_cast<long long>(index_)), line_(line_at_), file_(file_at_) {}
};

/// The first thread that calls this writes the record and traps. The others exit, so that it has time to write.
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

/// Checks every index against its extent, beginning with the first axis.
template <int N_>
__device__ void check_bounds(const placed_index* indices_, const long long* extents_, view_tag view_) {
    for (int d_ = 0; d_ < N_; ++d_) {
        // Unsigned, so that negative indices are beyond every extent.
        if (static_cast<unsigned long long>(indices_[d_].value_) >=
            static_cast<unsigned long long>(extents_[d_])) {
            leave_bounds(indices_[d_], extents_[d_], d_, N_, view_);
        }
    }
}

template <int>
struct placed_index_at : type_is<placed_index> {};

/// The call operator of a view, with one placed_index per dimension; a template would not convert integers to it.
/// Other numbers of indices have no overload, in which NVRTC's __builtin_LINE() would be the overload's own line.
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
