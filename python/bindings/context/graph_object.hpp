// bascule.Graph: work that a `with` block captures, to be launched any number of times.
#pragma once

#include <pybind11/pybind11.h>

namespace bascule::python {

void bind_graphs(pybind11::module_& module);

}  // namespace bascule::python
