// Includes pybind11, for all files of the bindings: how text is converted must be declared before pybind11 converts the first one.
// Bytes that are not UTF-8, for example in file names and header lines, become lone surrogates and back, as in Python's paths
// (PEP 383). Also wraps new references that Python's C API returns.
#pragma once

#include <string>
#include <string_view>

// clang-format off
#include <pybind11/cast.h>

namespace bascule::python {

namespace py = pybind11;  // in all files of the bindings

/// Wraps the new reference that a function of Python's C API returned. Throws: Python's error if it is null.
template <class Object = py::object>
Object owned(PyObject* reference) {
    if (reference == nullptr) throw py::error_already_set();
    return py::reinterpret_steal<Object>(reference);
}

/// Clears Python's error, if any, which an object of the program raised. Throws it if it is no Exception, such as
/// KeyboardInterrupt: a signal handler may raise that in any Python code.
inline void clear_exception() {
    if (PyErr_Occurred() && !PyErr_ExceptionMatches(PyExc_Exception)) throw py::error_already_set();
    PyErr_Clear();
}

/// Makes a str. Returns null with MemoryError set if out of memory.
inline PyObject* new_text(std::string_view text) {
    return PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), "surrogateescape");
}

inline py::str to_str(std::string_view text) { return owned<py::str>(new_text(text)); }

/// Makes a str for display: bytes that are not UTF-8 become U+FFFD.
inline py::str to_readable(std::string_view text) {
    return owned<py::str>(
        PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), "replace"));
}

/// The repr of an object for messages, shortened and escaped. If its repr raises, the result is "<a TYPE>"; only
/// exceptions such as KeyboardInterrupt are propagated.
std::string safe_repr(PyObject* object);

/// The bytes of a str with lone surrogates, which become the bytes that they stand for (PEP 383). Throws: ArgumentError
/// for other surrogates.
py::bytes bytes_of_surrogates(PyObject* text);

/// The text of a str, with lone surrogates escaped.
std::string escaped(PyObject* text);

}  // namespace bascule::python

namespace pybind11::detail {

template <>
struct type_caster<std::string> {
    PYBIND11_TYPE_CASTER(std::string, const_name(PYBIND11_STRING_NAME));

    bool load(handle source, bool) {
        if (PyBytes_Check(source.ptr())) {
            value.assign(PyBytes_AS_STRING(source.ptr()),
                         static_cast<std::size_t>(PyBytes_GET_SIZE(source.ptr())));
            return true;
        }
        if (!PyUnicode_Check(source.ptr())) return false;
        Py_ssize_t size = 0;
        if (const char* bytes = PyUnicode_AsUTF8AndSize(source.ptr(), &size)) {
            value.assign(bytes, static_cast<std::size_t>(size));
            return true;
        }
        PyErr_Clear();
        return load(bascule::python::bytes_of_surrogates(source.ptr()), false);
    }
    static handle cast(const std::string& text, return_value_policy, handle) {
        return bascule::python::to_str(text).release();
    }
};

}  // namespace pybind11::detail

#include <pybind11/critical_section.h>
#include <pybind11/operators.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>
// Headers that Python.h does not include.
#include <frameobject.h>
#include <structmember.h>
// clang-format on

namespace bascule::python {
using namespace py::literals;  // "name"_a

/// Adds a method to a class that is already bound. `arguments` are pybind11's names of the parameters.
template <class Function, class... Arguments>
void add_method(const py::object& type, const char* name, const Function& function,
                const Arguments&... arguments) {
    type.attr(name) = py::cpp_function(function, py::name(name), py::is_method(type), arguments...);
}

}  // namespace bascule::python
