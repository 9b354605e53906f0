// The repr of values: their class and their properties, in the order in which they were bound.
#pragma once
#include "support/pybind.hpp"

namespace bascule::python {

inline py::object repr_of_properties(const py::object& self) {
    const py::handle type = py::type::handle_of(self);
    py::list parts;
    for (const auto& [name, member] : py::dict(type.attr("__dict__"))) {
        if (Py_TYPE(member.ptr()) != &PyProperty_Type) continue;
        const py::object value = self.attr(name);
        const py::str form = PyFloat_Check(value.ptr()) ? "{}={:g}" : "{}={!r}";
        parts.append(form.format(name, value));
    }
    return py::str("{}({})").format(type.attr("__name__"), py::str(", ").attr("join")(parts));
}

}  // namespace bascule::python
