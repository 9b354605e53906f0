// Masks: which elements of an array are valid. True means valid, as the array interface defines it (in numpy.ma, true
// means invalid).
#pragma once

#include <bascule/interface/arrays/array_interface.hpp>

namespace bascule {

/// A validated mask of one array. Borrows the memory; owns nothing.
struct MaskView {
    ArrayView array;     ///< as its producer gave it
    Dimensions strides;  ///< for each axis of the masked array, in bytes or bits; 0 where it is broadcast

    /// True if the mask has one bit for each element in C order, the least significant bit of a byte first. Otherwise
    /// it has a byte or an integer for each element, and 0 is false.
    bool is_bits() const noexcept { return array.dtype.kind == DType::Kind::bit; }
};

/// `mask` as the mask of `array`: it must have the array's shape or broadcast to it, and be of bools,
/// integers or single bits. Throws: ArgumentError (type, value) about the key 'mask', with what to do.
std::shared_ptr<const MaskView> mask_for(const ArrayView& array, const ArrayView& mask);

/// Whether a mask of bytes may have one bit for each element, as cuDF exports its masks since 26.02.
bool may_be_bits(const ArrayView& array, const ArrayView& mask) noexcept;

/// The bytes of such a mask as single bits, one for each element of `array`.
ArrayView as_bits(const ArrayView& array, const ArrayView& mask);

/// Throws ArgumentError (value) if bytes and bits cannot be told apart: cuDF pads masks to a multiple of 64 bytes, so
/// that the mask of a column of 64 elements has 64 bytes.
void check_bytes_are_elements(const ArrayView& array, const ArrayView& mask);

/// The array's mask as an array of the array's shape, with strides of 0 where it is broadcast. Throws:
/// ArgumentError (not_supported) for single bits, which have no strides.
ArrayView spread_mask(const ArrayView& array);

/// Applies `change` to the array and to its mask, and returns the result. `change` gives an array another shape and
/// other strides over the same memory, as indexing or transposing do. Throws: what `change` and spread_mask throw.
template <class Change>
ArrayView changed_with_mask(const ArrayView& array, Change&& change) {
    ArrayView plain = array;
    plain.mask = nullptr;
    ArrayView changed = change(plain);
    if (array.mask != nullptr) changed.mask = mask_for(changed, change(spread_mask(array)));
    return changed;
}

}  // namespace bascule
