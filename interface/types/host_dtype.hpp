// The element types of C++ programs as dtypes.
#pragma once

#include <type_traits>

#include <bascule/interface/types/dtype.hpp>

namespace bascule::detail {

/// The dtype of a C++ number type; its itemsize is 0 for all other types.
template <class T>
constexpr DType number_dtype() noexcept {
    using Kind = DType::Kind;
    if constexpr (std::is_same_v<T, bool>) {
        return {Kind::boolean, 1};
    } else if constexpr (std::is_integral_v<T>) {
        return {std::is_signed_v<T> ? Kind::signed_integer : Kind::unsigned_integer, sizeof(T)};
    } else if constexpr (std::is_floating_point_v<T> && sizeof(T) <= 8) {
        return {Kind::floating, sizeof(T)};
    } else {
        return {Kind::opaque, 0};
    }
}

/// The dtype of array elements of type T; structures become opaque bytes.
template <class T>
constexpr DType element_dtype() noexcept {
    constexpr DType number = number_dtype<T>();
    return number.itemsize > 0 ? number : DType{DType::Kind::opaque, sizeof(T)};
}

}  // namespace bascule::detail
