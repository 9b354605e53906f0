// `__cuda_array_interface__` of a DeviceArray, in every version.
#pragma once

#include "arrays/array_object.hpp"

namespace bascule::python {

/// The entries that the host's and the device's interface share, in version 3: shape, typestr, descr, data,
/// strides, version.
pybind11::dict interface_of(const ArrayView& view);

}  // namespace bascule::python
