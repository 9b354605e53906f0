// Plain arrays, as most that are passed for a `T*` are: what a launch needs of one, and what of it is compared with the
// parameter, in one word.
#pragma once

#include <cstdint>

#include <bascule/interface/arrays/array_interface.hpp>
#include <bascule/interface/types/dtype.hpp>

namespace bascule {

/// Of a plain array: its element type, and whether kernels may write to it. Of a parameter: what it takes. Both are
/// made by plain_traits alone, and compared by `fits`.
using PlainTraits = std::uint32_t;

/// Of arrays that are not plain: fits no parameter.
inline constexpr PlainTraits not_plain = 0xFFFF'FFFF;
/// Of parameters that take no plain array: fits no array.
inline constexpr PlainTraits takes_none = 0;

namespace detail {
inline constexpr PlainTraits itemsize_trait = 0xFFU << 8;
inline constexpr PlainTraits readonly_trait = 1U << 16;
inline constexpr PlainTraits scalar_trait = 1U << 17;
}  // namespace detail

/// Of an array of numbers; a parameter `const T*` takes what `readonly` gives. not_plain for elements that are not
/// numbers.
constexpr PlainTraits plain_traits(DType dtype, bool readonly) noexcept {
    const bool number = dtype.kind <= DType::Kind::complex && dtype.format == DType::Format::none;
    if (!number || dtype.itemsize > 16) return not_plain;
    return (static_cast<PlainTraits>(dtype.kind) + 1) | dtype.itemsize << 8 |
           (readonly ? detail::readonly_trait : 0);
}

/// Of a parameter that is a number by value. takes_none for other types.
constexpr PlainTraits plain_scalar(DType dtype) noexcept {
    const PlainTraits traits = plain_traits(dtype, false);
    return traits == not_plain ? takes_none : traits | detail::scalar_trait;
}

/// Whether a parameter is a number of this kind by value, of so many bytes as plain_itemsize says.
constexpr bool is_plain_scalar(PlainTraits parameter, DType::Kind kind) noexcept {
    return (parameter & ~detail::itemsize_trait) ==
           ((static_cast<PlainTraits>(kind) + 1) | detail::scalar_trait);
}
constexpr std::uint32_t plain_itemsize(PlainTraits traits) noexcept {
    return (traits & detail::itemsize_trait) >> 8;
}

/// not_plain, unless the array is C-contiguous and aligned, without a mask and without fields.
PlainTraits plain_traits(const ArrayView& array) noexcept;

/// Whether the kernel gets the array's address and nothing else need be asked. Where not, all rules decide.
constexpr bool fits(PlainTraits array, PlainTraits parameter) noexcept {
    return (array | (parameter & detail::readonly_trait)) == parameter;
}

/// A plain array, as it was read from a producer: numbers in C order, at least one, and nothing wrong. Whether it is
/// aligned was not asked. A value, not initialised where it is cheap; borrows the memory.
struct PlainArray {
    std::uint64_t pointer;
    std::uint64_t stream = 0;  ///< to be ordered with; 0 where none is named
    std::uint64_t bytes;
    PlainTraits traits;
    std::int32_t version = 3;  ///< of the interface it was read from

    bool is_aligned() const noexcept { return (pointer & (plain_itemsize(traits) - 1)) == 0; }
};

/// The same as all rules make of it.
ArrayView view_of(const PlainArray& array, const Dimensions& shape) noexcept;

}  // namespace bascule
