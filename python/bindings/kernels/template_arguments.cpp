#include "kernels/template_arguments.hpp"

#include <bascule/interface/arguments/argument_value.hpp>
#include <bascule/interface/errors/rejection.hpp>
#include <bascule/interface/types/dtype.hpp>

#include "support/integers.hpp"

namespace bascule::python {
namespace {

[[noreturn]] void fail(const std::string& label, py::handle value) {
    reject(ErrorKind::type,
           "the template argument {} is {}; it must be C++ text (\"float\", \"ns::Point\"), an integer, a "
           "bool, or a NumPy dtype.",
           label, std::string(py::repr(value)));
}

/// The C++ type of a NumPy dtype or scalar type; empty for other objects.
std::string type_of_dtype(py::handle value) {
    py::handle modules(PyImport_GetModuleDict());
    if (!modules.contains("numpy")) return {};  // without NumPy, no value is of its types
    const py::object numpy = modules["numpy"];
    const bool is_dtype = py::isinstance(value, numpy.attr("dtype"));
    const bool is_scalar_type =
        PyType_Check(value.ptr()) != 0 && PyObject_IsSubclass(value.ptr(), numpy.attr("generic").ptr()) == 1;
    if (!is_dtype && !is_scalar_type) return {};
    const py::object dtype = numpy.attr("dtype")(value);
    return std::string(element_name(parse_typestr(std::string(py::str(dtype.attr("str"))))));
}

std::string argument_text(const std::string& label, py::handle value) {
    if (PyUnicode_Check(value.ptr()) != 0) return value.cast<std::string>();
    if (PyBool_Check(value.ptr()) != 0) return value.is(py::bool_(true)) ? "true" : "false";
    std::string type = type_of_dtype(value);
    if (!type.empty()) return type;
    if (PyType_Check(value.ptr()) != 0 || PyIndex_Check(value.ptr()) == 0) fail(label, value);
    return py::str(to_int(value));
}

}  // namespace

TemplateArguments to_template_arguments(const py::args& positional, const py::kwargs& named) {
    TemplateArguments arguments;
    for (std::size_t i = 0; i < positional.size(); ++i) {
        arguments.positional.push_back(argument_text(std::to_string(i + 1), positional[i]));
    }
    for (auto [name, value] : named) {
        const std::string text = py::str(name);
        arguments.named.emplace_back(text, argument_text("'" + text + "'", value));
    }
    return arguments;
}

TemplateArguments to_template_arguments(py::handle instance) {
    if (PyDict_Check(instance.ptr()) != 0) {
        return to_template_arguments(py::args(), py::reinterpret_borrow<py::kwargs>(instance));
    }
    if (PyTuple_Check(instance.ptr()) != 0) {
        return to_template_arguments(py::reinterpret_borrow<py::args>(instance), py::kwargs());
    }
    return to_template_arguments(py::args(py::make_tuple(instance)), py::kwargs());
}

}  // namespace bascule::python
