// Masks: which elements of an array are valid. True is valid, as the array interface has it (numpy.ma's true
// is invalid).
#pragma once

#include <memory>

#include <bascule/interface/arrays/array_interface.hpp>

namespace bascule {

/// A validated mask of one array. Borrows the memory; owns nothing.
struct MaskView {
    ArrayView array;     ///< as its producer gave it
    Dimensions strides;  ///< one an axis of the masked array, 0 where the mask is broadcast; bytes, or bits

    /// One bit an element in C order, the least significant bit of a byte first; else a byte or an integer of
    /// which 0 is false.
    bool is_bits() const noexcept { return array.dtype.kind == DType::Kind::bit; }
};

/// `mask` as the mask of `array`: it must have the array's shape or broadcast to it, and be of bools,
/// integers or single bits. Throws: ArgumentError (type, value) about the key 'mask', with what to do.
std::shared_ptr<const MaskView> mask_for(const ArrayView& array, const ArrayView& mask);

/// Whether a mask of one byte an element may be meant as one bit an element, as cuDF exports its masks since 26.02.
bool may_be_bits(const ArrayView& array, const ArrayView& mask) noexcept;

/// The bytes of such a mask as single bits, one an element of `array`.
ArrayView as_bits(const ArrayView& array, const ArrayView& mask);

/// Throws ArgumentError (value) where nothing tells bytes from bits: cuDF's masks have a multiple of 64 bytes, so
/// that a column of 64 elements has as many as elements.
void check_bytes_are_elements(const ArrayView& array, const ArrayView& mask);

/// The array's mask as an array of the array's shape, with strides of 0 where it is broadcast. Throws:
/// ArgumentError (not_supported) for single bits, which have no strides.
ArrayView spread_mask(const ArrayView& array);

/// `change` is what indexing and transposing do: other shape and strides over the same memory. What it does
/// to the array is done to its mask. Throws: as `change` and spread_mask.
template <class Change>
ArrayView changed_with_mask(const ArrayView& array, Change&& change) {
    ArrayView plain = array;
    plain.mask = nullptr;
    ArrayView changed = change(plain);
    if (array.mask != nullptr) changed.mask = mask_for(changed, change(spread_mask(array)));
    return changed;
}

}  // namespace bascule
