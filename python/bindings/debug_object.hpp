// What Python is told of the runtime's own state: owners held, and (bascule.debug) where a fault came from.
#pragma once

#include <pybind11/pybind11.h>

namespace bascule::python {

void bind_debug(pybind11::module_& module);

}  // namespace bascule::python
