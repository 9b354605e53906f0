// A plain array is the usual argument for `T*`. A launch reads few values of it, and compares one word of them with the
// parameter's.
#pragma once

#include <cstddef>

#include <bascule/interface/arrays/array_interface.hpp>

namespace bascule {

/// For an array: its element type, and whether kernels may write to it. For a parameter: what it takes. The lower half
/// is the element type as in DLPack: type code, bits, and 1 for the lanes. `accepts` compares two of them.
using PlainTraits = std::uint64_t;

/// The traits of arrays that are not plain: no parameter accepts them.
inline constexpr PlainTraits not_plain = ~PlainTraits{0};

namespace detail {
inline constexpr PlainTraits one_lane = PlainTraits{1} << 16;
inline constexpr PlainTraits readonly_trait = PlainTraits{1} << 32;
inline constexpr PlainTraits scalar_trait = PlainTraits{1} << 33;
inline constexpr std::array<std::uint8_t, 5> element_codes{6, 0, 1, 2, 5};  // DLPack's, by DType::Kind
}  // namespace detail

/// The traits of parameters that accept no plain array and are not scalars.
inline constexpr PlainTraits takes_none = detail::scalar_trait;

/// The traits of an array of numbers; for a parameter `const T*`, `readonly` is true. Other elements give not_plain.
constexpr PlainTraits plain_traits(DType dtype, bool readonly) noexcept {
    const bool number = dtype.kind <= DType::Kind::complex && dtype.format == DType::Format::none;
    if (!number || dtype.itemsize > (dtype.kind == DType::Kind::complex ? 16 : 8)) return not_plain;
    return detail::element_codes[static_cast<std::size_t>(dtype.kind)] | dtype.itemsize << 11 |
           detail::one_lane | (readonly ? detail::readonly_trait : 0);
}

/// The traits of a parameter that is a number by value; takes_none for other types.
constexpr PlainTraits plain_scalar(DType dtype) noexcept {
    const PlainTraits traits = plain_traits(dtype, false);
    return traits == not_plain ? takes_none : traits | detail::scalar_trait;
}

/// Whether a parameter is a number of this kind by value. plain_itemsize gives its size.
constexpr bool is_plain_scalar(PlainTraits parameter, DType::Kind kind) noexcept {
    return (parameter & ~PlainTraits{0xFF00}) ==
           (detail::element_codes[static_cast<std::size_t>(kind)] | detail::one_lane | detail::scalar_trait);
}
/// The item size in bytes.
constexpr std::uint32_t plain_itemsize(PlainTraits traits) noexcept {
    return static_cast<std::uint32_t>(traits >> 11) & 0x1F;
}

/// Returns not_plain unless the array has numbers as elements, is aligned and C-contiguous, and has no mask and no
/// fields.
PlainTraits plain_traits(const ArrayView& array) noexcept;

/// Whether the argument is valid and the kernel gets the array's address. If false, the general path decides.
constexpr bool accepts(PlainTraits parameter, PlainTraits array) noexcept {
    return (array | (parameter & detail::readonly_trait)) == parameter;
}

/// A plain array as read from a producer: valid, with at least one number, in C order. Its alignment is not checked. A
/// value type, left uninitialised where that saves time; borrows the memory.
struct PlainArray {
    std::uint64_t pointer;
    ProducerStream stream;
    std::uint64_t bytes;
    PlainTraits traits;
    std::int32_t version = 3;  ///< of the interface that it was read from

    bool is_aligned() const noexcept { return (pointer & (plain_itemsize(traits) - 1)) == 0; }
};

/// The same view that the general path makes of the array.
ArrayView view_of(const PlainArray& array, const Dimensions& shape) noexcept;

}  // namespace bascule
