// Public functions, whose errors point to the user's code. Functions of the package remove their frames from an error's
// traceback. Functions of the extension module describe invalid arguments in the package's words.
#include <algorithm>
#include <cstdlib>
#include <utility>

#include <fmt/format.h>

#include "classes/callable_object.hpp"
#include "parts.hpp"
#include "support/without_gil.hpp"

namespace bascule::python {
namespace {

struct PublicFunction {
    PyObject_HEAD vectorcallfunc vectorcall;
    PyObject* function;
    PyObject* results;     // a dict of cached results of calls with one str, or null
    PyObject* attributes;  // set by functools.update_wrapper
    bool is_bound;         // a function that pybind11 made
};

PyTypeObject* function_type = nullptr;
PyObject* package_directory = nullptr;  // "/.../bascule/"

bool wants_all_frames() noexcept {
    const char* value = std::getenv("BASCULE_FULL_TRACEBACK");
    return value != nullptr && *value != '\0' && std::string_view(value) != "0";
}

bool is_of_package(const py::object& trace) {
    const py::object file = trace.attr("tb_frame").attr("f_code").attr("co_filename");
    return file.attr("startswith")(py::handle(package_directory)).cast<bool>();
}

/// Removes the traceback entries before the first that is not of the package.
void hide_own_frames() {
    const py::error_already_set error;
    py::object trace = error.trace();
    if (!trace) trace = py::none();
    while (!trace.is_none() && is_of_package(trace)) trace = trace.attr("tb_next");
    PyException_SetTraceback(error.value().ptr(), trace.ptr());
    PyErr_SetObject(error.type().ptr(), error.value().ptr());
}

/// Replaces pybind11's TypeError about the arguments, which begins with the function's name, by Bascule's own error.
void describe_arguments(PyObject* self, PyObject* const* arguments, std::size_t flags, PyObject* names) {
    py::error_already_set error;
    const py::handle function(self);
    const py::str head = py::str("{}(): ").format(function.attr("__name__"));
    if (!error.matches(PyExc_TypeError) || !py::bool_(py::str(error.value()).attr("startswith")(head))) {
        error.restore();
        return;
    }
    const Py_ssize_t positional = PyVectorcall_NARGS(flags);
    py::list given;
    for (Py_ssize_t i = 0; i < positional; ++i) given.append(py::handle(arguments[i]));
    py::dict named;
    for (Py_ssize_t i = 0; names != nullptr && i < PyTuple_GET_SIZE(names); ++i) {
        named[py::handle(PyTuple_GET_ITEM(names, i))] = py::handle(arguments[positional + i]);
    }
    const py::object described = py::module_::import("bascule._call_errors")
                                     .attr("describe")(function.attr("__qualname__"), given, named);
    PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(described.ptr())), described.ptr());
}

PyObject* call(PyObject* self, PyObject* const* arguments, std::size_t flags, PyObject* names) {
    const auto& function = *reinterpret_cast<PublicFunction*>(self);
    if (function.results != nullptr && PyVectorcall_NARGS(flags) == 1 && names == nullptr &&
        PyUnicode_CheckExact(arguments[0])) {
#if PY_VERSION_HEX >= 0x030D0000
        PyObject* known = nullptr;  // another thread may replace the entry
        PyDict_GetItemRef(function.results, arguments[0], &known);
        if (known != nullptr) return known;
#else
        if (PyObject* known = PyDict_GetItemWithError(function.results, arguments[0]))
            return Py_NewRef(known);
#endif
        PyErr_Clear();
    }
    return into_python([&]() -> PyObject* {
        PyObject* const result = PyObject_Vectorcall(function.function, arguments, flags, names);
        if (result != nullptr) return result;
        try {
            if (function.is_bound) {
                describe_arguments(self, arguments, flags, names);
            } else if (!wants_all_frames()) {
                hide_own_frames();
            }
        } catch (py::error_already_set& error) {
            error.restore();
        }
        return nullptr;
    });
}

PyObject* bind_to(PyObject* self, PyObject* object, PyObject*) {
    if (object == nullptr || object == Py_None) return Py_NewRef(self);
    return PyMethod_New(self, object);
}

PyObject* repr_of_function(PyObject* self) {
    return PyObject_Repr(reinterpret_cast<PublicFunction*>(self)->function);
}

int visit_members(PyObject* self, visitproc visit, void* arg) {
    auto* function = reinterpret_cast<PublicFunction*>(self);
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(function->function);
    Py_VISIT(function->results);
    Py_VISIT(function->attributes);
    return 0;
}

int clear_members(PyObject* self) {
    auto* function = reinterpret_cast<PublicFunction*>(self);
    Py_CLEAR(function->function);
    Py_CLEAR(function->results);
    Py_CLEAR(function->attributes);
    return 0;
}

void free_function(PyObject* self) {
    PyTypeObject* const type = Py_TYPE(self);
    PyObject_GC_UnTrack(self);
    clear_members(self);
    type->tp_free(self);
    Py_DECREF(type);
}

/// Pickles contain only the name, as for other functions.
PyObject* reduce(PyObject* self, PyObject*) { return PyObject_GetAttrString(self, "__qualname__"); }

py::object wrap(const py::object& function, bool is_bound) {
    py::object made = owned(function_type->tp_alloc(function_type, 0));
    auto* const object = reinterpret_cast<PublicFunction*>(made.ptr());
    object->vectorcall = &call;
    object->function = py::object(function).release().ptr();
    object->is_bound = is_bound;
    py::module_::import("functools").attr("update_wrapper")(made, function);
    return made;
}

py::object make_public(const py::object& function, const py::object& results) {
    if (package_directory == nullptr) {
        const py::object path = py::module_::import("os").attr("path");
        const py::object file = function.attr("__code__").attr("co_filename");
        package_directory = py::str(path.attr("join")(path.attr("dirname")(file), "")).release().ptr();
    }
    py::object made = wrap(function, false);
    if (!results.is_none()) {
        reinterpret_cast<PublicFunction*>(made.ptr())->results = py::dict(results).release().ptr();
    }
    return made;
}

/// The signature for inspect.signature. For functions of the extension module it comes from the stub; others have their own.
PyObject* signature_of(PyObject* self, void*) {
    return guarded([&] {
        if (!reinterpret_cast<PublicFunction*>(self)->is_bound) throw py::attribute_error("__signature__");
        const py::handle function(self);
        return py::object(
            py::module_::import("bascule._call_errors").attr("signature")(function.attr("__qualname__")));
    });
}

PyTypeObject* make_function_type() {
    static PyMemberDef members[] = {
        {"__vectorcalloffset__", T_PYSSIZET, offsetof(PublicFunction, vectorcall), READONLY, nullptr},
        {"__dictoffset__", T_PYSSIZET, offsetof(PublicFunction, attributes), READONLY, nullptr},
        {nullptr, 0, 0, 0, nullptr},
    };
    static PyGetSetDef attributes[] = {
        {"__dict__", PyObject_GenericGetDict, PyObject_GenericSetDict, nullptr, nullptr},
        {"__signature__", &signature_of, nullptr, nullptr, nullptr},
        {nullptr, nullptr, nullptr, nullptr, nullptr},
    };
    static PyMethodDef methods[] = {
        {"__reduce__", &reduce, METH_NOARGS, nullptr},
        {nullptr, nullptr, 0, nullptr},
    };
    PyType_Slot slots[] = {
        {Py_tp_methods, methods},
        {Py_tp_call, reinterpret_cast<void*>(&PyVectorcall_Call)},
        {Py_tp_descr_get, reinterpret_cast<void*>(&bind_to)},
        {Py_tp_repr, reinterpret_cast<void*>(&repr_of_function)},
        {Py_tp_dealloc, reinterpret_cast<void*>(&free_function)},
        {Py_tp_traverse, reinterpret_cast<void*>(&visit_members)},
        {Py_tp_clear, reinterpret_cast<void*>(&clear_members)},
        {Py_tp_members, members},
        {Py_tp_getset, attributes},
        {0, nullptr},
    };
    PyType_Spec spec = {"bascule.function", static_cast<int>(sizeof(PublicFunction)), 0,
                        Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL |
                            Py_TPFLAGS_METHOD_DESCRIPTOR | Py_TPFLAGS_DISALLOW_INSTANTIATION |
                            Py_TPFLAGS_IMMUTABLETYPE,  // else CPython does not specialise `object.method`
                        slots};
    return reinterpret_cast<PyTypeObject*>(owned(PyType_FromSpec(&spec)).release().ptr());
}

/// Replaces a pybind11 function in the dict of the module or of a class with one that describes errors.
void describe_errors_of(py::handle owner, const std::string& name, py::handle value) {
    PyObject* function = value.ptr();
    if (PyInstanceMethod_Check(function)) function = PyInstanceMethod_GET_FUNCTION(function);
    if (!PyCFunction_CheckExact(function) || name.starts_with("_pybind11")) return;
    const py::object described = wrap(py::reinterpret_borrow<py::object>(function), true);
    described.attr("__qualname__") =
        PyType_Check(owner.ptr()) ? py::str("{}.{}").format(owner.attr("__name__"), name) : py::str(name);
    owner.attr(name.c_str()) = described;
}

/// tp_init of classes whose objects only Bascule makes.
int refuse_to_make(PyObject* self, PyObject*, PyObject*) noexcept {
    static constexpr std::pair<std::string_view, const char*> makers[] = {
        {"bascule.DeviceArray", "bascule.device_array(shape, dtype) or bascule.to_device(x)"},
        {"bascule.Device", "bascule.device(0)"},
        {"bascule.Stream", "bascule.stream()"},
        {"bascule.Event", "bascule.event()"},
        {"bascule.Module", "bascule.compile(text)"},
        {"bascule.Kernel", "bascule.compile(text).name"},
        {"bascule.MemoryPool", "bascule.memory_pool()"},
    };
    const char* const name = Py_TYPE(self)->tp_name;
    const auto maker =
        std::ranges::find(makers, std::string_view(name), [](const auto& each) { return each.first; });
    const std::string how = maker == std::end(makers)
                                ? fmt::format("Bascule's functions return such objects; see help({})", name)
                                : fmt::format("{} makes one", maker->second);
    PyErr_Format(PyExc_TypeError, "%s is not called: %s", name, how.c_str());
    return -1;
}

/// tp_alloc of Bascule's classes. pybind11 does not check its result for null.
PyObject* allocate_or_throw(PyTypeObject* type, Py_ssize_t items) {
    PyObject* const made = PyType_GenericAlloc(type, items);
    if (made == nullptr) throw py::error_already_set();
    return made;
}

/// tp_new of Bascule's classes, of classes derived from them, and of their common base, which has no objects of its
/// own. pybind11's tp_new would throw through Python's C code.
PyObject* new_object(PyTypeObject* type, PyObject*, PyObject*) noexcept {
    return guarded([&] {
        if (reinterpret_cast<PyObject*>(type) == py::detail::get_internals().instance_base) {
            throw py::type_error(
                fmt::format("{} is the base of Bascule's classes and has no objects", type->tp_name));
        }
        auto made = owned(PyType_GenericAlloc(type, 0));
        reinterpret_cast<py::detail::instance*>(made.ptr())->allocate_layout();
        return made;
    });
}

/// Called when pybind11 would allocate memory for an object without a value.
void* refuse_memory(std::size_t) {
    throw py::type_error(
        "the object was never initialised: it was made by __new__ alone. Call its class, or the function "
        "that returns such objects.");
}

}  // namespace

void describe_call_errors(const py::module_& module) {
    // This base belongs to Bascule alone: PYBIND11_STDLIB keeps it separate from other pybind11 modules.
    reinterpret_cast<PyTypeObject*>(py::detail::get_internals().instance_base)->tp_new = &new_object;
    for (const auto& [name, value] : copy_of(module.attr("__dict__"))) {
        describe_errors_of(module, name.cast<std::string>(), value);
        if (!py::isinstance<py::type>(value)) continue;
        for (const auto& [member, function] : py::dict(value.attr("__dict__"))) {
            describe_errors_of(value, member.cast<std::string>(), function);
        }
        auto* const type = reinterpret_cast<PyTypeObject*>(value.ptr());
        if (py::detail::type_info* info = py::detail::get_type_info(type)) {
            info->operator_new = &refuse_memory;
            type->tp_alloc = &allocate_or_throw;
            type->tp_new = &new_object;
        }
        if (PyType_HasFeature(type, Py_TPFLAGS_HEAPTYPE) &&
            type->tp_init == &py::detail::pybind11_object_init) {
            type->tp_init = &refuse_to_make;
        }
    }
}

void bind_public_functions(py::module_& module) {
    function_type = make_function_type();
    module.def("_public", [](const py::object& function) { return make_public(function, py::none()); });
    module.def("_public_with", [](const py::dict& results) {
        return py::cpp_function(
            [results](const py::object& function) { return make_public(function, results); });
    });
}

}  // namespace bascule::python
