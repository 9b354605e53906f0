// The templates that report a kernel's parameters to the host. Every program gets this part of the prelude.
#pragma once
#pragma nv_diag_suppress 1444  // the warning about a deprecated type belongs to the user's own line
namespace bascule {

/// A list of numbers in a mangled name.
template <int...>
struct values {};

template <class T_>
struct type_is {
    using result_ = T_;
};

/// A type as one word: `const same<int*>` is a const pointer.
template <class T_>
using same = T_;

/// Stands for a template parameter when a template's signature is asked for.
template <int>
struct marker {};

// The layouts of a kernel's parameters in a mangled name: size, alignment and form of each parameter, then of each
// parameter's elements. `signature` is never defined, so that it leaves nothing in the image.
template <class...>
struct layouts {};

template <class T_>
struct unqualified : type_is<T_> {};
template <class T_>
struct unqualified<const T_> : type_is<T_> {};
template <class T_>
struct unqualified<volatile T_> : type_is<T_> {};
template <class T_>
struct unqualified<const volatile T_> : type_is<T_> {};

/// The TypeForm. 0: given by the name; enumeration over 1: signed, 2: unsigned integers, 3: bool; 4: class as bytes;
/// 5: union; 6: another class; 7: incomplete, void or a function. Enumerators, because static members would be in the
/// image. Aggregates count as bytes too: one with a __half2, which has copy constructors, is not trivially copyable.
template <class T_, bool = __is_enum(T_)>
struct form_of {
    enum { is_bytes_ = __is_trivially_copyable(T_) || (__is_aggregate(T_) && __has_trivial_destructor(T_)) };
    enum { value_ = __is_union(T_) ? 5 : !__is_class(T_) ? 0 : is_bytes_ ? 4 : 6 };
};
template <class T_>
struct form_of<T_, true> {
    using integer_ = __underlying_type(T_);
    enum { is_bool_ = integer_(2) == integer_(1) };
    enum { value_ = is_bool_ ? 3 : integer_(-1) < integer_(0) ? 1 : 2 };
};

template <class T_, class = void>
struct facts_of : type_is<values<0, 1, 7>> {};
template <class T_>
struct facts_of<T_, decltype(void(sizeof(T_)))>
    : type_is<values<static_cast<int>(sizeof(T_)), static_cast<int>(alignof(T_)), form_of<T_>::value_>> {};
template <>
struct facts_of<void, void> : type_is<values<0, 1, 7>> {};
template <class R_, class... A_>
struct facts_of<R_(A_...), void> : type_is<values<0, 1, 7>> {};

/// The element type of a pointer or a view; any other type itself.
template <class T_, class = void>
struct pointee_of : type_is<T_> {};
template <class T_>
struct pointee_of<T_*, void> : type_is<T_> {};
template <class T_>
struct pointee_of<T_, decltype(void(sizeof(typename T_::element_type)))>
    : type_is<typename T_::element_type> {};

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

}  // namespace bascule
#pragma nv_diag_default 1444
