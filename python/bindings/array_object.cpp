#include "array_object.hpp"

#include <optional>
#include <string>

#include <fmt/format.h>

#include "array_creation.hpp"
#include "array_export.hpp"
#include "array_import.hpp"
#include "array_transfer.hpp"
#include "device_object.hpp"
#include "dlpack_export.hpp"
#include "mask.hpp"
#include "numpy_values.hpp"
#include "stream_object.hpp"

namespace py = pybind11;

namespace bascule::python {
namespace {

PyTypeObject* array_type = nullptr;  // set once by bind_arrays, held by the module

std::string repr(const ArrayObject& array) {
    return fmt::format("<bascule.DeviceArray shape={} dtype={}{} on {}>",
                       bascule::to_string(array.view.shape), bascule::to_string(array.view.dtype),
                       array.view.readonly ? " read-only" : "", to_string(array.device));
}

std::size_t length(const ArrayObject& array) {
    if (array.view.ndim() == 0) throw py::type_error("len() of a 0-dimensional array");
    return static_cast<std::size_t>(array.view.shape[0]);
}

}  // namespace

py::object stream_to_bind(const py::object& stream, Device device) {
    if (py::isinstance<StreamObject>(stream)) return stream;
    const std::optional<StreamRef> given = to_stream(stream, device);
    return py::cast(StreamObject{nullptr, given.value_or(default_stream(device)), stream});
}

void bind_stream(ArrayObject& array, py::object stream) {
    array.view.has_stream = true;
    array.view.stream = stream.cast<StreamObject&>().ref.handle();
    array.stream = std::move(stream);
}

const ArrayObject* as_array(PyObject* object) noexcept {
    if (Py_TYPE(object) != array_type) return nullptr;
    // An exact instance of a pybind11 class with one base keeps its value in the first slot of the simple
    // layout.
    const auto* instance = reinterpret_cast<const py::detail::instance*>(object);
    return static_cast<const ArrayObject*>(instance->simple_value_holder[0]);
}

py::object make_array(const ArrayView& view, Device device, py::object owner) {
    ArrayObject array{view, device, nullptr, std::move(owner), py::none()};
    bind_stream(array, stream_to_bind(py::none(), device));
    return py::cast(std::move(array));
}

void bind_arrays(py::module_& module) {
    ArrayClass type(module, "DeviceArray", py::is_final(), R"(An array in device memory.

Exports `__cuda_array_interface__` (version 3) with its bound stream, so that CuPy, PyTorch, Numba and others take it without a copy.
Made by `to_device`, `device_array` and `as_cuda_array`.)");
    type.def_property_readonly("shape", [](const ArrayObject& self) { return to_tuple(self.view.shape); })
        .def_property_readonly(
            "strides", [](const ArrayObject& self) { return to_tuple(self.view.strides); },
            "Bytes to skip to the next element along each axis.")
        .def_property_readonly("dtype", [](const ArrayObject& self) { return numpy_dtype(self.view); })
        .def_property_readonly("ndim", [](const ArrayObject& self) { return self.view.ndim(); })
        .def_property_readonly(
            "size", [](const ArrayObject& self) { return self.view.size; }, "Elements.")
        .def_property_readonly(
            "nbytes", [](const ArrayObject& self) { return self.view.size * self.view.dtype.itemsize; })
        .def_property_readonly("readonly", [](const ArrayObject& self) { return self.view.readonly; })
        .def_property_readonly(
            "stream", [](const ArrayObject& self) { return self.stream; },
            "The bound stream, or None for a view made with sync=False.")
        .def_property_readonly("device", [](const ArrayObject& self) { return self.device; })
        .def("__len__", &length)
        .def("__repr__", &repr);
    bind_masks(module, type);
    array_type = reinterpret_cast<PyTypeObject*>(type.ptr());
    bind_dlpack(type);
    bind_array_transfer(type);
    bind_array_export(type);
    bind_array_creation(module);
    bind_array_import(module);
}

}  // namespace bascule::python
