// C++ exceptions become the classes of bascule/_errors.py.
#pragma once

#include <pybind11/pybind11.h>

namespace bascule::python {

/// Lets every bound function raise ours.
void register_errors();

/// For slots that pybind11 does not wrap: turns the exception being handled into the Python error that is
/// set.
void set_python_error() noexcept;

}  // namespace bascule::python
