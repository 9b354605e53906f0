// Objects that were never initialised: `bascule.Stream.__new__(bascule.Stream)`, and what pickles of old protocols make.
#include <cstddef>

#include "parts.hpp"

namespace py = pybind11;

namespace bascule::python {
namespace {

/// pybind11 asks for the memory of an object without a value.
void* refuse_memory(std::size_t) {
    throw py::type_error(
        "the object was never initialised: it was made by __new__ alone. Call its class, or the function "
        "that returns such objects.");
}

}  // namespace

void refuse_uninitialised_objects(const py::module_& module) {
    for (const auto& [name, each] : module.attr("__dict__").cast<py::dict>()) {
        if (!PyType_Check(each.ptr())) continue;
        auto* const type = reinterpret_cast<PyTypeObject*>(each.ptr());
        if (py::detail::type_info* info = py::detail::get_type_info(type))
            info->operator_new = &refuse_memory;
    }
}

}  // namespace bascule::python
