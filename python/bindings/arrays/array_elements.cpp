#include "arrays/array_elements.hpp"

#include <bascule/interface/arrays/array_views.hpp>
#include <bascule/interface/errors/rejection.hpp>
#include <bascule/runtime/elementwise/elementwise.hpp>

#include "arrays/array_creation.hpp"
#include "arrays/mask.hpp"
#include "context/stream_object.hpp"
#include "parts.hpp"
#include "support/owners.hpp"
#include "support/toolkit.hpp"
#include "values/numpy_values.hpp"

namespace bascule::python {
namespace {

const ArrayObject& held(const py::object& array) { return array.cast<const ArrayObject&>(); }

/// Calls `operation(stream, destination, source, owners)` without the GIL. Both arrays are kept until it is done.
template <class Operation>
void enqueue(const py::object& destination, const py::object& source, StreamRef stream,
             const Operation& operation) {
    prepare_toolkit();
    OwnerList owners;
    const ArrayView& to = held(destination).view;
    ArrayView from = held(source).view;
    if (!(held(source).device == stream.device())) from.stream.device = held(source).device.ordinal();
    keep_array(owners, destination.ptr(), held(destination));
    if (!source.is(destination)) keep_array(owners, source.ptr(), held(source));
    const GilReleased released;
    operation(stream, to, from, owners.transfer());
}

[[noreturn]] void fail_conversion(const ArrayView& from, const py::object& dtype) {
    const std::string source = py::str(numpy_dtype(from));
    const std::string target = py::str(dtype);
    if (from.dtype.kind == DType::Kind::complex) {
        reject(ErrorKind::type, {.field = "dtype", .got = target},
               "astype from {} to {} would drop the imaginary parts. For the real parts use "
               "x.reshape(*x.shape, 1).view(\"f{}\")[..., 0] of a contiguous x.",
               source, target, from.dtype.itemsize / 2);
    }
    reject(ErrorKind::type, {.field = "dtype", .got = target},
           "astype converts numbers and bools, not {} to {}. Convert on the host: "
           "bascule.to_device(x.copy_to_host().astype(...)); or x.view(dtype) reinterprets the bytes.",
           source, target);
}

py::object as_type(const py::object& self, const py::object& dtype, const py::object& stream) {
    const ArrayObject& array = held(self);
    const py::object element = to_dtype(dtype);
    const bool fortran = keeps_fortran(array.view);
    if (element.equal(numpy_dtype(array.view))) return py::cast(packed(self, fortran, stream));
    const DType to = dtype_of(element);
    if (array.view.layout != nullptr || !can_convert(array.view.dtype, to)) {
        fail_conversion(array.view, element);
    }
    ArrayObject converted = allocate({.shape = array.view.shape, .dtype = to, .fortran = fortran},
                                     array.device, stream_object_for(array, stream));
    share_mask(converted, array);
    py::object result = py::cast(std::move(converted));
    enqueue(result, self, stream_for(array, stream), &convert_elements);
    return result;
}

ArrayObject copy(const py::object& self, const std::string& order, const py::object& stream) {
    require_order(order, "CFK");
    return packed(self, order == "F" || (order == "K" && keeps_fortran(held(self).view)), stream);
}

/// Converts the value to one element with NumPy, by its rules and with its errors.
py::object element_of(const ArrayView& view, const py::object& value) {
    const py::object dtype = numpy_dtype(view);
    py::object element = numpy().attr("zeros")(py::tuple(), "dtype"_a = dtype);
    const py::object converted = cast_values(as_opaque(value, dtype, {}), dtype);
    const py::tuple shape = numpy().attr("shape")(converted);
    if (!shape.empty()) {
        reject_field(ErrorKind::value, "value",
                     "every element is set to one value, got an array of shape {}. To broadcast it use "
                     "x[...] = values.",
                     std::string(py::str(shape)));
    }
    element[py::tuple()] = converted;
    return element;
}

/// Fills with elements larger than a kernel parameter: copies one to the device, and from there to the others.
void fill_by_copy(const py::object& self, const py::object& element, const py::object& stream) {
    ArrayObject one = to_device(element, held(self).device, stream_object_for(held(self), stream));
    one.view.shape = one.view.strides = held(self).view.shape;
    for (int d = 0; d < one.view.ndim(); ++d) one.view.strides[d] = 0;
    one.view.size = held(self).view.size;
    enqueue(self, py::cast(std::move(one)), stream_for(held(self), stream), &copy_elements);
}

bool may_overlap(const ArrayView& a, const ArrayView& b) {
    if (a.empty() || b.empty()) return false;
    const auto [a_low, a_high] = bytes_of(a);
    const auto [b_low, b_high] = bytes_of(b);
    return a_low < b_high && b_low < a_high;
}

[[noreturn]] void fail_assignment(const ArrayView& to, const ArrayView& from) {
    reject(ErrorKind::value, {.field = "value", .got = describe(from)},
           "cannot assign {} to elements of {}: only numbers are converted.", describe(from),
           std::string(py::str(numpy_dtype(to))));
}

/// A view of the array, broadcast to the shape of the destination.
py::object broadcast(const py::object& source, const Dimensions& shape) {
    const ArrayObject& array = held(source);
    ArrayView values = array.view;
    values.mask = nullptr;  // assignment does not copy the mask
    return py::cast(view_of(array, broadcast_to(values, shape)));
}

/// The stream for work on the array's own device.
py::object home_stream(const ArrayObject& array) {
    if (array.view.stream) return array.stream;
    return py::cast(StreamObject{nullptr, StreamRef::device_default(array.device), py::none()});
}

/// Copies between devices. Kernels cannot read another device's memory; the driver copies it, but only contiguous arrays.
void copy_between_devices(const py::object& array, const py::object& source, const py::object& stream) {
    const ArrayObject& to = held(array);
    const ArrayObject& from = held(source);
    const py::object there = stream_object_for(to, stream, &from);
    const StreamRef chosen = there.cast<StreamObject&>().ref;
    if (to.view.c_contiguous && from.view.c_contiguous) {
        enqueue(array, source, chosen, &copy_elements);
        return;
    }
    const py::object sent =
        from.view.c_contiguous ? source : py::cast(packed(source, false, home_stream(from)));
    if (to.view.c_contiguous) {
        enqueue(array, sent, chosen, &copy_elements);
        return;
    }
    const py::object received = py::cast(allocate(ArrayPlan::like(to.view), to.device, there));
    enqueue(received, sent, chosen, &copy_elements);
    enqueue(array, received, chosen, &copy_elements);
}

}  // namespace

ArrayObject packed(const py::object& source, bool fortran, const py::object& stream) {
    const ArrayObject& array = held(source);
    ArrayObject result =
        allocate(ArrayPlan::like(array.view, fortran), array.device, stream_object_for(array, stream));
    share_mask(result, array);
    const py::object kept = py::cast(result);
    enqueue(kept, source, stream_for(array, stream), &copy_elements);
    return result;
}

void fill(const py::object& self, const py::object& value, const py::object& stream) {
    const ArrayObject& array = held(self);
    require_writable(array);
    const py::object element = element_of(array.view, value);
    if (array.view.dtype.itemsize > largest_fill) {
        fill_by_copy(self, element, stream);
        return;
    }
    const std::string bytes = py::bytes(element.attr("tobytes")());
    enqueue(self, self, stream_for(array, stream),
            [&](StreamRef on, const ArrayView& to, const ArrayView&, const Owners& owners) {
                fill_elements(on, to, std::as_bytes(std::span(bytes)), owners);
            });
}

void copy_on_device(const py::object& array, const py::object& source, const py::object& stream) {
    const ArrayView& to = held(array).view;
    const py::object dtype = numpy_dtype(to);
    const bool converts = !dtype.equal(numpy_dtype(held(source).view));
    if (converts) {
        require_same_kind(numpy_dtype(held(source).view), dtype);
        if (!can_convert(held(source).view.dtype, to.dtype)) fail_assignment(to, held(source).view);
    }
    const py::object repeated = broadcast(source, to.shape);
    if (!(held(array).device == held(source).device)) {
        const py::object converted =
            converts ? broadcast(as_type(source, dtype, home_stream(held(source))), to.shape) : repeated;
        return copy_between_devices(array, converted, stream);
    }
    const py::object chosen = stream_object_for(held(array), stream, &held(source));
    const bool overlap = may_overlap(to, held(source).view);
    const py::object apart =
        overlap ? broadcast(py::cast(packed(source, false, chosen)), to.shape) : repeated;
    enqueue(array, apart, chosen.cast<StreamObject&>().ref, converts ? &convert_elements : &copy_elements);
}

namespace {

/// Fills a new array in the order of its stream.
py::object filled(ArrayObject array, const py::object& value) {
    const py::object stream = array.stream;
    py::object result = py::cast(std::move(array));
    fill(result, value, stream);
    return result;
}

/// Like NumPy's `zeros` or `ones`. The element comes from NumPy, so that structures work too.
template <bool is_zero>
py::object new_constant(const py::object& shape, const py::object& dtype, const std::string& order,
                        const py::object& stream) {
    const py::object one = numpy().attr(is_zero ? "zeros" : "ones")(py::tuple(), "dtype"_a = to_dtype(dtype));
    return filled(new_array(MemoryKind::device, shape, dtype, order, stream), one);
}

py::object zeros_like(const py::object& array, const py::object& stream) {
    ArrayObject result = new_array_like(array, stream);
    const py::object zero = numpy().attr("zeros")(py::tuple(), "dtype"_a = numpy_dtype(result.view));
    return filled(std::move(result), zero);
}

py::object full(const py::object& shape, const py::object& value, const py::object& dtype,
                const std::string& order, const py::object& stream) {
    const py::object element =
        dtype.is_none() ? py::object(numpy().attr("asarray")(value).attr("dtype")) : dtype;
    return filled(new_array(MemoryKind::device, shape, element, order, stream), value);
}

}  // namespace

void bind_array_elements(ArrayClass& type) {
    type.def(
            "astype", &as_type, "dtype"_a, py::kw_only(), "stream"_a = py::none(),
            R"(Convert every element to `dtype` in a new array, after all work enqueued on the bound stream. Does not wait.

dtype : numpy.dtype or anything that makes one: a number or bool. As in NumPy, floats are truncated toward zero, integers wrap, and
nonzero is True; a float outside the integer type's range gives an unspecified value. Complex converts to complex and bool only.
stream : where the operation is enqueued, and the stream of the new array; None means the current stream, else the bound stream.

The first use compiles a kernel, which the cache keeps.

>>> import numpy as np, bascule
>>> bascule.to_device(np.array([1.7, -1.7])).astype("i4").copy_to_host()
array([ 1, -1], dtype=int32))")
        .def("copy", &copy, "order"_a = "C", py::kw_only(), "stream"_a = py::none(),
             R"(Copy the elements to a new array, after all work enqueued on the bound stream. Does not wait.

order : 'C', 'F', or 'K': Fortran order if the array has that, else C.
stream : where the operation is enqueued, and the stream of the new array; None means the current stream, else the bound stream.

>>> import numpy as np, bascule
>>> bascule.to_device(np.arange(6).reshape(2, 3))[:, ::2].copy().strides
(16, 8))")
        .def("__copy__", [](const py::object& self) { return self.attr("copy")("K"); })
        .def(
            "__deepcopy__", [](const py::object& self, const py::object&) { return self.attr("copy")("K"); },
            "memo"_a)
        .def("fill", &fill, "value"_a, py::kw_only(), "stream"_a = py::none(),
             R"(Set every element to `value`, after all work enqueued on the bound stream. Does not wait.

value : anything that NumPy can assign to one element of this dtype; numbers are converted as in `x[...] = value`.
stream : where the operation is enqueued; None means the current stream, else the bound stream.

>>> import numpy as np, bascule
>>> x = bascule.device_array(3, "f4")
>>> x.fill(1.5)
>>> x.copy_to_host()
array([1.5, 1.5, 1.5], dtype=float32))");
}

void bind_filled_arrays(py::module_& module) {
    module.def(
        "zeros", &new_constant<true>, "shape"_a, "dtype"_a = "float64", py::kw_only(), "order"_a = "C",
        "stream"_a = py::none(),
        R"(Create a DeviceArray of zeros, in the order of `stream`. Does not wait. Parameters as for `device_array`.

>>> import bascule
>>> bascule.zeros(3, "i4").copy_to_host()
array([0, 0, 0], dtype=int32))");
    module.def(
        "ones", &new_constant<false>, "shape"_a, "dtype"_a = "float64", py::kw_only(), "order"_a = "C",
        "stream"_a = py::none(),
        R"(Create a DeviceArray of ones, in the order of `stream`. Does not wait. Parameters as for `device_array`.

>>> import bascule
>>> bascule.ones(2, "f4").copy_to_host()
array([1., 1.], dtype=float32))");
    module.def(
        "zeros_like", &zeros_like, "array"_a, py::kw_only(), "stream"_a = py::none(),
        R"(Create a DeviceArray of zeros with the shape, dtype and order of another array. Parameters as for `device_array_like`.

>>> import numpy as np, bascule
>>> bascule.zeros_like(np.arange(2)).copy_to_host()
array([0, 0]))");
    module.def(
        "full", &full, "shape"_a, "value"_a, "dtype"_a = py::none(), py::kw_only(), "order"_a = "C",
        "stream"_a = py::none(),
        R"(Create a DeviceArray with every element set to `value`, in the order of `stream`. Does not wait.

shape, order, stream : as for `device_array`.
value : a number, or anything that NumPy can assign to one element of this dtype.
dtype : None means NumPy's dtype of the value: float64 for 1.5, int64 for 3.

>>> import bascule
>>> bascule.full(2, 1.5, "f4").copy_to_host()
array([1.5, 1.5], dtype=float32))");
}

}  // namespace bascule::python
