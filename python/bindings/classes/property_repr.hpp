// The repr of values: their class and their properties, in the order in which they were bound.
#pragma once
#include "support/pybind.hpp"

namespace bascule::python {

inline pybind11::object repr_of_properties(const pybind11::object& self) {
    const pybind11::handle type = pybind11::type::handle_of(self);
    pybind11::list parts;
    for (const auto& [name, member] : pybind11::dict(type.attr("__dict__"))) {
        if (Py_TYPE(member.ptr()) != &PyProperty_Type) continue;
        const pybind11::object value = self.attr(name);
        const pybind11::str form = PyFloat_Check(value.ptr()) ? "{}={:g}" : "{}={!r}";
        parts.append(form.format(name, value));
    }
    return pybind11::str("{}({})").format(type.attr("__name__"), pybind11::str(", ").attr("join")(parts));
}

}  // namespace bascule::python
