// Sources: the CUDA Array Interface ("interpreted only as true or not true"), NumPy's array interface for
// typestr 't', and the order of bits that Arrow defines and cuDF exports.
#include <fmt/format.h>

#include <bascule/interface/arrays/mask.hpp>
#include <bascule/interface/errors/rejection.hpp>

namespace bascule {
namespace {

[[noreturn]] void fail(ErrorKind kind, const ArrayView& mask, const std::string& why) {
    const std::string got = describe(mask);
    reject(kind, {.field = "mask", .got = got}, "'mask' of __cuda_array_interface__ is {}: {}", got, why);
}

void check_dtype(const ArrayView& mask) {
    const DType::Kind kind = mask.dtype.kind;
    if (kind <= DType::Kind::unsigned_integer || kind == DType::Kind::bit) return;
    fail(ErrorKind::type, mask,
         "the elements of a mask are bools, integers or single bits. Make one with x != 0.");
}

/// Throws unless the mask broadcasts to the array: the last axes are aligned, and an axis of extent 1 is repeated.
void check_shape(const ArrayView& array, const ArrayView& mask) {
    const int missing = array.ndim() - mask.ndim();
    bool broadcasts = missing >= 0;
    for (int d = 0; broadcasts && d < mask.ndim(); ++d) {
        broadcasts = mask.shape[d] == array.shape[missing + d] || mask.shape[d] == 1;
    }
    if (broadcasts) return;
    fail(ErrorKind::value, mask,
         fmt::format("a mask has the shape of its array, {}, or broadcasts to it.", to_string(array.shape)));
}

/// Kernels read the mask as integers of its item size. Strides count bytes, so single bits cannot have strides.
void check_layout(const ArrayView& mask) {
    if (mask.dtype.kind == DType::Kind::bit) {
        if (!mask.c_contiguous)
            fail(ErrorKind::value, mask, "single bits are in C order without gaps: omit 'strides'.");
        return;
    }
    const auto itemsize = static_cast<std::int64_t>(mask.dtype.itemsize);
    bool aligned = mask.empty() || mask.pointer % mask.dtype.itemsize == 0;
    for (int d = 0; aligned && d < mask.ndim() && !mask.empty(); ++d) {
        aligned = mask.shape[d] == 1 || mask.strides[d] % itemsize == 0;
    }
    if (!aligned) {
        fail(ErrorKind::value, mask,
             fmt::format("its elements are not aligned to their {} bytes. Pass a copy of it.", itemsize));
    }
}

}  // namespace

std::shared_ptr<const MaskView> mask_for(const ArrayView& array, const ArrayView& mask) {
    check_dtype(mask);
    check_shape(array, mask);
    check_layout(mask);
    MaskView view{mask, {}};
    const int missing = array.ndim() - mask.ndim();
    for (int d = 0; d < missing; ++d) view.strides.push_back(0);
    // Masks of single bits have an item size of 1, so that their strides count bits.
    for (int d = 0; d < mask.ndim(); ++d) view.strides.push_back(mask.shape[d] == 1 ? 0 : mask.strides[d]);
    return std::make_shared<const MaskView>(std::move(view));
}

bool may_be_bits(const ArrayView& array, const ArrayView& mask) noexcept {
    return mask.dtype == DType{DType::Kind::unsigned_integer, 1} && mask.c_contiguous && mask.ndim() == 1 &&
           array.ndim() == 1 && mask.size >= (array.size + 7) / 8;
}

ArrayView as_bits(const ArrayView& array, const ArrayView& mask) {
    ArrayView bits = mask;
    bits.dtype = {DType::Kind::bit, 1};
    bits.shape = array.shape;
    bits.strides.resize(1);
    bits.strides[0] = 1;
    bits.size = array.size;
    return bits;
}

void check_bytes_are_elements(const ArrayView& array, const ArrayView& mask) {
    const bool ambiguous = array.size == 64 && mask.size == 64;
    if (!ambiguous || !may_be_bits(array, mask)) return;
    fail(ErrorKind::value, mask,
         "64 bytes for 64 elements may be one byte an element, or one bit an element as in cuDF's masks. "
         "Export bools (typestr \"|b1\") or single bits (\"|t1\").");
}

ArrayView spread_mask(const ArrayView& array) {
    const MaskView& mask = *array.mask;
    if (mask.is_bits()) {
        reject_field(
            ErrorKind::not_supported, "mask",
            "the array's mask has one bit per element, and what begins or steps inside a byte has no "
            "address: pass the whole array, or give it a mask of bools.");
    }
    ArrayView spread = mask.array;
    spread.shape = array.shape;
    spread.strides = mask.strides;
    spread.size = array.size;
    find_contiguity(spread);
    return spread;
}

}  // namespace bascule
