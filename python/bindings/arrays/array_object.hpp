// bascule.DeviceArray: an array in memory that Bascule allocated (device, pinned or managed), or a view of another
// library's memory.
#pragma once

#include <atomic>
#include <memory>
#include <utility>
#include <vector>

#include <bascule/interface/arrays/dlpack.hpp>
#include <bascule/runtime/memory/memory.hpp>

#include "classes/collected.hpp"
#include "classes/simple_value.hpp"
#include "support/owners.hpp"

namespace bascule::python {

/// Cached traits of an array that launches compare. The first launch determines them. Any number of threads may do so.
/// A copy starts without them, because it may be changed into another array.
class RememberedTraits {
  public:
    RememberedTraits() = default;
    RememberedTraits(const RememberedTraits&) noexcept {}
    RememberedTraits& operator=(const RememberedTraits&) noexcept {
        set(not_plain);
        return *this;
    }
    PlainTraits get() const noexcept { return traits_.load(std::memory_order_relaxed); }
    void set(PlainTraits traits) const noexcept { traits_.store(traits, std::memory_order_relaxed); }

  private:
    mutable std::atomic<PlainTraits> traits_{not_plain};
};

/// The DLPack tensor that other libraries' C code borrows from a DeviceArray. Made at first use and kept, because the
/// extents must not move while borrowed. Not copied or moved with its array, because the copy may be changed into
/// another array. Any number of threads may make it; assign only to arrays that no other thread uses.
class LentTensor {
  public:
    LentTensor() = default;
    ~LentTensor() { delete made_.load(std::memory_order_relaxed); }
    LentTensor(const LentTensor&) noexcept {}
    LentTensor& operator=(const LentTensor&) noexcept {
        delete made_.exchange(nullptr);
        return *this;
    }

    const dlpack::Tensor* get() const noexcept {
        const Made* made = made_.load(std::memory_order_acquire);
        return made == nullptr ? nullptr : &made->tensor;
    }

    /// Makes the tensor from `tensor` and its extents. An existing tensor stays, because it may be borrowed.
    const dlpack::Tensor& make(const dlpack::Tensor& tensor, std::vector<std::int64_t> extents) const {
        auto made = std::make_unique<Made>(Made{tensor, std::move(extents)});
        made->tensor.shape = made->extents.data();
        made->tensor.strides = made->extents.data() + tensor.ndim;
        const Made* first = nullptr;
        if (!made_.compare_exchange_strong(first, made.get(), std::memory_order_acq_rel))
            return first->tensor;
        return made.release()->tensor;
    }

  private:
    struct Made {
        dlpack::Tensor tensor;
        std::vector<std::int64_t> extents;  // shape, then strides in elements
    };
    mutable std::atomic<const Made*> made_{nullptr};
};

/// The value of a bascule.DeviceArray. `view.stream` is the bound stream; only sync=False views
/// have none.
struct ArrayObject {
    ArrayView view;
    Device device;
    std::shared_ptr<DeviceBuffer> buffer;  ///< null if another library owns the memory
    py::object owner;                      ///< the other library's object, kept alive; else None
    py::object stream;                     ///< the bound stream's object, kept alive
    py::object mask{};         ///< the object of view.mask: a DeviceArray or a BitMask, kept alive; or null
    LentTensor lent{};         ///< borrowed by C code
    RememberedTraits plain{};  ///< not_plain also if the array has no stream of its device

    /// The stream that the array is bound to, if `view.stream`.
    StreamRef bound_stream() const noexcept { return {view.stream.handle, device}; }

    void visit_references(ReferenceVisitor& each) {
        each(owner);
        each(stream);
        each(mask);
    }
};

namespace detail {
inline PyTypeObject* array_type = nullptr;  // set once by bind_arrays; the module owns it
}

/// The ArrayObject inside an exact bascule.DeviceArray, or null. Cheap: no pybind11 cast.
inline const ArrayObject* as_array(PyObject* object) noexcept {
    return exact_value<ArrayObject>(object, detail::array_type);
}

/// Keeps an array for an operation that is ordered with the array's stream. If the memory is freed in the order of that
/// stream, it needs no owner after the call.
[[gnu::always_inline]] inline void keep_array(OwnerList& owners, PyObject* object, const ArrayObject& array) {
    if (array.buffer != nullptr && array.view.stream && array.buffer->order() == array.view.stream.handle) {
        owners.keep_during_call(object);
    } else {
        owners.keep(object, array.view);
    }
}

/// Call this before the array is used without the order of its stream. The host waits without the GIL if necessary: see
/// OwnedMemory::wait_for_allocation. Throws: CudaError.
void wait_for_allocation(const ArrayObject& array);

/// Call this when other libraries get the array's address. They may use it on their current streams of this thread, and
/// on blocking streams, until the array is destroyed.
void share_with_libraries(const ArrayObject& array);

/// True if NumPy's order "K" means Fortran order for this array.
inline bool keeps_fortran(const ArrayView& view) noexcept { return view.f_contiguous && !view.c_contiguous; }

/// Another view of the same memory, with the same owners and the same bound stream.
ArrayObject view_of(const ArrayObject& array, const ArrayView& view);

/// The stream of an operation on the array, and on `other` if there is one: the given stream, else the current one, else the
/// one that all of them are bound to, else the default stream. Throws: ArgumentError for a stream of another device.
StreamRef stream_for(const ArrayObject& array, const py::object& given, const ArrayObject* other = nullptr);
/// The same as an object that a new array can bind.
py::object stream_object_for(const ArrayObject& array, const py::object& given,
                             const ArrayObject* other = nullptr);

/// Throws: ArgumentError (value) unless `order` is one of the letters `allowed`. NumPy's orders are "C", "F" and "K".
void require_order(const std::string& order, std::string_view allowed);

/// Throws: ArgumentError if the array is read-only.
void require_writable(const ArrayObject& array);

/// Advice for operations that a DeviceArray does not support: "x.copy_to_host() and NumPy", or on a GPU a view by an
/// installed library.
std::string array_with_arithmetic();

/// A bascule.DeviceArray over memory that `owner` owns, bound to the current stream, else to the device's default
/// stream.
py::object make_array(const ArrayView& view, Device device, py::object owner);

/// The stream object that an array binds: the given one, else the current one, else the default stream.
py::object stream_to_bind(const py::object& stream, Device device);
void bind_stream(ArrayObject& array, py::object stream);

}  // namespace bascule::python
