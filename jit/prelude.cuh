// Bascule's device header: every program gets it before its own first line.
#pragma once

namespace bascule {

/// An array of N dimensions with any strides. Made by the launch from an array argument; borrows the memory.
template <class T, int N = 1>
class array_view {
  public:
    using element_type = T;

    /// The same elements, read-only: a view of float goes where one of const float is asked for.
    __host__ __device__ operator array_view<const T, N>() const {
        array_view<const T, N> view;
        view.data_ = data_;
        for (int d = 0; d < N; ++d) {
            view.extents_[d] = extents_[d];
            view.strides_[d] = strides_[d];
        }
        return view;
    }

    __host__ __device__ T* data() const { return data_; }
    /// Elements along dimension d.
    __host__ __device__ long long extent(int d) const { return extents_[d]; }
    /// Bytes from one element to the next along dimension d.
    __host__ __device__ long long stride(int d) const { return strides_[d]; }
    /// Elements in all.
    __host__ __device__ long long size() const {
        long long count = 1;
        for (int d = 0; d < N; ++d) count *= extents_[d];
        return count;
    }

    /// The element at one index a dimension.
    template <class... I>
    __host__ __device__ T& operator()(I... indices) const {
        static_assert(sizeof...(I) == N, "array_view: one index for each dimension");
        const long long index[N] = {static_cast<long long>(indices)...};
        long long offset = 0;
        for (int d = 0; d < N; ++d) offset += index[d] * strides_[d];
        return at(offset);
    }

    /// The element of a one-dimensional view.
    __host__ __device__ T& operator[](long long i) const {
        static_assert(N == 1, "array_view: operator[] is for one dimension; use operator()(i, j, ...)");
        return at(i * strides_[0]);
    }

  private:
    template <class, int>
    friend class array_view;
    template <class>
    struct bytes_of {
        using type = char;
    };
    template <class U>
    struct bytes_of<const U> {
        using type = const char;
    };
    __host__ __device__ T& at(long long offset) const {
        return *reinterpret_cast<T*>(reinterpret_cast<typename bytes_of<T>::type*>(data_) + offset);
    }

    T* data_;
    long long extents_[N];
    long long strides_[N];
};

/// The indices below `count` that fall to this thread when the whole grid strides over them: `for (auto i : grid_stride(n))`.
class grid_stride {
  public:
    struct iterator {
        long long index, step;
        __device__ long long operator*() const { return index; }
        __device__ void operator++() { index += step; }
        /// Not equality: the last step may go past the end.
        __device__ bool operator!=(long long end) const { return index < end; }
    };

    __device__ explicit grid_stride(long long count) : count_(count) {}
    __device__ iterator begin() const {
        return {static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x,
                static_cast<long long>(gridDim.x) * blockDim.x};
    }
    __device__ long long end() const { return count_; }

  private:
    long long count_;
};

/// A kernel's parameter list, spelled in a mangled name. Never defined: it leaves nothing in the image.
template <int...>
struct values {};
template <class F>
struct layout_of;
template <class... A>
struct layout_of<void (*)(A...)> {
    using type = values<static_cast<int>(sizeof(A))..., static_cast<int>(alignof(A))...>;
};
template <class F, class L = typename layout_of<F>::type>
__global__ void signature();

}  // namespace bascule
