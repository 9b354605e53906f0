// What pickling needs of kernels, modules and launchers; the forms themselves are in bascule._pickling.
#pragma once

#include <pybind11/pybind11.h>

namespace bascule::python {

/// After all classes: gives them `__reduce__`, and those that do not change `__copy__` and `__deepcopy__`.
void bind_pickling(pybind11::module_& module);

}  // namespace bascule::python
