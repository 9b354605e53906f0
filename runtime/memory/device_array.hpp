// Typed device arrays for C++ programs. They are in C order, and each is ordered with one stream.
#pragma once

#include <ranges>
#include <type_traits>
#include <vector>

#include <bascule/interface/arrays/array_interface.hpp>
#include <bascule/interface/types/dtype.hpp>
#include <bascule/runtime/memory/memory.hpp>

namespace bascule {

namespace detail {

/// The untyped part of DeviceArray. Copies are enqueued on `stream`.
struct ArrayStorage {
    /// Throws: ArgumentError for a negative extent, for more than 64 extents, and for more than 2**63 bytes; CudaError.
    ArrayStorage(std::span<const std::int64_t> extents, DType dtype, StreamRef stream);

    void copy_from_host(const void* source, std::size_t elements) const;
    void copy_to_host(void* destination, std::size_t elements) const;

    ArrayView view;
    StreamRef stream;
    DeviceBuffer buffer;
};

}  // namespace detail

/// An array in device memory, owned by this object, in C order. A launch on another stream waits for the array's
/// stream, which then waits for the launch. A stream that is not owned by Bascule must outlive the array. Move-only. As
/// thread-safe as memory: order your accesses.
///
///     DeviceArray<float> x({480, 640}, stream);   // undefined elements
///     auto y = to_device(values, stream);         // a copy of a std::vector, std::array or span
///     launch(stream, config, x, y);               // for float*, const float* and array_view<float, N>
///     std::vector<float> result = y.copy_to_host();
template <class T>
class DeviceArray {
    static_assert(std::is_trivially_copyable_v<T> && !std::is_const_v<T>, "elements are copied byte by byte");

  public:
    /// A one-dimensional array. The elements are undefined. Throws: CudaError, ArgumentError.
    explicit DeviceArray(std::size_t size, StreamRef stream = StreamRef::device_default())
        : storage_(std::vector{static_cast<std::int64_t>(size)}, detail::element_dtype<T>(), stream) {}
    /// An array of any shape, in C order. The elements are undefined. Throws: CudaError, ArgumentError.
    explicit DeviceArray(const std::vector<std::int64_t>& shape,
                         StreamRef stream = StreamRef::device_default())
        : storage_(shape, detail::element_dtype<T>(), stream) {}

    /// The device address of the first element, which the host cannot access. Null if the array is empty. The memory is
    /// allocated and freed in the order of `stream()`. Enqueue work that uses the address there, or after an event of
    /// it. The work must be done before the array is destroyed, or be on a blocking stream.
    T* data() const noexcept {
        storage_.buffer.share();
        return reinterpret_cast<T*>(storage_.view.pointer);
    }
    std::size_t size() const noexcept { return static_cast<std::size_t>(storage_.view.size); }  ///< elements
    std::size_t bytes() const noexcept { return size() * sizeof(T); }
    std::span<const std::int64_t> shape() const noexcept {
        return {storage_.view.shape.begin(), storage_.view.shape.end()};
    }
    StreamRef stream() const noexcept { return storage_.stream; }
    Device device() const noexcept { return storage_.stream.device(); }
    /// A view for kernels, which names the stream. Borrows the memory.
    const ArrayView& view() const noexcept { return storage_.view; }

    /// Copies the elements to the host, in the order of the stream, and waits. Throws: CudaError.
    /// Not for bool, because std::vector<bool> does not store elements of that type.
    std::vector<T> copy_to_host() const requires(!std::is_same_v<T, bool>) {
        std::vector<T> values(size());
        storage_.copy_to_host(values.data(), values.size());
        return values;
    }
    /// The same, into memory of the caller. Throws: ArgumentError if the sizes differ; CudaError.
    void copy_to_host(std::span<T> values) const { storage_.copy_to_host(values.data(), values.size()); }
    /// Copies all elements from the host, in the order of the stream. Pageable `values` may be reused on return (not in
    /// a capture), pinned and managed ones when the stream has done the copy. Throws: ArgumentError if the sizes
    /// differ; CudaError.
    void copy_from_host(std::span<const T> values) const {
        storage_.copy_from_host(values.data(), values.size());
    }

  private:
    detail::ArrayStorage storage_;
};

/// Copies contiguous host memory to a new one-dimensional array on the device. Throws: CudaError.
template <std::ranges::contiguous_range Values>
auto to_device(const Values& values, StreamRef stream = StreamRef::device_default()) {
    using T = std::remove_cv_t<std::ranges::range_value_t<Values>>;
    DeviceArray<T> array(std::ranges::size(values), stream);
    array.copy_from_host({std::ranges::data(values), std::ranges::size(values)});
    return array;
}

}  // namespace bascule
