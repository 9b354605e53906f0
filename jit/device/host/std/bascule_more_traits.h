// The traits that fewer kernels use: a part of <type_traits>.
#pragma once

#include <type_traits>

namespace std {

/// Defines a trait of one type: the constant name_v and the class template `name`.
#define BASCULE_PREDICATE(name, ...)              \
    template <class T>                            \
    inline constexpr bool name##_v = __VA_ARGS__; \
    BASCULE_TRAIT(name)

// --- Kinds of types ---

BASCULE_PREDICATE(is_null_pointer, is_same_v<remove_cv_t<T>, decltype(nullptr)>)
BASCULE_PREDICATE(is_fundamental, is_arithmetic_v<T> || is_void_v<T> || is_null_pointer_v<T>)
BASCULE_PREDICATE(is_compound, !is_fundamental_v<T>)
BASCULE_PREDICATE(is_object, !is_function_v<T> && !is_reference_v<T> && !is_void_v<T>)
template <class T>
inline constexpr bool bascule_is_member_pointer = false;
template <class T, class Class>
inline constexpr bool bascule_is_member_pointer<T Class::*> = true;
BASCULE_PREDICATE(is_member_pointer, bascule_is_member_pointer<remove_cv_t<T>>)
template <class T>
inline constexpr bool bascule_is_member_function = false;
template <class T, class Class>
inline constexpr bool bascule_is_member_function<T Class::*> = is_function_v<T>;
BASCULE_PREDICATE(is_member_function_pointer, bascule_is_member_function<remove_cv_t<T>>)
BASCULE_PREDICATE(is_member_object_pointer, is_member_pointer_v<T> && !is_member_function_pointer_v<T>)
BASCULE_PREDICATE(is_scalar, is_arithmetic_v<T> || is_enum_v<T> || is_pointer_v<T> ||
                                 is_member_pointer_v<T> || is_null_pointer_v<T>)
template <class T>
inline constexpr bool is_bounded_array_v = false;
template <class T, size_t N>
inline constexpr bool is_bounded_array_v<T[N]> = true;
template <class T>
inline constexpr bool is_unbounded_array_v = false;
template <class T>
inline constexpr bool is_unbounded_array_v<T[]> = true;

BASCULE_PREDICATE(is_polymorphic, __is_polymorphic(T))
BASCULE_PREDICATE(is_abstract, __is_abstract(T))
BASCULE_PREDICATE(is_final, __is_final(T))
BASCULE_PREDICATE(is_aggregate, __is_aggregate(remove_cv_t<T>))
BASCULE_PREDICATE(is_trivial, __is_trivial(T))
BASCULE_PREDICATE(is_pod, __is_pod(T))
BASCULE_PREDICATE(has_virtual_destructor, __has_virtual_destructor(T))

// --- Extents and alignment ---

template <class T>
inline constexpr size_t alignment_of_v = alignof(T);
template <class T>
inline constexpr size_t rank_v = 0;
template <class T>
inline constexpr size_t rank_v<T[]> = rank_v<T> + 1;
template <class T, size_t N>
inline constexpr size_t rank_v<T[N]> = rank_v<T> + 1;
template <class T, unsigned I = 0>
inline constexpr size_t extent_v = 0;
template <class T, unsigned I>
inline constexpr size_t extent_v<T[], I> = I == 0 ? 0 : extent_v<T, I - 1>;
template <class T, size_t N, unsigned I>
inline constexpr size_t extent_v<T[N], I> = I == 0 ? N : extent_v<T, I - 1>;
template <class T>
struct alignment_of : integral_constant<size_t, alignment_of_v<T>> {};
template <class T>
struct rank : integral_constant<size_t, rank_v<T>> {};
template <class T, unsigned I = 0>
struct extent : integral_constant<size_t, extent_v<T, I>> {};
template <class T>
struct remove_all_extents : type_identity<T> {};
template <class T>
struct remove_all_extents<T[]> : remove_all_extents<T> {};
template <class T, size_t N>
struct remove_all_extents<T[N]> : remove_all_extents<T> {};
template <class T>
using remove_all_extents_t = typename remove_all_extents<T>::type;
template <size_t Bytes, size_t Alignment = Bytes >= 16 ? 16 : Bytes>
struct aligned_storage {
    struct type {
        alignas(Alignment) unsigned char bytes[Bytes];
    };
};
template <size_t Bytes, size_t Alignment = Bytes >= 16 ? 16 : Bytes>
using aligned_storage_t = typename aligned_storage<Bytes, Alignment>::type;

// --- Adding qualifiers and references ---

template <class T>
using type_identity_t = typename type_identity<T>::type;
template <class T>
struct add_volatile : type_identity<volatile T> {};
template <class T>
using add_volatile_t = volatile T;
template <class T>
struct add_cv : type_identity<const volatile T> {};
template <class T>
using add_cv_t = const volatile T;
template <class T, class = void>
struct add_lvalue_reference : type_identity<T> {};
template <class T>
struct add_lvalue_reference<T, void_t<T&>> : type_identity<T&> {};
template <class T>
using add_lvalue_reference_t = typename add_lvalue_reference<T>::type;
template <class T, class = void>
struct add_rvalue_reference : type_identity<T> {};
template <class T>
struct add_rvalue_reference<T, void_t<T&&>> : type_identity<T&&> {};
template <class T>
using add_rvalue_reference_t = typename add_rvalue_reference<T>::type;

// --- Construction, assignment and calls ---

BASCULE_PREDICATE(is_default_constructible, is_constructible_v<T>)
BASCULE_PREDICATE(is_copy_constructible, is_constructible_v<T, add_lvalue_reference_t<const T>>)
BASCULE_PREDICATE(is_move_constructible, is_constructible_v<T, add_rvalue_reference_t<T>>)
template <class To, class From>
inline constexpr bool is_assignable_v = __is_assignable(To, From);
BASCULE_PREDICATE(is_copy_assignable,
                  is_assignable_v<add_lvalue_reference_t<T>, add_lvalue_reference_t<const T>>)
BASCULE_PREDICATE(is_move_assignable, is_assignable_v<add_lvalue_reference_t<T>, add_rvalue_reference_t<T>>)
template <class T, class... Arguments>
inline constexpr bool is_trivially_constructible_v = __is_trivially_constructible(T, Arguments...);
BASCULE_PREDICATE(is_trivially_default_constructible, is_trivially_constructible_v<T>)
BASCULE_PREDICATE(is_trivially_copy_constructible,
                  is_trivially_constructible_v<T, add_lvalue_reference_t<const T>>)
template <class T, class... Arguments>
inline constexpr bool is_nothrow_constructible_v = __is_nothrow_constructible(T, Arguments...);
BASCULE_PREDICATE(is_nothrow_default_constructible, is_nothrow_constructible_v<T>)
BASCULE_PREDICATE(is_nothrow_copy_constructible,
                  is_nothrow_constructible_v<T, add_lvalue_reference_t<const T>>)
BASCULE_PREDICATE(is_nothrow_move_constructible, is_nothrow_constructible_v<T, add_rvalue_reference_t<T>>)
BASCULE_PREDICATE(is_trivially_destructible, __has_trivial_destructor(T) && !is_unbounded_array_v<T>)

template <class F, class... Arguments>
struct result_of;
template <class F, class... Arguments>
struct result_of<F(Arguments...)> : invoke_result<F, Arguments...> {};
template <class T>
using result_of_t = typename result_of<T>::type;

template <class Void, class R, class F, class... Arguments>
inline constexpr bool bascule_returns = false;
template <class R, class F, class... Arguments>
inline constexpr bool bascule_returns<void_t<invoke_result_t<F, Arguments...>>, R, F, Arguments...> =
    is_void_v<R> || is_convertible_v<invoke_result_t<F, Arguments...>, R>;
template <class R, class F, class... Arguments>
inline constexpr bool is_invocable_r_v = bascule_returns<void, R, F, Arguments...>;
template <class R, class F, class... Arguments>
struct is_invocable_r : bool_constant<is_invocable_r_v<R, F, Arguments...>> {};
template <class Void, class F, class... Arguments>
inline constexpr bool bascule_never_throws = false;
template <class F, class... Arguments>
inline constexpr bool bascule_never_throws<void_t<invoke_result_t<F, Arguments...>>, F, Arguments...> =
    noexcept(bascule_value<F>()(bascule_value<Arguments>()...));
template <class F, class... Arguments>
inline constexpr bool is_nothrow_invocable_v = bascule_never_throws<void, F, Arguments...>;
template <class F, class... Arguments>
struct is_nothrow_invocable : bool_constant<is_nothrow_invocable_v<F, Arguments...>> {};

// --- More predicates as types ---

BASCULE_TRAIT(is_bounded_array)
BASCULE_TRAIT(is_unbounded_array)
#undef BASCULE_PREDICATE
#undef BASCULE_TRAIT  // defined in <type_traits>
template <class To, class From>
struct is_assignable : bool_constant<is_assignable_v<To, From>> {};
template <class T, class... Arguments>
struct is_trivially_constructible : bool_constant<is_trivially_constructible_v<T, Arguments...>> {};
template <class T, class... Arguments>
struct is_nothrow_constructible : bool_constant<is_nothrow_constructible_v<T, Arguments...>> {};

}  // namespace std
