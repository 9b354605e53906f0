// Calls with arguments that a bound function does not take raise ArgumentTypeError in the package's words.
#include "parts.hpp"
#include "support/gil.hpp"

namespace py = pybind11;

namespace bascule::python {
namespace {

using Dispatch = PyObject* (*)(PyObject*, PyObject* const*, Py_ssize_t, PyObject*);

Dispatch pybind_dispatch = nullptr;  // one for all functions; written once, at import

/// Replaces the error that is set, if it is pybind11's about the arguments.
void describe_error(PyObject* const* arguments, Py_ssize_t flags, PyObject* names) {
    const py::error_already_set error;
    const py::str text(error.value());
    if (!text.contains("(): incompatible ")) {
        py::error_already_set(error).restore();
        return;
    }
    const Py_ssize_t positional = PyVectorcall_NARGS(static_cast<std::size_t>(flags));
    py::list given;
    for (Py_ssize_t i = 0; i < positional; ++i) given.append(py::handle(arguments[i]));
    py::dict named;
    for (Py_ssize_t i = 0; names != nullptr && i < PyTuple_GET_SIZE(names); ++i) {
        named[py::handle(PyTuple_GET_ITEM(names, i))] = py::handle(arguments[positional + i]);
    }
    const py::object described =
        py::module_::import("bascule._call_errors").attr("describe")(text, given, named);
    PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(described.ptr())), described.ptr());
}

PyObject* dispatch(PyObject* self, PyObject* const* arguments, Py_ssize_t flags, PyObject* names) {
    return into_python([&]() -> PyObject* {
        PyObject* const result = pybind_dispatch(self, arguments, flags, names);
        if (result != nullptr || !PyErr_ExceptionMatches(PyExc_TypeError)) return result;
        try {
            describe_error(arguments, flags, names);
        } catch (py::error_already_set& error) {
            error.restore();
        }
        return nullptr;
    });
}

void redirect(py::handle value) {
    PyObject* function = value.ptr();
    if (PyInstanceMethod_Check(function)) function = PyInstanceMethod_GET_FUNCTION(function);
    if (!PyCFunction_CheckExact(function)) return;
    PyMethodDef& method = *reinterpret_cast<PyCFunctionObject*>(function)->m_ml;
    if (method.ml_flags != (METH_FASTCALL | METH_KEYWORDS)) return;
    const auto called = reinterpret_cast<Dispatch>(reinterpret_cast<void (*)()>(method.ml_meth));
    if (pybind_dispatch == nullptr) pybind_dispatch = called;
    if (called != pybind_dispatch) return;
    method.ml_meth = reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(&dispatch));
}

/// tp_init of classes whose objects only Bascule makes.
int refuse_to_make(PyObject* self, PyObject*, PyObject*) noexcept {
    const char* const name = Py_TYPE(self)->tp_name;
    PyErr_Format(PyExc_TypeError, "%s is not called: Bascule's functions return such objects; see help(%s)",
                 name, name);
    return -1;
}

}  // namespace

void describe_call_errors(const py::module_& module) {
    for (const auto& [name, value] : py::dict(module.attr("__dict__"))) {
        redirect(value);
        if (!py::isinstance<py::type>(value)) continue;
        const py::dict members(value.attr("__dict__"));
        for (const auto& member : members) redirect(member.second);
        auto* const type = reinterpret_cast<PyTypeObject*>(value.ptr());
        if (PyType_HasFeature(type, Py_TPFLAGS_HEAPTYPE) &&
            type->tp_init == &py::detail::pybind11_object_init) {
            type->tp_init = &refuse_to_make;
        }
    }
}

}  // namespace bascule::python
