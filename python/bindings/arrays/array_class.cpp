// The Python class bascule.DeviceArray, assembled from its parts, and the functions that make arrays.
#include <cstddef>
#include <functional>

#include <bascule/runtime/streams/stream_capture.hpp>

#include "arrays/array_object.hpp"
#include "parts.hpp"
#include "support/gil.hpp"
#include "values/numpy_values.hpp"

namespace bascule::python {
namespace {

/// A property that returns a member of the view.
template <auto member>
auto of_view(const ArrayObject& array) {
    return std::invoke(member, array.view);
}
template <auto member>
py::tuple extents_of_view(const ArrayObject& array) {
    return to_tuple(array.view.*member);
}

std::size_t length(const ArrayObject& array) {
    if (array.view.ndim() == 0) throw py::type_error("len() of a 0-dimensional array");
    return static_cast<std::size_t>(array.view.shape[0]);
}

/// Whether the stream on which the array would be read now is being captured.
bool is_captured(const ArrayObject& array) {
    const StreamRef stream = stream_for(array, py::none());
    const GilReleased released;
    const ContextGuard context(stream.context());
    return is_capturing(stream);
}

}  // namespace

void bind_arrays(py::module_& module) {
    ArrayClass type(module, "DeviceArray", py::is_final(), collected<ArrayObject>(),
                    R"(An array in device, pinned or managed memory.

Created by `to_device`, `device_array`, `pinned_array`, `managed_array` and `as_cuda_array`. Indexing returns a view of the same
memory. Exports `__cuda_array_interface__` (version 3) with its bound stream, and `__dlpack__`, so that CuPy, PyTorch, Numba and others
use it without a copy. Operations on its elements (`astype`, `copy`, `fill`, assignment, copies to and from the host) are enqueued on
the bound stream, or on the stream that is given, which then waits for the bound stream on the device, and the bound stream for it.

Views, DLPack capsules, `export` and enqueued work keep the memory alive. Any thread may use an array; threads that write the same
elements must order their work themselves.

It has no arithmetic: operators and comparisons, `==` too, raise a TypeError that says what to use instead; so do
iteration and truth value. Arrays can be dict keys, by identity. `repr` shows the values and waits for the bound stream.

>>> import numpy as np, bascule
>>> x = bascule.to_device(np.arange(6, dtype="f4").reshape(2, 3))
>>> x[:, ::2].T.copy_to_host()
array([[0., 3.],
       [2., 5.]], dtype=float32))");
    type.def_property_readonly("shape", &extents_of_view<&ArrayView::shape>, "Elements along each axis.")
        .def_property_readonly("strides", &extents_of_view<&ArrayView::strides>,
                               "Bytes from one element to the next along each axis.")
        .def_property_readonly(
            "dtype", [](const ArrayObject& self) { return numpy_dtype(self.view); },
            "The numpy.dtype of the elements.")
        .def_property_readonly("ndim", &of_view<&ArrayView::ndim>, "Number of axes.")
        .def_property_readonly("size", &of_view<&ArrayView::size>, "Number of elements.")
        .def_property_readonly(
            "itemsize", [](const ArrayObject& self) { return self.view.dtype.itemsize; },
            "Bytes per element.")
        .def_property_readonly(
            "nbytes", [](const ArrayObject& self) { return self.view.size * self.view.dtype.itemsize; },
            "Bytes of all elements, without gaps between them.")
        .def_property_readonly("c_contiguous", &of_view<&ArrayView::c_contiguous>,
                               "True when the elements are contiguous in C order.")
        .def_property_readonly("f_contiguous", &of_view<&ArrayView::f_contiguous>,
                               "True when the elements are contiguous in Fortran order.")
        .def_property_readonly("readonly", &of_view<&ArrayView::readonly>,
                               "True when neither kernels nor copies may write to it.")
        .def_readonly("stream", &ArrayObject::stream,
                      "The bound Stream, or None for a view created with sync=False.")
        .def_property_readonly(
            "device", [](const ArrayObject& self) { return self.device; }, "The Device that uses the memory.")
        .def("__len__", &length)
        .def("__repr__", [](const py::object& self) {
            return py::str(py::module_::import("bascule._array_repr").attr("repr_of")(self));
        });
    module.def("_is_captured", &is_captured);
    register_array_type(type);
    bind_masks(module, type);
    bind_dlpack_export(type);
    bind_exchange_table(type);
    bind_array_indexing(type);
    bind_array_shape(type);
    bind_array_elements(type);
    bind_array_transfer(type);
    bind_array_export(module, type);
    bind_array_refusals(type);
    bind_array_creation(module);
    bind_filled_arrays(module);
    bind_array_import(module);
    bind_allocator(module);
    bind_pointer_attributes(module);
}

}  // namespace bascule::python
