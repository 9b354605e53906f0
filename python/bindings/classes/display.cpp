// Information about Bascule's objects for IPython, help() and inspect. Computed in Python, by bascule._display.
#include <string>

#include "classes/added_method.hpp"
#include "classes/callable_object.hpp"
#include "parts.hpp"

namespace bascule::python {
namespace {

py::object ask(const std::string& function, const py::object& about) {
    return py::module_::import("bascule._display").attr(function.c_str())(about);
}

/// A descriptor for `__signature__`: an instance's own signature, or None for the class, which tells inspect that the
/// class has no signature.
struct SignatureOfInstance {};

/// Returns bascule._display's documentation for an instance, and the text itself for the class.
PyObject* get_documentation(PyObject* self, PyObject* instance, PyObject*) {
    return guarded([&] {
        if (instance != nullptr) return ask("documentation", py::reinterpret_borrow<py::object>(instance));
        return owned(PyUnicode_FromObject(self));
    });
}

/// A descriptor for `__doc__`. A subclass of str, because pydoc uses the object in the class's dict directly.
py::object documentation_type() {
    PyType_Slot slots[] = {
        {Py_tp_descr_get, reinterpret_cast<void*>(&get_documentation)},
        {0, nullptr},
    };
    PyType_Spec spec = {"bascule._bascule._DocumentationOfInstance", 0, 0, Py_TPFLAGS_DEFAULT, slots};
    return owned(PyType_FromSpecWithBases(&spec, reinterpret_cast<PyObject*>(&PyUnicode_Type)));
}

struct DisplayedClass {
    const char* name;
    bool has_lines;  ///< its `_repr_pretty_` prints other lines than its repr
    bool has_signature;
    bool has_documentation;
};

constexpr DisplayedClass displayed[] = {
    {"Kernel", true, true, true},         {"Module", true, false, false},
    {"Launcher", true, true, false},      {"BoundLaunch", true, true, false},
    {"DeviceArray", false, false, false}, {"CacheStatistics", false, false, false},
};

void print_lines(const py::object& self, const py::object& printer, bool cycle) {
    py::module_::import("bascule._display").attr("pretty")(self, printer, cycle);
}

}  // namespace

void bind_display(py::module_& module) {
    py::class_<SignatureOfInstance>(module, "_SignatureOfInstance")
        .def(py::init<>())
        .def(
            "__get__",
            [](const SignatureOfInstance&, const py::object& instance, const py::object&) -> py::object {
                if (instance.is_none()) return py::none();
                return ask("signature", instance);
            },
            "instance"_a, "owner"_a = py::none());
    module.attr("_DocumentationOfInstance") = documentation_type();
    for (const DisplayedClass& each : displayed) {
        const py::object type = module.attr(each.name);
        add_method(type, "_repr_html_", [](const py::object& self) { return ask("html", self); });
        if (each.has_lines) add_method(type, "_repr_pretty_", &print_lines, "printer"_a, "cycle"_a);
        if (each.has_signature) type.attr("__signature__") = module.attr("_SignatureOfInstance")();
        if (each.has_documentation)
            type.attr("__doc__") = module.attr("_DocumentationOfInstance")(type.attr("__doc__"));
    }
}

}  // namespace bascule::python
