// The views that kernels take as parameters: array_view, and masked_view for arrays with invalid elements; and the
// element type of unaligned arrays. Names that no kernel uses end in an underscore, because programs define macros
// such as N, T, index and count.
#pragma once

namespace bascule {

/// A T at any address, such as a field of a packed structure. Read it by conversion, or by get() where a template
/// expects a T; write it by assignment. Built-in numbers need this only outside packed structures; classes need it
/// there too, because their member functions take references.
template <class T_>
struct unaligned {
    unsigned char bytes_[sizeof(T_)];

    __host__ __device__ T_ get() const {
        T_ value_;
        memcpy(&value_, bytes_, sizeof(T_));
        return value_;
    }
    __host__ __device__ operator T_() const { return get(); }
    __host__ __device__ unaligned& operator=(const T_& value_) {
        memcpy(bytes_, &value_, sizeof(T_));
        return *this;
    }
};

/// The member `result_` exists if the first type is the second with const added.
template <class, class>
struct adds_const {};
template <class T_>
struct adds_const<const T_, T_> : type_is<T_> {};

/// The length of arrays of N extents; 1 for N = 0, because C++ has no arrays of length 0.
template <int N_>
struct room_for {
    enum { value_ = N_ > 0 ? N_ : 1 };
};

/// An array of N dimensions with any strides. The launch makes it from an array argument; it borrows the memory.
template <class T_, int N_ = 1>
class array_view
#if BASCULE_CHECK_BOUNDS
    : public checked_element<array_view<T_, N_>, T_, typename numbers_below<N_>::result_>
#endif
{
  public:
    using element_type = T_;

    /// The same elements, read-only: a view of float converts to a view of const float.
    template <class U_, class = typename adds_const<U_, T_>::result_>
    __host__ __device__ operator array_view<U_, N_>() const {
        array_view<U_, N_> view_;
        view_.share_(*this);
        return view_;
    }

    __host__ __device__ T_* data() const { return data_; }
    /// Elements along dimension d.
    __host__ __device__ long long extent(int d_) const { return extents_[d_]; }
    /// Bytes from one element to the next along dimension d.
    __host__ __device__ long long stride(int d_) const { return strides_[d_]; }
    /// The number of elements.
    __host__ __device__ long long size() const {
        long long count_ = 1;
        for (int d_ = 0; d_ < N_; ++d_) count_ *= extents_[d_];
        return count_;
    }

#if BASCULE_CHECK_BOUNDS
    using checked_element<array_view<T_, N_>, T_, typename numbers_below<N_>::result_>::operator();

    /// The element of a one-dimensional view.
    __host__ __device__ T_& operator[](placed_index i_) const {
        static_assert(N_ == 1, "array_view: operator[] is for one dimension; use operator()(i, j, ...)");
        return checked_at_(&i_);
    }
#else
    /// The element at these indices, one for each dimension.
    template <class... I_>
    __host__ __device__ T_& operator()(I_... indices_) const {
        static_assert(sizeof...(I_) == N_, "array_view: one index for each dimension");
        const long long index_[sizeof...(I_) + 1] = {static_cast<long long>(indices_)..., 0};
        long long bytes_ = 0;
        for (int d_ = 0; d_ < N_; ++d_) bytes_ += index_[d_] * strides_[d_];
        return at_(bytes_);
    }

    /// The element of a one-dimensional view.
    __host__ __device__ T_& operator[](long long i_) const {
        static_assert(N_ == 1, "array_view: operator[] is for one dimension; use operator()(i, j, ...)");
        return at_(i_ * strides_[0]);
    }
#endif

  protected:
    template <class, int>
    friend class array_view;
    template <class>
    struct bytes_of {
        using result_ = char;
    };
    template <class U_>
    struct bytes_of<const U_> {
        using result_ = const char;
    };
    __host__ __device__ T_& at_(long long bytes_) const {
        return *reinterpret_cast<T_*>(reinterpret_cast<typename bytes_of<T_>::result_*>(data_) + bytes_);
    }
    template <class U_>
    __host__ __device__ void share_(const array_view<U_, N_>& other_) {
        data_ = other_.data_;
        for (int d_ = 0; d_ < room_for<N_>::value_; ++d_) {
            extents_[d_] = other_.extents_[d_];
            strides_[d_] = other_.strides_[d_];
        }
#if BASCULE_CHECK_BOUNDS
        tag_ = other_.tag_;
#endif
    }

    T_* data_;
    long long extents_[room_for<N_>::value_];
    long long strides_[room_for<N_>::value_];
#if BASCULE_CHECK_BOUNDS
    template <class, class, class>
    friend class checked_element;
    __host__ __device__ T_& checked_at_(const placed_index* indices_) const {
        check_bounds<N_>(indices_, extents_, tag_);
        long long bytes_ = 0;
        for (int d_ = 0; d_ < N_; ++d_) bytes_ += indices_[d_].value_ * strides_[d_];
        return at_(bytes_);
    }

    view_tag tag_;
#endif
};

/// An array_view of an array that may have a mask. Call valid() before reading an element.
/// Without a mask all elements are valid.
template <class T_, int N_ = 1>
class masked_view : public array_view<T_, N_>
#if BASCULE_CHECK_BOUNDS
    ,
                    public checked_valid<masked_view<T_, N_>, typename numbers_below<N_>::result_>
#endif
{
  public:
    template <class U_, class = typename adds_const<U_, T_>::result_>
    __host__ __device__ operator masked_view<U_, N_>() const {
        masked_view<U_, N_> view_;
        view_.share_(*this);
        view_.mask_ = mask_;
        for (int d_ = 0; d_ < room_for<N_>::value_; ++d_) view_.mask_strides_[d_] = mask_strides_[d_];
        view_.mask_bytes_ = mask_bytes_;
        return view_;
    }

    /// Whether there is a mask at all.
    __host__ __device__ bool masked() const { return mask_ != nullptr; }

#if !BASCULE_CHECK_BOUNDS
    /// Whether the element at these indices, one for each dimension, is valid.
    template <class... I_>
    __host__ __device__ bool valid(I_... indices_) const {
        static_assert(sizeof...(I_) == N_, "masked_view: one index for each dimension");
        const long long index_[sizeof...(I_) + 1] = {static_cast<long long>(indices_)..., 0};
        long long offset_ = 0;
        for (int d_ = 0; d_ < N_; ++d_) offset_ += index_[d_] * mask_strides_[d_];
        return true_at_(offset_);
    }
#endif

  private:
    template <class, int>
    friend class masked_view;
    /// Reads the mask at an offset in bytes, or in bits if the mask has one bit per element.
    __host__ __device__ bool true_at_(long long offset_) const {
        if (mask_ == nullptr) return true;
        switch (mask_bytes_) {
            case 0:
                return (mask_[offset_ >> 3] >> (offset_ & 7) & 1) != 0;
            case 1:
                return mask_[offset_] != 0;
            case 2:
                return *reinterpret_cast<const unsigned short*>(mask_ + offset_) != 0;
            case 4:
                return *reinterpret_cast<const unsigned int*>(mask_ + offset_) != 0;
            default:
                return *reinterpret_cast<const unsigned long long*>(mask_ + offset_) != 0;
        }
    }

    const unsigned char* mask_;
    long long mask_strides_[room_for<N_>::value_];
    long long mask_bytes_;  // of one element; 0: a bit
#if BASCULE_CHECK_BOUNDS
    template <class, class>
    friend class checked_valid;
    __host__ __device__ bool checked_valid_(const placed_index* indices_) const {
        check_bounds<N_>(indices_, this->extents_, this->tag_);
        long long offset_ = 0;
        for (int d_ = 0; d_ < N_; ++d_) offset_ += indices_[d_].value_ * mask_strides_[d_];
        return true_at_(offset_);
    }
#endif
};

}  // namespace bascule
