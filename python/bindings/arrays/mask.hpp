// Masks of arrays: reading them from a descriptor, keeping them with a DeviceArray, and converting from and to
// numpy.ma, where true means invalid.
#pragma once

#include <bascule/interface/arrays/mask.hpp>
#include <bascule/runtime/driver/home_device.hpp>

#include "arrays/array_object.hpp"

namespace bascule::python {

/// Reads the `__cuda_array_interface__` of `mask` once, as the mask of `array`. `home` is the device on which
/// `array` was resolved; the mask is resolved on the same device. `producer` is the array's object, or null. The caller
/// keeps the objects alive. Throws: ArgumentError about 'mask'; the object's exception unchanged.
std::shared_ptr<const MaskView> read_mask(PyObject* mask, PyObject* producer, const ArrayView& array,
                                          Home& home);

/// For a launch on another device: marks the streams of the array and of its mask as streams of `device`.
void set_stream_device(ArrayView& view, Device device);

/// Gives an imported array the mask of its descriptor. The array's stream must be set before. Does nothing if `mask` is
/// null. A mask that names no stream is bound to the array's stream; with sync=False no mask is bound to a stream.
/// Throws: as read_mask.
void import_mask(ArrayObject& array, const py::object& mask, PyObject* producer, bool sync);

/// Makes the mask object of an array whose view came from `source` by changed_with_mask.
void derive_mask(ArrayObject& array, const ArrayObject& source);

/// Changes shape and strides of the array's view, and of its mask in the same way, over the same memory.
template <class Change>
ArrayObject changed(const ArrayObject& array, Change&& change) {
    ArrayObject result = view_of(array, changed_with_mask(array.view, std::forward<Change>(change)));
    derive_mask(result, array);
    return result;
}

/// Shares the mask with a copy of the array's values of the same shape.
void share_mask(ArrayObject& copy, const ArrayObject& source);

bool is_numpy_masked(py::handle object);

/// Copies the mask of a numpy.ma array, inverted, to the device of `array`, which already has its data. Does nothing if
/// there is no mask. Throws: ArgumentError (not_supported) for a mask per field.
void upload_mask(ArrayObject& array, const py::object& masked);

/// The array that `copy_to_host(out=...)` fills with values: `out` itself, or the data of a numpy.ma array if the
/// device array has a mask. Throws: ArgumentError (value) if it has a mask and `out` cannot hold one.
py::object data_to_fill(const ArrayObject& array, const py::object& out);

/// Returns values that were copied to the host, with the array's mask: as `out`, or as a new numpy.ma array if `out` is
/// None. Returns `values` itself if the array has no mask.
py::object with_host_mask(const ArrayObject& array, const py::object& values, const py::object& out);

}  // namespace bascule::python
