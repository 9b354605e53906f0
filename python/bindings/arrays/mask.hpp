// Masks of arrays: read from a descriptor, kept with a DeviceArray, and converted from and to numpy.ma, where
// true means invalid.
#pragma once

#include <memory>
#include <utility>

#include <bascule/interface/arrays/mask.hpp>
#include <bascule/runtime/driver/home_device.hpp>

#include "arrays/array_object.hpp"
#include "support/pybind.hpp"

namespace bascule::python {

/// Reads the `__cuda_array_interface__` of `mask` once, as the mask of `array`, which was resolved at `home`:
/// so is the mask. `producer` is the array's object, or null. The caller keeps the objects alive. Throws: ArgumentError about 'mask'; the object's own
/// exception unchanged.
std::shared_ptr<const MaskView> read_mask(PyObject* mask, PyObject* producer, const ArrayView& array,
                                          Home& home);

/// For a launch on another device: marks the streams of the array and of its mask as streams of `device`.
void set_stream_device(ArrayView& view, Device device);

/// Gives an imported array, whose stream is bound, the mask that its descriptor names; null does nothing. A
/// mask that names no stream is bound to the array's; with sync=False to none. Throws: as read_mask.
void import_mask(ArrayObject& array, const pybind11::object& mask, PyObject* producer, bool sync);

/// Makes the mask's object of an array whose view came from `source` by changed_with_mask.
void derive_mask(ArrayObject& array, const ArrayObject& source);

/// The array with other shape and strides over the same memory; what `change` does to it is done to its mask.
template <class Change>
ArrayObject changed(const ArrayObject& array, Change&& change) {
    ArrayObject result = view_of(array, changed_with_mask(array.view, std::forward<Change>(change)));
    derive_mask(result, array);
    return result;
}

/// Gives a copy of the array's values, of the same shape, the same mask.
void share_mask(ArrayObject& copy, const ArrayObject& source);

bool is_numpy_masked(pybind11::handle object);

/// Copies the mask of a numpy.ma array to the device, inverted, for the array that got its data. Throws:
/// ArgumentError (not_supported) for a mask per field.
void upload_mask(ArrayObject& array, const pybind11::object& masked);

/// What `copy_to_host(out=...)` fills with values: `out` itself, or the data of a numpy.ma array where the
/// device array has a mask. Throws: ArgumentError (value) when it has one and `out` can hold none.
pybind11::object data_to_fill(const ArrayObject& array, const pybind11::object& out);

/// The values that were copied to the host with the array's mask: `out`, or a new numpy.ma array; `values`
/// without a mask.
pybind11::object with_host_mask(const ArrayObject& array, const pybind11::object& values,
                                const pybind11::object& out);

}  // namespace bascule::python
