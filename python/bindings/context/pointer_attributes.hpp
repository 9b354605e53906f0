// `bascule.pointer_attributes`: what the driver knows of an array's memory.
#pragma once

#include <pybind11/pybind11.h>

namespace bascule::python {

void bind_pointer_attributes(pybind11::module_& module);

}  // namespace bascule::python
