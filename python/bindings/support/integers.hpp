// Converts Python integers to C++ integers.
#pragma once

#include <cstdint>
#include <optional>

#include "support/pybind.hpp"

namespace bascule::python {

/// True for an int, and for an object with `__index__`. False for bool.
inline bool is_integer(py::handle object) noexcept {
    return !PyBool_Check(object.ptr()) && PyIndex_Check(object.ptr()) != 0;
}

/// The int of an object with `__index__`. Throws: its exception.
inline py::object to_int(py::handle number) { return owned(PyNumber_Index(number.ptr())); }

/// The same; null if it is not an integer, for example a NumPy array of several elements. Throws: exceptions other than
/// TypeError.
inline py::object try_int(py::handle number) {
    if (!is_integer(number)) return {};
    auto integer = py::reinterpret_steal<py::object>(PyNumber_Index(number.ptr()));
    if (!integer) {
        if (PyErr_ExceptionMatches(PyExc_TypeError) == 0) throw py::error_already_set();
        PyErr_Clear();
    }
    return integer;
}

/// True for what has a length (a tuple, a list, a 1-d array), except text. Throws: what `__len__` raises, unless it is
/// an Exception.
inline bool is_several(py::handle object) {
    PyObject* const given = object.ptr();
    if (PyTuple_Check(given) || PyList_Check(given)) return true;
    if (PySequence_Check(given) == 0 || PyUnicode_Check(given) || PyBytes_Check(given)) return false;
    if (PyObject_Length(given) >= 0) return true;
    clear_exception();  // a 0-d array is a number
    return false;
}

/// The value of an int; empty if it is negative or does not fit 64 bits.
inline std::optional<std::uint64_t> to_uint64(py::handle integer) noexcept {
    const unsigned long long value = PyLong_AsUnsignedLongLong(integer.ptr());
    if (PyErr_Occurred() == nullptr) return value;
    PyErr_Clear();
    return std::nullopt;
}

}  // namespace bascule::python
