// Template arguments as Python users write them: instantiate("float", 256), instantiate(T=numpy.float32).
#pragma once

#include <bascule/jit/templates/specialization.hpp>

#include "support/pybind.hpp"

namespace bascule::python {

/// Converts template arguments. Strings are C++ text, integers and booleans are values, NumPy's dtypes and scalar types
/// become the C++ type of the same elements. Throws: ArgumentError that names the argument.
TemplateArguments to_template_arguments(const py::args& positional, const py::kwargs& named);

/// One instance in a list: a tuple of arguments, a dict by template parameter, or a single argument.
TemplateArguments to_template_arguments(py::handle instance);

}  // namespace bascule::python
