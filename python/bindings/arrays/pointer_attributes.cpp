// `bascule.pointer_attributes`: the driver's information about an array's memory.

#include <bascule/interface/errors/rejection.hpp>
#include <bascule/interface/errors/wording.hpp>
#include <bascule/runtime/driver/pointer_attributes.hpp>

#include "arrays/array_object.hpp"
#include "context/device_object.hpp"
#include "exchange/interface_reader.hpp"
#include "parts.hpp"
#include "support/attributes.hpp"
#include "support/integers.hpp"
#include "support/names.hpp"
#include "values/numpy_values.hpp"

namespace bascule::python {
namespace {

/// Returns an integer address, or the address of an array's first byte.
std::uint64_t pointed_address(const py::object& object) {
    if (PyLong_Check(object.ptr()) != 0 && PyBool_Check(object.ptr()) == 0) {
        if (const auto address = to_uint64(object)) return *address;
        reject_field(ErrorKind::value, "object", "`object` must be an address from 0 to 2**64 - 1, got {}.",
                     shortened(std::string(py::str(object))));
    }
    if (const ArrayObject* array = as_array(object.ptr())) return array->view.pointer;
    std::string absence;
    if (const auto array = read_interface(object.ptr(), absence)) return array->view.pointer;
    if (has_attribute(object.ptr(), names().array_interface)) return host_view(object).pointer;
    reject_field(ErrorKind::type, "object",
                 "pointer_attributes takes an address, or an array with __cuda_array_interface__ or "
                 "__array_interface__, got an object of type {}.",
                 Py_TYPE(object.ptr())->tp_name);
}

PointerAttributes attributes_of(const py::object& object) {
    const Device device = current_device();
    const std::uint64_t address = pointed_address(object);
    if (const auto found = without_gil([&] { return pointer_attributes(address, device); })) return *found;
    reject(ErrorKind::value, {.field = "object", .got = fmt::format("{:#x}", address)},
           "no device can use the memory at {:#x}: it is ordinary host memory, was freed, belongs to an "
           "empty array, or is not an address.",
           address);
}

std::string repr_of_attributes(const PointerAttributes& found) {
    return fmt::format("<bascule.PointerAttributes {} memory at {:#x} of device {}, in {} bytes from {:#x}>",
                       to_string(found.kind), found.device_address, found.device, found.allocation_bytes,
                       found.allocation_address);
}

}  // namespace

void bind_pointer_attributes(py::module_& module) {
    py::class_<PointerAttributes>(module, "PointerAttributes", "What the driver knows of an address.")
        .def_property_readonly(
            "kind", [](const PointerAttributes& self) { return to_string(self.kind); },
            "'device'; 'pool' (device memory of a stream-ordered pool); 'pinned' (host memory with the same "
            "address on host and device); 'mapped' (host memory with another address on the device); "
            "'managed'.")
        .def_readonly("device", &PointerAttributes::device, "The device's ordinal.")
        .def_property_readonly(
            "context",
            [](const PointerAttributes& self) {
                return self.context == 0 ? std::nullopt : std::optional(self.context);
            },
            "The CUcontext as an integer, or None, as for memory of a pool.")
        .def_readonly("device_address", &PointerAttributes::device_address, "The address that kernels use.")
        .def_readonly("host_address", &PointerAttributes::host_address,
                      "The address that the host uses, or None.")
        .def_property_readonly(
            "allocation",
            [](const PointerAttributes& self) {
                return py::make_tuple(self.allocation_address, self.allocation_bytes);
            },
            "(address, bytes) of the allocation that contains the address.")
        .def("__repr__", &repr_of_attributes);
    module.def("pointer_attributes", &attributes_of, "object"_a,
               R"(What the driver knows of an address, or of the first byte of an array.

object : an integer address, or anything with `__cuda_array_interface__` or (in pinned memory) `__array_interface__`.

Raises ValueError for memory that no device can use. Does not wait.

>>> import bascule
>>> bascule.pointer_attributes(bascule.pinned_array(4, "f4")).kind
'pinned')");
}

}  // namespace bascule::python
