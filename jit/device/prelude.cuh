// Bascule's device header, behind the views: every program gets it before its own first line. grid_stride,
// and the templates that tell a kernel's parameters to whoever launches it.
#pragma once

namespace bascule {

/// A T that may lie at any address, as fields of packed structures do: read by conversion, or by get() where
/// a template wants a T; written by assignment. Numbers of the language itself need none of this; classes
/// have functions that take references.
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

/// The indices below `count` that fall to this thread when the whole grid strides over them:
/// `for (auto i : bascule::grid_stride(count))`.
class grid_stride {
  public:
    struct iterator {
        long long index_, step_;
        __device__ long long operator*() const { return index_; }
        __device__ void operator++() { index_ += step_; }
        /// Not equality: the last step may go past the end.
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

/// Stands for a template parameter when a template's signature is asked for.
template <int>
struct marker {};

// A kernel's parameter list, spelled in a mangled name. Never defined: it leaves nothing in the image. Behind
// the types stand, for each parameter and then for each one's elements: size, alignment, form.
template <class...>
struct layouts {};

template <class T_>
struct unqualified {
    using result_ = T_;
};
template <class T_>
struct unqualified<const T_> {
    using result_ = T_;
};
template <class T_>
struct unqualified<volatile T_> {
    using result_ = T_;
};
template <class T_>
struct unqualified<const volatile T_> {
    using result_ = T_;
};
template <class>
struct is_bool {
    enum { value_ = 0 };
};
template <>
struct is_bool<bool> {
    enum { value_ = 1 };
};

/// 0: says its name; enumerations over 1: signed, 2: unsigned integers, 3: bool; 4: trivially copyable class,
/// 5: union, 6: another class; 7: incomplete, void or a function. Enumerators: static members would be in the
/// image.
template <class T_, bool = __is_enum(T_)>
struct form_of {
    enum { value_ = __is_union(T_) ? 5 : !__is_class(T_) ? 0 : __is_trivially_copyable(T_) ? 4 : 6 };
};
template <class T_>
struct form_of<T_, true> {
    using integer_ = __underlying_type(T_);
    enum { value_ = is_bool<integer_>::value_ ? 3 : integer_(-1) < integer_(0) ? 1 : 2 };
};

template <class T_, class = void>
struct facts_of {
    using result_ = values<0, 1, 7>;
};
template <class T_>
struct facts_of<T_, decltype(void(sizeof(T_)))> {
    using result_ = values<static_cast<int>(sizeof(T_)), static_cast<int>(alignof(T_)), form_of<T_>::value_>;
};
template <>
struct facts_of<void, void> {
    using result_ = values<0, 1, 7>;
};
template <class R_, class... A_>
struct facts_of<R_(A_...), void> {
    using result_ = values<0, 1, 7>;
};

/// What a pointer or a view is made of; other types are their own.
template <class T_, class = void>
struct pointee_of {
    using result_ = T_;
};
template <class T_>
struct pointee_of<T_*, void> {
    using result_ = T_;
};
template <class T_>
struct pointee_of<T_, decltype(void(sizeof(typename T_::element_type)))> {
    using result_ = typename T_::element_type;
};

template <class F_>
struct layout_of;
template <class... A_>
struct layout_of<void (*)(A_...)> {
    using result_ = layouts<
        typename facts_of<A_>::result_...,
        typename facts_of<typename unqualified<typename pointee_of<A_>::result_>::result_>::result_...>;
};
template <class F_, class L_ = typename layout_of<F_>::result_>
__global__ void signature();

/// A variable's type as a parameter list: a pointer to its elements, then their size and the extents.
/// Addresses and enumerations are read as integers.
template <class T_, bool = __is_enum(T_)>
struct element_of {
    using result_ = T_;
};
template <class T_>
struct element_of<T_, true> {
    using result_ = __underlying_type(T_);
};
template <class T_>
struct element_of<T_*, false> {
    using result_ = unsigned long long;
};
template <class T_>
struct element_of<T_* volatile, false> {
    using result_ = unsigned long long;
};
template <class T_>
struct element_of<T_* const, false> {
    using result_ = const unsigned long long;
};
template <class T_>
struct element_of<T_* const volatile, false> {
    using result_ = const unsigned long long;
};
template <class T_, int... E_>
struct variable_of {
    using result_ = void (*)(typename element_of<T_>::result_*, values<static_cast<int>(sizeof(T_)), E_...>*);
};
template <class T_, int N_, int... E_>
struct variable_of<T_[N_], E_...> : variable_of<T_, E_..., N_> {};

/// The same without the element's type, for one without a name: a __global__ template cannot be told of it.
struct bytes {};
template <class T_>
struct bytes_of {
    using result_ = bytes;
};
template <class T_>
struct bytes_of<const T_> {
    using result_ = const bytes;
};
template <class T_, int... E_>
struct nameless_variable_of {
    using result_ = void (*)(typename bytes_of<T_>::result_*, values<static_cast<int>(sizeof(T_)), E_...>*);
};
template <class T_, int N_, int... E_>
struct nameless_variable_of<T_[N_], E_...> : nameless_variable_of<T_, E_..., N_> {};

}  // namespace bascule
