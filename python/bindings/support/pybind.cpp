#include "support/pybind.hpp"

#include <fmt/format.h>

#include <bascule/interface/errors/rejection.hpp>
#include <bascule/interface/errors/wording.hpp>

namespace bascule::python {

std::string safe_repr(PyObject* object) {
    const auto text = py::reinterpret_steal<py::object>(PyObject_Repr(object));
    if (!text) {
        clear_exception();
        return fmt::format("<a {}>", Py_TYPE(object)->tp_name);
    }
    return shortened(escaped(text.ptr()));
}

py::bytes bytes_of_surrogates(PyObject* text) {
    if (auto bytes =
            py::reinterpret_steal<py::bytes>(PyUnicode_AsEncodedString(text, "utf-8", "surrogateescape"))) {
        return bytes;
    }
    if (PyErr_ExceptionMatches(PyExc_UnicodeEncodeError) == 0) throw py::error_already_set();
    const auto at = py::error_already_set().value().attr("start").cast<Py_ssize_t>();
    const Py_ssize_t lines = py::handle(text).attr("count")("\n", 0, at).cast<Py_ssize_t>() + 1;
    const bool is_long = py::handle(text).attr("count")("\n").cast<Py_ssize_t>() > 0;
    reject(
        ErrorKind::value,
        "U+{:04X} in {} is half of a character (a lone surrogate), and has no UTF-8. Decode the text again from "
        "what it was read from.",
        static_cast<std::uint32_t>(PyUnicode_ReadChar(text, at)),
        is_long ? fmt::format("line {} of the text", lines)
                : escaped(owned(PyObject_ASCII(text)).ptr()).substr(0, 80));
}

std::string escaped(PyObject* text) {
    return owned<py::bytes>(PyUnicode_AsEncodedString(text, "utf-8", "backslashreplace"));
}

}  // namespace bascule::python
