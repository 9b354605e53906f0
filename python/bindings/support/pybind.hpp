// pybind11, as all files of the bindings include it: with a conversion of strings of its own (support/text.hpp), which pybind11
// must know before it converts the first one.
#pragma once

// clang-format off: the order is the point
#include <pybind11/cast.h>

#include "support/text.hpp"

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
// clang-format on
