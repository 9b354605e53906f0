#include "launch/call_arguments.hpp"

#include <string>

#include <fmt/format.h>
#include <pybind11/pybind11.h>

#include <bascule/interface/arguments/argument.hpp>
#include <bascule/interface/errors/error.hpp>

namespace py = pybind11;

namespace bascule::python {

UnpackedArguments::UnpackedArguments(const py::tuple& positional, const py::object& named)
    : positional_(static_cast<Py_ssize_t>(positional.size())) {
    for (const py::handle argument : positional) objects_.push_back(argument.ptr());
    if (named.is_none() || py::len(named) == 0) return;
    py::list names;
    for (const auto& [name, value] : named.cast<py::dict>()) {
        names.append(name);
        objects_.push_back(value.ptr());
    }
    names_ = py::tuple(names);
}

void order_arguments(const Signature& signature, const CallArguments& arguments, std::span<PyObject*> slots) {
    const auto positional = static_cast<std::size_t>(arguments.positional);
    PyObject* const keywords = arguments.keywords;
    const std::size_t named = keywords == nullptr ? 0 : static_cast<std::size_t>(PyTuple_GET_SIZE(keywords));
    ArgumentPack::check_count(signature, arguments.count());
    for (std::size_t i = 0; i < slots.size(); ++i) {
        slots[i] = i < positional ? arguments.objects[i] : nullptr;
    }
    for (std::size_t k = 0; k < named; ++k) {
        PyObject* keyword = PyTuple_GET_ITEM(keywords, static_cast<Py_ssize_t>(k));
        const std::string name = py::str(py::handle(keyword));
        const int index = signature.find(name);
        if (index < 0) {
            throw ArgumentError(ArgumentError::Kind::type,
                                fmt::format("kernel '{}' has no parameter '{}': {}", signature.kernel, name,
                                            bascule::to_string(signature)));
        }
        PyObject*& slot = slots[static_cast<std::size_t>(index)];
        if (slot != nullptr) {
            throw ArgumentError(ArgumentError::Kind::type,
                                fmt::format("parameter '{}' of kernel '{}' is given twice: {}", name,
                                            signature.kernel, bascule::to_string(signature)));
        }
        slot = arguments.objects[positional + k];
    }
}

}  // namespace bascule::python
