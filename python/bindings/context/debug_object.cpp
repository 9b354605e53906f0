#include "context/debug_object.hpp"

#include <bascule/runtime/lifetime/lifetime.hpp>

namespace py = pybind11;
using namespace py::literals;

namespace bascule::python {

void bind_debug(py::module_& module) {
    module.def("_owners_held", &owners_held);
    module.def(
        "_synchronise_launches", [](bool on) { return synchronise_launches.exchange(on); }, "on"_a);
}

}  // namespace bascule::python
