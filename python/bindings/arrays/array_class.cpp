#include "arrays/array_class.hpp"

#include <cstddef>

#include "arrays/allocator.hpp"
#include "arrays/array_creation.hpp"
#include "arrays/array_elements.hpp"
#include "arrays/array_host.hpp"
#include "arrays/array_indexing.hpp"
#include "arrays/array_object.hpp"
#include "arrays/array_refusals.hpp"
#include "arrays/array_repr.hpp"
#include "arrays/array_shape.hpp"
#include "arrays/array_transfer.hpp"
#include "arrays/mask.hpp"
#include "context/pointer_attributes.hpp"
#include "exchange/array_export.hpp"
#include "exchange/array_import.hpp"
#include "exchange/dlpack_export.hpp"
#include "exchange/dlpack_table.hpp"
#include "values/numpy_values.hpp"

namespace py = pybind11;

namespace bascule::python {
namespace {

std::size_t length(const ArrayObject& array) {
    if (array.view.ndim() == 0) throw py::type_error("len() of a 0-dimensional array");
    return static_cast<std::size_t>(array.view.shape[0]);
}

}  // namespace

void bind_arrays(py::module_& module) {
    ArrayClass type(module, "DeviceArray", py::is_final(), R"(An array in memory that a device uses.

Made by `to_device`, `device_array`, `pinned_array`, `managed_array` and `as_cuda_array`, and by indexing another one, which gives a
view. Exports `__cuda_array_interface__` (version 3) with its bound stream, so that CuPy, PyTorch, Numba and others take it without a
copy. What it does to its elements (`astype`, `copy`, `fill`, assignment, copies to and from the host) is enqueued on the bound
stream, or on the one that is given, and ordered with the other on the device.

It is a place for data, not a library of mathematics: arithmetic and comparisons raise TypeError and name CuPy, iteration and truth
raise it and name `copy_to_host`. `==` compares identity, as for Numba's device arrays, and arrays can be keys of a dict. `repr`
shows the values, for which it waits for the bound stream.

>>> import numpy as np, bascule
>>> x = bascule.to_device(np.arange(6, dtype="f4").reshape(2, 3))
>>> x[:, ::2].T.copy_to_host()
array([[0., 3.],
       [2., 5.]], dtype=float32))");
    type.def_property_readonly("shape", [](const ArrayObject& self) { return to_tuple(self.view.shape); })
        .def_property_readonly(
            "strides", [](const ArrayObject& self) { return to_tuple(self.view.strides); },
            "Bytes to skip to the next element along each axis.")
        .def_property_readonly("dtype", [](const ArrayObject& self) { return numpy_dtype(self.view); })
        .def_property_readonly("ndim", [](const ArrayObject& self) { return self.view.ndim(); })
        .def_property_readonly(
            "size", [](const ArrayObject& self) { return self.view.size; }, "Elements.")
        .def_property_readonly(
            "itemsize", [](const ArrayObject& self) { return self.view.dtype.itemsize; }, "Bytes an element.")
        .def_property_readonly(
            "nbytes", [](const ArrayObject& self) { return self.view.size * self.view.dtype.itemsize; },
            "Bytes of all elements, without gaps between them.")
        .def_property_readonly("c_contiguous", [](const ArrayObject& self) { return self.view.c_contiguous; })
        .def_property_readonly("f_contiguous", [](const ArrayObject& self) { return self.view.f_contiguous; })
        .def_property_readonly("readonly", [](const ArrayObject& self) { return self.view.readonly; })
        .def_property_readonly(
            "stream", [](const ArrayObject& self) { return self.stream; },
            "The bound stream, or None for a view made with sync=False.")
        .def_property_readonly("device", [](const ArrayObject& self) { return self.device; })
        .def("__len__", &length)
        .def("__repr__", &repr_of_array);
    register_array_type(type);
    bind_masks(module, type);
    bind_dlpack_export(type);
    bind_exchange_table(type);
    bind_array_indexing(type);
    bind_array_shape(type);
    bind_array_elements(type);
    bind_array_transfer(type);
    bind_array_host(type);
    bind_array_export(module, type);
    bind_array_refusals(type);
    bind_array_creation(module);
    bind_array_import(module);
    bind_allocator(module);
    bind_pointer_attributes(module);
}

}  // namespace bascule::python
