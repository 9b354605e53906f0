// What pickling needs of kernels, modules and launchers; the forms themselves are in bascule._pickling.
#pragma once

#include <pybind11/pybind11.h>

namespace bascule::python {

/// After all classes: gives them `__reduce__`, and those that do not change `__copy__` and `__deepcopy__`.
void bind_pickling(pybind11::module_& module);

/// Every class that the module has by now gets bascule._pickling's `__reduce__`, which refuses objects that belong to one
/// process: what Python does without it is not for pybind11's objects.
void bind_reduction(pybind11::module_& module);

}  // namespace bascule::python
