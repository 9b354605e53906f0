// NumPy's views of a DeviceArray in pinned or managed memory; device memory is refused.
#include <cstdint>

#include "arrays/array_export.hpp"
#include "arrays/array_object.hpp"
#include "parts.hpp"
#include "support/gil.hpp"
#include "support/rejection.hpp"
#include "values/dtype_object.hpp"
#include "values/numpy_values.hpp"

namespace py = pybind11;
using namespace py::literals;

namespace bascule::python {
namespace {

bool host_accessible(const ArrayObject& array) noexcept {
    return array.buffer != nullptr && array.buffer->kind() != MemoryKind::device;
}

/// The first element as the host addresses it.
std::uint64_t host_address(const ArrayObject& array) noexcept {
    if (array.view.empty()) return 0;
    return reinterpret_cast<std::uintptr_t>(array.buffer->host()) +
           (array.view.pointer - array.buffer->address());
}

/// NumPy reads the attribute; AttributeError means that there is none.
py::dict array_interface(const ArrayObject& array) {
    if (!host_accessible(array)) {
        throw py::attribute_error(
            "a DeviceArray in device memory has no __array_interface__, because the host cannot read it. Use "
            "x.copy_to_host().");
    }
    if (array.buffer->kind() == MemoryKind::managed) {
        const GilReleased released;
        wait_for_managed_memory(array.device);
    }
    py::dict fields = interface_of(array.view);
    fields["data"] = py::make_tuple(host_address(array), array.view.readonly);
    return fields;
}

py::object to_array(const py::object& self, const py::object& dtype, const py::object& copy) {
    if (!host_accessible(self.cast<const ArrayObject&>())) {
        reject(ErrorKind::type,
               "a DeviceArray is not converted to a NumPy array implicitly, because that copies and waits: "
               "use x.copy_to_host(). For a copy on the device use x.copy().");
    }
    const py::object host = numpy().attr("asarray")(self);  // by the interface above, without a copy
    if (copy.is_none()) return numpy().attr("asarray")(host, "dtype"_a = dtype);
    return numpy().attr("array")(host, "dtype"_a = dtype, "copy"_a = copy);
}

}  // namespace

void bind_array_host(ArrayClass& type) {
    type.def_property_readonly(
            "__array_interface__", &array_interface,
            "NumPy's array interface of a pinned or managed array. Raises AttributeError for device memory.")
        .def("__array__", &to_array, "dtype"_a = py::none(), py::kw_only(), "copy"_a = py::none(),
             "For numpy.asarray: a view of a pinned or managed array. Raises TypeError for device memory.")
        .def_property_readonly("host_accessible", &host_accessible,
                               "True for pinned and managed arrays, which NumPy can view.");
}

}  // namespace bascule::python
