// Adds methods to classes that are already bound.
#pragma once
#include "support/pybind.hpp"

namespace bascule::python {

/// `arguments` are pybind11's names of the parameters.
template <class Function, class... Arguments>
void add_method(const py::object& type, const char* name, const Function& function,
                const Arguments&... arguments) {
    type.attr(name) = py::cpp_function(function, py::name(name), py::is_method(type), arguments...);
}

}  // namespace bascule::python
