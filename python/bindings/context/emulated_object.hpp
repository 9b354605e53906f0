// What the emulated device tells beyond the driver's API: recorded operations.
#pragma once

#include <pybind11/pybind11.h>

namespace bascule::python {

void bind_emulated(pybind11::module_& module);

}  // namespace bascule::python
