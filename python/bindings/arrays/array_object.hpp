// bascule.DeviceArray: an array in device memory that Bascule allocated, or a view of another library's.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <bascule/interface/arrays/array_interface.hpp>
#include <bascule/interface/arrays/dlpack.hpp>
#include <bascule/interface/arrays/plain_array.hpp>
#include <bascule/runtime/memory/memory.hpp>

#include "classes/collected.hpp"
#include "classes/simple_value.hpp"
#include "support/owners.hpp"
#include "support/pybind.hpp"

namespace bascule::python {

/// What launches compare of an array, found at its first one. Any number of threads may find it; a copy, which may
/// become another array, finds its own.
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

/// The DLPack tensor that other libraries' C code borrows from a DeviceArray. Made at its first use and kept, because borrowers need the extents to stay where they are. It is
/// not copied or moved with its array: it describes that one, and its copy may become another.
/// Any number of threads may make it; assign only to arrays that no other thread uses.
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

    /// From `tensor` without its extents, and the extents. A tensor that exists stays: it may be borrowed.
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

/// What bascule.DeviceArray holds. `view.stream` is the bound stream; `view.has_stream` is false only for
/// sync=False views.
struct ArrayObject {
    ArrayView view;
    Device device;
    std::shared_ptr<DeviceBuffer> buffer;  ///< null when the memory is another library's
    pybind11::object owner;                ///< whose memory it is, kept alive; None otherwise
    pybind11::object stream;               ///< the bound stream's object, kept alive
    pybind11::object mask{};   ///< of view.mask: a DeviceArray or a BitMask, kept alive; null without
    LentTensor lent{};         ///< what C code borrows of it
    RememberedTraits plain{};  ///< not_plain also where it names no stream of its device

    void visit_references(ReferenceVisitor& each) {
        each(owner);
        each(stream);
        each(mask);
    }
};

namespace detail {
inline PyTypeObject* array_type = nullptr;  // set once by register_array_type, held by the module
}

/// The ArrayObject inside an exact bascule.DeviceArray, or null. Cheap: no pybind11 cast.
inline const ArrayObject* as_array(PyObject* object) noexcept {
    return exact_value<ArrayObject>(object, detail::array_type);
}

/// Keeps an array for an operation that is ordered with its stream. Memory that is given back in the order of that stream needs
/// no owner until the operation is done.
[[gnu::always_inline]] inline void keep_array(OwnerList& owners, PyObject* object, const ArrayObject& array) {
    if (array.buffer != nullptr && array.view.has_stream && array.buffer->order() == array.view.stream) {
        owners.keep_during_call(object);
    } else {
        owners.keep(object, array.view);
    }
}

/// The array is used without the order of its stream from now on. The host waits where it must, without the GIL: see
/// OwnedMemory::settle. Throws: CudaError.
void settle(const ArrayObject& array);

/// Other libraries get the array's address: they may use it on the streams that are current for them in this thread, and on
/// blocking ones, until it ends.
void share_with_libraries(const ArrayObject& array);

/// The order that NumPy's "K" keeps: Fortran's where it is that and nothing else.
inline bool keeps_fortran(const ArrayView& view) noexcept { return view.f_contiguous && !view.c_contiguous; }

/// Another view of the same memory, which it keeps in the same way; the bound stream is the same.
ArrayObject view_of(const ArrayObject& array, const ArrayView& view);

/// The stream of an operation on the array, and on `other` if there is one: the one given, else the current
/// one, else the one that is bound to all of them, else the default stream. Throws: ArgumentError for a
/// stream of another device.
StreamRef stream_for(const ArrayObject& array, const pybind11::object& given,
                     const ArrayObject* other = nullptr);
/// The same as what a new array binds.
pybind11::object stream_object_for(const ArrayObject& array, const pybind11::object& given,
                                   const ArrayObject* other = nullptr);

/// Throws: ArgumentError (value) unless it is one of the letters, NumPy's words for orders of elements: "CFK".
void require_order(const std::string& order, std::string_view allowed);

/// Throws: ArgumentError unless the array can be written.
void require_writable(const ArrayObject& array);

/// What to use where an operation needs more than a DeviceArray can: "x.copy_to_host() and NumPy", or on a GPU a view by
/// the library that is installed.
std::string array_with_arithmetic();

/// A bascule.DeviceArray of memory that `owner` owns, bound to the device's default stream.
pybind11::object make_array(const ArrayView& view, Device device, pybind11::object owner);

/// The stream object that an array binds: the one given, else the default stream.
pybind11::object stream_to_bind(const pybind11::object& stream, Device device);
void bind_stream(ArrayObject& array, pybind11::object stream);

/// From now on as_array knows the class. Throws: ImportError for a pybind11 whose objects it cannot read.
void register_array_type(const pybind11::class_<ArrayObject>& type);

}  // namespace bascule::python
