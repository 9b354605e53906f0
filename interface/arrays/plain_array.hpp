// Plain arrays, as most that are passed for a `T*` are: what a launch needs of one, and what of it is compared with the
// parameter, in one word.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include <bascule/interface/arrays/array_interface.hpp>
#include <bascule/interface/types/dtype.hpp>

namespace bascule {

/// Of a plain array: its element type, and whether kernels may write to it. Of a parameter: what it takes. The lower half
/// is the element type as DLPack writes it: its code, its bits and 1 for the lanes. Compared by `fits`.
using PlainTraits = std::uint64_t;

/// Of arrays that are not plain: fits no parameter.
inline constexpr PlainTraits not_plain = ~PlainTraits{0};

namespace detail {
inline constexpr PlainTraits one_lane = PlainTraits{1} << 16;
inline constexpr PlainTraits readonly_trait = PlainTraits{1} << 32;
inline constexpr PlainTraits scalar_trait = PlainTraits{1} << 33;
inline constexpr std::array<std::uint8_t, 5> element_codes = {6, 0, 1, 2,
                                                              5};  ///< by DType::Kind, as DLPack's
}  // namespace detail

/// Of parameters that take no plain array: fits no array, and is not a scalar.
inline constexpr PlainTraits takes_none = detail::scalar_trait;

/// Of an array of numbers; a parameter `const T*` takes what `readonly` gives. not_plain for elements that are not
/// numbers.
constexpr PlainTraits plain_traits(DType dtype, bool readonly) noexcept {
    const bool number = dtype.kind <= DType::Kind::complex && dtype.format == DType::Format::none;
    if (!number || dtype.itemsize > (dtype.kind == DType::Kind::complex ? 16 : 8)) return not_plain;
    return detail::element_codes[static_cast<std::size_t>(dtype.kind)] | dtype.itemsize << 11 |
           detail::one_lane | (readonly ? detail::readonly_trait : 0);
}

/// Of a parameter that is a number by value. takes_none for other types.
constexpr PlainTraits plain_scalar(DType dtype) noexcept {
    const PlainTraits traits = plain_traits(dtype, false);
    return traits == not_plain ? takes_none : traits | detail::scalar_trait;
}

/// Whether a parameter is a number of this kind by value, of so many bytes as plain_itemsize says.
constexpr bool is_plain_scalar(PlainTraits parameter, DType::Kind kind) noexcept {
    return (parameter & ~PlainTraits{0xFF00}) ==
           (detail::element_codes[static_cast<std::size_t>(kind)] | detail::one_lane | detail::scalar_trait);
}
/// In bytes.
constexpr std::uint32_t plain_itemsize(PlainTraits traits) noexcept {
    return static_cast<std::uint32_t>(traits >> 11) & 0x1F;
}

/// not_plain, unless the array is C-contiguous and aligned, without a mask and without fields.
PlainTraits plain_traits(const ArrayView& array) noexcept;

/// True if the kernel gets the array's address and nothing else need be asked; else the general path decides.
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

/// The same as the general path makes of it.
ArrayView view_of(const PlainArray& array, const Dimensions& shape) noexcept;

}  // namespace bascule
