// For tests: no function of the driver is called with the GIL.
#pragma once

#include <pybind11/pybind11.h>

namespace bascule::python {

/// With BASCULE_TEST_GIL=1 every function of the driver's table asks from now on whether the
/// calling thread holds the GIL. Those that were called so are written to stderr, each once, and counted in
/// `_bascule._calls_with_gil()`, which is not there otherwise.
void check_calls_of_driver(pybind11::module_& module);

}  // namespace bascule::python
