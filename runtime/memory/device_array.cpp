#include <bascule/interface/errors/rejection.hpp>
#include <bascule/runtime/memory/device_array.hpp>

namespace bascule::detail {
namespace {

/// Checks the shape before anything is allocated. The caller sets the pointer afterwards.
ArrayView view_in_c_order(std::span<const std::int64_t> extents, DType dtype, StreamRef stream) {
    if (extents.size() > static_cast<std::size_t>(max_dimensions)) {
        reject(ErrorKind::value, "an array has at most {} dimensions, got {}.", max_dimensions,
               extents.size());
    }
    ArrayView view;
    view.dtype = dtype;
    view.shape = Dimensions(extents);
    std::int64_t bytes = dtype.itemsize;
    for (const std::int64_t extent : extents) {
        if (extent < 0 || __builtin_mul_overflow(bytes, extent, &bytes)) {
            reject(ErrorKind::value, "an array of shape {} with {} bytes per element cannot be made: {}.",
                   to_string(view.shape), dtype.itemsize,
                   extent < 0 ? "an extent is negative" : "it has more than 2**63 bytes");
        }
    }
    view.size = static_cast<std::uint64_t>(bytes) / dtype.itemsize;
    view.strides = c_strides(view.shape, dtype.itemsize);
    find_contiguity(view);
    view.stream = {stream.handle(), -1, StreamSource::own};
    return view;
}

void check_size(const ArrayView& view, std::size_t elements) {
    if (elements == view.size) return;
    reject(ErrorKind::value, "the array has {} elements, and {} were given: copy exactly as many.", view.size,
           elements);
}

}  // namespace

ArrayStorage::ArrayStorage(std::span<const std::int64_t> extents, DType dtype, StreamRef on)
    : view(view_in_c_order(extents, dtype, on)),
      stream(on),
      buffer(static_cast<std::size_t>(view.size) * dtype.itemsize, on) {
    view.pointer = buffer.address();
}

void ArrayStorage::copy_from_host(const void* source, std::size_t elements) const {
    check_size(view, elements);
    copy_to_device(stream, buffer.address(), source, buffer.bytes());
}

void ArrayStorage::copy_to_host(void* destination, std::size_t elements) const {
    check_size(view, elements);
    bascule::copy_to_host(stream, destination, buffer.address(), buffer.bytes());
}

}  // namespace bascule::detail
