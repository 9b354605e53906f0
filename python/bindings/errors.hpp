// C++ exceptions become the classes of bascule/_errors.py.
#pragma once

#include <pybind11/pybind11.h>

#include <bascule/interface/error.hpp>

namespace bascule::python {

/// Lets every bound function raise ours.
void register_errors();

/// Raises a kernel that is not there as an attribute that is not there: hasattr() and notebooks rely on that.
[[noreturn]] void raise_missing_attribute(const CompileError& error);

/// For slots that pybind11 does not wrap: turns the exception being handled into the Python error that is
/// set.
void set_python_error() noexcept;

}  // namespace bascule::python
