#include <algorithm>

#include <bascule/interface/arrays/plain_array.hpp>

namespace bascule {

PlainTraits plain_traits(const ArrayView& array) noexcept {
    const PlainTraits traits = plain_traits(array.dtype, !array.writable_by_kernels());
    const bool plain = traits != not_plain && array.c_contiguous && array.mask == nullptr &&
                       array.layout == nullptr && array.pointer % array.dtype.itemsize == 0;
    return plain ? traits : not_plain;
}

ArrayView view_of(const PlainArray& array, const Dimensions& shape) noexcept {
    const auto code = static_cast<std::uint8_t>(array.traits);
    const auto kind = std::ranges::find(detail::element_codes, code) - detail::element_codes.begin();
    ArrayView view;
    view.pointer = array.pointer;
    view.dtype = {static_cast<DType::Kind>(kind), plain_itemsize(array.traits)};
    view.readonly = (array.traits & detail::readonly_trait) != 0;
    view.stream = array.stream;
    view.size = array.bytes / view.dtype.itemsize;
    view.version = array.version;
    view.shape = shape;
    view.strides = c_strides(shape, view.dtype.itemsize);
    view.c_contiguous = view.f_contiguous = true;
    if (view.ndim() > 1) find_contiguity(view);
    return view;
}

}  // namespace bascule
