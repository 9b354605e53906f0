// The templates that report a variable's type to the host.
#pragma once

namespace bascule {

/// A variable's type as a parameter list: a pointer to its elements, then their size and the extents.
/// Addresses and enumerations are read as integers.
template <class T_, bool = __is_enum(T_)>
struct element_of : type_is<T_> {};
template <class T_>
struct element_of<T_, true> : type_is<__underlying_type(T_)> {};
template <class T_>
struct element_of<T_*, false> : type_is<unsigned long long> {};
template <class T_>
struct element_of<T_* volatile, false> : type_is<unsigned long long> {};
template <class T_>
struct element_of<T_* const, false> : type_is<const unsigned long long> {};
template <class T_>
struct element_of<T_* const volatile, false> : type_is<const unsigned long long> {};
template <class T_, int... E_>
struct variable_of {
    using result_ = void (*)(typename element_of<T_>::result_*, values<static_cast<int>(sizeof(T_)), E_...>*);
};
template <class T_, int N_, int... E_>
struct variable_of<T_[N_], E_...> : variable_of<T_, E_..., N_> {};
template <class T_>
struct variable_of<T_&> : variable_of<T_> {};

/// The same without the element type, for unnamed types, which cannot be arguments of a __global__ template.
struct bytes {};
template <class T_>
struct bytes_of : type_is<bytes> {};
template <class T_>
struct bytes_of<const T_> : type_is<const bytes> {};
template <class T_, int... E_>
struct nameless_variable_of {
    using result_ = void (*)(typename bytes_of<T_>::result_*, values<static_cast<int>(sizeof(T_)), E_...>*);
};
template <class T_, int N_, int... E_>
struct nameless_variable_of<T_[N_], E_...> : nameless_variable_of<T_, E_..., N_> {};
template <class T_>
struct nameless_variable_of<T_&> : nameless_variable_of<T_> {};

}  // namespace bascule
