#include "debug_object.hpp"

#include <bascule/runtime/lifetime.hpp>

namespace py = pybind11;

namespace bascule::python {

void bind_debug(py::module_& module) { module.def("_owners_held", &owners_held); }

}  // namespace bascule::python
