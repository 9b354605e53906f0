// Traces, profilers' ranges and launch hooks, for the package.
#pragma once

#include <pybind11/pybind11.h>

namespace bascule::python {

void bind_traces(pybind11::module_& module);

}  // namespace bascule::python
