// Calls with arguments that a bound function does not take raise ArgumentTypeError in the package's words.
#pragma once

#include <pybind11/pybind11.h>

namespace bascule::python {

/// pybind11 answers such a call with a list of C++ signatures. From here on every function and method of `module`
/// raises what `bascule._call_errors.describe` makes of it. Call it after everything is bound. Needs the GIL.
void describe_call_errors(const pybind11::module_& module);

}  // namespace bascule::python
