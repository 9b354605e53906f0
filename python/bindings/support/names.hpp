// Interned attribute names and keys, made once. The launch path compares them by pointer.
#pragma once

#include "support/gil.hpp"

namespace bascule::python {

struct Names {
    PyObject* cuda_array_interface = PyUnicode_InternFromString("__cuda_array_interface__");
    PyObject* array_interface = PyUnicode_InternFromString("__array_interface__");
    PyObject* dlpack = PyUnicode_InternFromString("__dlpack__");
    PyObject* dlpack_device = PyUnicode_InternFromString("__dlpack_device__");
    PyObject* dlpack_exchange = PyUnicode_InternFromString("__dlpack_c_exchange_api__");
    PyObject* shape = PyUnicode_InternFromString("shape");
    PyObject* typestr = PyUnicode_InternFromString("typestr");
    PyObject* data = PyUnicode_InternFromString("data");
    PyObject* version = PyUnicode_InternFromString("version");
    PyObject* strides = PyUnicode_InternFromString("strides");
    PyObject* mask = PyUnicode_InternFromString("mask");
    PyObject* descr = PyUnicode_InternFromString("descr");
    PyObject* requires_grad = PyUnicode_InternFromString("requires_grad");
    PyObject* is_conj = PyUnicode_InternFromString("is_conj");
    PyObject* is_neg = PyUnicode_InternFromString("is_neg");
    PyObject* stream = PyUnicode_InternFromString("stream");
    // Attributes of Numba's arrays and their parts.
    PyObject* dtype = PyUnicode_InternFromString("dtype");
    PyObject* gpu_data = PyUnicode_InternFromString("gpu_data");
    PyObject* device_pointer = PyUnicode_InternFromString("device_pointer");
    PyObject* device_ctypes_pointer = PyUnicode_InternFromString("device_ctypes_pointer");
    PyObject* value = PyUnicode_InternFromString("value");
    PyObject* handle = PyUnicode_InternFromString("handle");
};

/// First called when the module is imported. Never destroyed, because module state may outlive static objects.
inline const Names& names() {
    static const Names& instance = *new Names;
    return instance;
}

/// An attribute of the object; null if it raises AttributeError. Throws: other exceptions of the attribute.
inline py::object find_attribute(PyObject* object, PyObject* name) {
    PyObject* const found = into_python([&] { return PyObject_GetAttr(object, name); });
    if (found == nullptr) {
        if (PyErr_ExceptionMatches(PyExc_AttributeError) == 0) throw py::error_already_set();
        PyErr_Clear();
    }
    return py::reinterpret_steal<py::object>(found);
}

}  // namespace bascule::python
