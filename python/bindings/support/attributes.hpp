// Asks whether an object of another library has an attribute, ignoring errors.
#pragma once
#include "support/pybind.hpp"

namespace bascule::python {

/// True if the attribute can be read. Clears any exception. PyObject_HasAttr would print it to stderr from Python 3.13
/// on, unless it is an AttributeError.
inline bool has_attribute(PyObject* object, PyObject* name) noexcept {
#if PY_VERSION_HEX >= 0x030D0000
    PyObject* attribute = nullptr;
    const int found = PyObject_GetOptionalAttr(object, name, &attribute);
    if (found < 0) PyErr_Clear();
    Py_XDECREF(attribute);
    return found > 0;
#else
    return PyObject_HasAttr(object, name) != 0;
#endif
}

inline bool has_attribute(py::handle object, const char* name) {
    return has_attribute(object.ptr(), py::str(name).ptr());
}

}  // namespace bascule::python
