// pybind11, as all files of the bindings include it: it must know how Bascule converts strings before it converts the first one.
// Bytes that are not UTF-8, as in names of files and in lines of headers, become lone surrogates and back, as Python has them in
// paths (PEP 383).
#pragma once

#include <string>
#include <string_view>

// clang-format off
#include <pybind11/cast.h>

namespace bascule::python {

/// The new reference that a function of Python's has returned. Throws: Python's error where it is null.
template <class Object = pybind11::object>
Object owned(PyObject* reference) {
    if (reference == nullptr) throw pybind11::error_already_set();
    return pybind11::reinterpret_steal<Object>(reference);
}

/// A str, or null with MemoryError set.
inline PyObject* new_text(std::string_view text) {
    return PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), "surrogateescape");
}

inline pybind11::str to_str(std::string_view text) { return owned<pybind11::str>(new_text(text)); }

/// For people to read: bytes that are not UTF-8 become question marks in diamonds.
inline pybind11::str to_readable(std::string_view text) {
    return owned<pybind11::str>(
        PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), "replace"));
}

/// The repr of an object, for messages: short and escaped. Never fails because of the object: where its repr raises, it is "<a TYPE>". Only
/// KeyboardInterrupt and its like come out.
std::string safe_repr(PyObject* object);

/// The bytes of a str that has lone surrogates: those that stand for bytes (PEP 383) become these. Throws:
/// ArgumentError for others.
pybind11::bytes bytes_of_surrogates(PyObject* text);

/// The text of a str; lone surrogates are escaped.
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
// What Python.h leaves out.
#include <frameobject.h>
#include <structmember.h>
// clang-format on
