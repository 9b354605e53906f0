// Asks whether an object of another library has an attribute.
#pragma once
#include "support/pybind.hpp"

namespace bascule::python {

/// True if the attribute can be read. Throws: what the attribute raises, unless it is an Exception.
inline bool has_attribute(PyObject* object, PyObject* name) {
    PyObject* attribute = nullptr;
#if PY_VERSION_HEX >= 0x030D0000
    const int found = PyObject_GetOptionalAttr(object, name, &attribute);
#else
    const int found = _PyObject_LookupAttr(object, name, &attribute);
#endif
    if (found < 0) clear_exception();
    Py_XDECREF(attribute);
    return found > 0;
}

inline bool has_attribute(py::handle object, const char* name) {
    return has_attribute(object.ptr(), py::str(name).ptr());
}

}  // namespace bascule::python
