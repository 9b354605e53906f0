// Operations on the elements of a DeviceArray, on the device: `astype`, `copy` and `fill`; arrays that are filled.
#pragma once

#include "arrays/array_object.hpp"

namespace bascule::python {

/// A new array of the same elements, contiguous in C or Fortran order, enqueued on `stream` (None: the bound
/// stream), which becomes its own. Throws: CudaError, CompileError, LibraryError.
ArrayObject packed(const pybind11::object& array, bool fortran, const pybind11::object& stream);

/// Every element becomes `value`, as NumPy converts it. Throws: ArgumentError; NumPy's own exception.
void fill(const pybind11::object& array, const pybind11::object& value, const pybind11::object& stream);

/// The elements of `source`, broadcast and converted as assignment does, to those of `array`. Throws:
/// ArgumentError when it cannot.
void copy_on_device(const pybind11::object& array, const pybind11::object& source,
                    const pybind11::object& stream);

}  // namespace bascule::python
