#include "context/debug_object.hpp"

#include <bascule/runtime/lifetime/lifetime.hpp>

#include "parts.hpp"

namespace py = pybind11;
using namespace py::literals;

namespace bascule::python {

void bind_debug(py::module_& module) {
    module.def("_owners_held", &owners_held);
    module.def("_synchronise_launches", &synchronise_launches, "on"_a);
}

}  // namespace bascule::python
