#include "support/text.hpp"

#include <fmt/format.h>
#include <pybind11/pybind11.h>

#include <bascule/interface/errors/shortened.hpp>

namespace py = pybind11;

namespace bascule::python {

std::string safe_repr(PyObject* object) {
    const auto text = py::reinterpret_steal<py::object>(PyObject_Repr(object));
    if (!text) {
        if (PyErr_ExceptionMatches(PyExc_Exception) == 0) throw py::error_already_set();
        PyErr_Clear();
        return fmt::format("<a {}>", Py_TYPE(object)->tp_name);
    }
    return shortened(escaped(text.ptr()));
}

std::string escaped(PyObject* text) {
    return owned<py::bytes>(PyUnicode_AsEncodedString(text, "utf-8", "backslashreplace"));
}

}  // namespace bascule::python
