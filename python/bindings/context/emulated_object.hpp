// The emulated device's own functions: recorded operations, and races.
#pragma once

#include <pybind11/pybind11.h>

namespace bascule::python {

void bind_emulated(pybind11::module_& module);

}  // namespace bascule::python
