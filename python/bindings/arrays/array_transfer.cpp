#include "arrays/array_transfer.hpp"

#include <bascule/interface/errors/rejection.hpp>
#include <bascule/runtime/memory/memory.hpp>
#include <bascule/runtime/streams/stream_capture.hpp>

#include "arrays/array_creation.hpp"
#include "arrays/array_elements.hpp"
#include "arrays/mask.hpp"
#include "context/stream_object.hpp"
#include "parts.hpp"
#include "support/owners.hpp"
#include "values/numpy_values.hpp"

namespace bascule::python {
namespace {

bool flag(const py::object& host, const char* name) {
    return py::object(host.attr("flags").attr(name)).cast<bool>();
}

/// Returns `out` as a NumPy array that can be filled.
py::object checked_out(const py::object& out, const ArrayView& view) {
    const bool is_host = py::isinstance(out, numpy().attr("ndarray"));
    if (!is_host && as_array(out.ptr()) == nullptr) {
        reject_field(ErrorKind::type, "out",
                     "`out` must be a numpy.ndarray, or a pinned or managed array; got an object of type {}.",
                     Py_TYPE(out.ptr())->tp_name);
    }
    py::object host = is_host ? out : py::object(numpy().attr("asarray")(out));
    if (!py::object(host.attr("shape")).equal(to_tuple(view.shape)) ||
        !py::object(host.attr("dtype")).equal(numpy_dtype(view))) {
        reject_field(ErrorKind::value, "out",
                     "`out` must be an array of shape {} and dtype {}, got shape {} and dtype {}.",
                     bascule::to_string(view.shape), std::string(py::str(numpy_dtype(view))),
                     std::string(py::str(host.attr("shape"))), std::string(py::str(host.attr("dtype"))));
    }
    if (!flag(host, "writeable")) {
        reject_field(ErrorKind::value, "out", "`out` is a read-only array and cannot be filled.");
    }
    return host;
}

/// The streams that a copy is ordered with: the array's, and that of a pinned or managed DeviceArray on the host side
/// (`host` is the object that the caller passed there).
ProducerPair producers_of(const ArrayObject& array, const py::object& host) {
    ProducerPair producers;
    for (const ArrayObject* each : {&array, as_array(host.ptr())}) {
        if (each == nullptr || !each->view.stream) continue;
        producers.add({producer_stream(each->bound_stream(), array.device)});
    }
    return producers;
}

/// Copies the bytes of a contiguous array to a contiguous host array, which is `out` or will be copied to it. Returns
/// true if the copy is complete.
bool copy_bytes(const py::object& array, const py::object& host, const py::object& out, StreamRef stream) {
    const ArrayObject& source = array.cast<const ArrayObject&>();
    const ProducerPair producers = producers_of(source, out);
    void* destination = host_address_of(host);
    OwnerList owners;
    const ArrayView& view = source.view;
    keep_array(owners, array.ptr(), source);
    owners.keep(host.ptr(), 0);
    const GilReleased released;
    return bascule::copy_to_host(stream, destination, view.pointer, view.size * view.dtype.itemsize,
                                 producers.get(), owners.transfer());
}

void wait(StreamRef stream) {
    without_gil([&] { stream.synchronize(); });
}

/// Pinned and managed arrays are copied in stream order. If NumPy must rearrange the values first, this waits for their
/// stream.
void wait_if_the_host_reads(const py::object& values, const ArrayView& target) {
    const ArrayObject* own = as_array(values.ptr());
    if (own == nullptr || !own->view.stream) return;
    if (!(keeps_fortran(target) ? own->view.f_contiguous : own->view.c_contiguous)) wait(own->bound_stream());
}

/// Converts values to a host array of exactly this shape and dtype, with the memory order of the device array.
py::object host_values(const py::object& given, const ArrayView& view, Device device) {
    if (is_numpy_masked(given)) {
        reject_field(ErrorKind::not_supported, "values",
                     "`values` is a numpy.ma array, and copy_from_host does not change the mask of an array: "
                     "pass values.data, and copy numpy.logical_not of its mask to array.mask.");
    }
    const py::object dtype = numpy_dtype(view);
    const py::object values = as_opaque(given, dtype, view.shape);
    const bool is_array = py::isinstance(values, numpy().attr("ndarray"));
    wait_if_the_host_reads(values, view);
    const py::object host = is_array ? values : cast_values(values, dtype);
    if (!py::object(host.attr("dtype")).equal(dtype) ||
        !py::object(host.attr("shape")).equal(to_tuple(view.shape))) {
        const bool same_dtype = py::object(host.attr("dtype")).equal(dtype);
        reject_field(
            ErrorKind::value, "values",
            "`values` must have shape {} and dtype {}, got shape {} and dtype {}. {}",
            bascule::to_string(view.shape), std::string(py::str(dtype)),
            std::string(py::str(host.attr("shape"))), std::string(py::str(host.attr("dtype"))),
            same_dtype ? "Copy into a part of the array, such as array[:n].copy_from_host(values), or repeat "
                         "the values with numpy.broadcast_to(values, array.shape)."
                       : "Convert them with .astype(array.dtype).");
    }
    const bool fortran = keeps_fortran(view);
    if (!flag(host,
              fortran ? "f_contiguous" : "c_contiguous"))  // NumPy copies, perhaps from managed memory
        without_gil([&] { wait_for_managed_memory(device); });
    return numpy().attr("asarray")(host, "order"_a = fortran ? "F" : "C");
}

/// Copies host values to a contiguous array. `values` is the object that the caller passed: `host` itself, or what it
/// was converted from.
void copy_bytes_from(const py::object& array, const py::object& host, const py::object& values,
                     StreamRef stream) {
    const ArrayObject& target = array.cast<const ArrayObject&>();
    const ArrayView& view = target.view;
    const ProducerPair producers = producers_of(target, values);
    const void* source = host_address_of(host);
    OwnerList owners;
    keep_array(owners, array.ptr(), target);
    owners.keep(host.ptr(), 0);  // pinned memory is read asynchronously
    const GilReleased released;
    copy_to_device(stream, view.pointer, source, view.size * view.dtype.itemsize, producers.get(),
                   owners.transfer());
}

/// Copies the values to the host, without the mask.
py::object copy_values_to_host(const py::object& self, const py::object& out, const py::object& stream) {
    const ArrayObject& array = self.cast<const ArrayObject&>();
    const StreamRef source = stream_for(array, stream);
    if (stream.is_none() || out.is_none()) without_gil([&] { require_no_capture(source, "copy_to_host"); });
    const auto new_host = [&](bool fortran) {
        return py::object(numpy().attr("empty")(to_tuple(array.view.shape),
                                                "dtype"_a = numpy_dtype(array.view),
                                                "order"_a = fortran ? "F" : "C"));
    };
    const py::object host =
        out.is_none() ? new_host(keeps_fortran(array.view)) : checked_out(out, array.view);
    const bool fortran = flag(host, "f_contiguous") && !flag(host, "c_contiguous");
    const bool has_gaps = !fortran && !flag(host, "c_contiguous");
    const py::object target = has_gaps ? new_host(false) : host;
    const bool fits = fortran ? array.view.f_contiguous : array.view.c_contiguous;
    const py::object contiguous = fits ? self : py::cast(packed(self, fortran, stream));
    const bool done = copy_bytes(contiguous, target, out, source);
    if (!done && (stream.is_none() || has_gaps)) wait(source);
    if (has_gaps) {
        without_gil([&] { wait_for_managed_memory(array.device); });
        numpy().attr("copyto")(host, target);
    }
    return out.is_none() ? host : out;
}

/// The value of an array with one element. Waits.
py::object item(const py::object& self, const py::args& index) {
    const py::object one = index.empty() ? self : py::object(self[index]);
    const ArrayView& view = one.cast<const ArrayObject&>().view;
    if (view.size != 1) {
        reject(ErrorKind::value,
               "only an array of one element becomes a Python scalar, and this one has shape {}. Use "
               "x.item(i), or x.copy_to_host().",
               bascule::to_string(view.shape));
    }
    return copy_to_host(one, py::none(), py::none()).attr("item")();
}

/// Implements `float(x[3])`: `type` is float, int or complex. Waits.
py::object converted(const py::object& self, const char* type) {
    const ArrayView& view = self.cast<const ArrayObject&>().view;
    if (view.ndim() != 0) {
        reject(ErrorKind::type,
               "{0}(x) takes an array without axes, such as x[3], and this one has shape {1}. Use "
               "{0}(x.item()) for an array of one element.",
               type, bascule::to_string(view.shape));
    }
    return py::module_::import("builtins").attr(type)(item(self, py::args()));
}

}  // namespace

py::object copy_to_host(const py::object& self, const py::object& out, const py::object& stream) {
    const ArrayObject& array = self.cast<const ArrayObject&>();
    return with_host_mask(array, copy_values_to_host(self, data_to_fill(array, out), stream), out);
}

void copy_from_host(const py::object& self, const py::object& values, const py::object& stream) {
    const ArrayObject& array = self.cast<const ArrayObject&>();
    require_writable(array);
    const py::object host = host_values(values, array.view, array.device);
    if (array.view.contiguous()) return copy_bytes_from(self, host, values, stream_for(array, stream));
    const py::object packed_values =
        py::cast(allocate(ArrayPlan::like(array.view), array.device, stream_object_for(array, stream)));
    const py::object chosen = packed_values.attr("stream");
    copy_bytes_from(packed_values, host, values, chosen.cast<StreamObject&>().ref);
    copy_on_device(self, packed_values, chosen);
}

void bind_array_transfer(ArrayClass& type) {
    type.def("copy_to_host", &copy_to_host, "out"_a = py::none(), py::kw_only(), "stream"_a = py::none(),
             R"(Copy to a NumPy array, after all work enqueued on the bound stream, and wait for the copy.

out : numpy.ndarray of the same shape and dtype, or a pinned or managed array, to fill and return; None for a new numpy.ndarray.
stream : where the copy is enqueued; None means the current stream, else the bound stream. With a stream and pinned `out` the call
does not wait: synchronise the stream before you read `out`.

>>> import numpy as np, bascule
>>> bascule.to_device(np.arange(3)).copy_to_host()
array([0, 1, 2]))")
        .def("copy_from_host", &copy_from_host, "values"_a, py::kw_only(), "stream"_a = py::none(),
             R"(Copy host values to the array, after all work enqueued on the bound stream. Does not wait.

values : numpy.ndarray of the same shape and dtype, or numbers of that shape, which are converted as in `x[...] = value`.
It may be changed when this returns, unless its memory is pinned: then only after the stream has finished the copy.
stream : where the copy is enqueued; None means the current stream, else the bound stream.

>>> import numpy as np, bascule
>>> x = bascule.device_array(2, "f4")
>>> x.copy_from_host([1, 2])
>>> x.copy_to_host()
array([1., 2.], dtype=float32))")
        .def(
            "item", &item,
            R"(The only element, or that at an index, as a Python scalar, after all work enqueued on the bound stream.

Waits for the device: for many elements use one `copy_to_host`. `float(x[i])`, `int(x[i])` and `complex(x[i])` wait too.

Raises ValueError for an array of another size than 1.

>>> import numpy as np, bascule
>>> x = bascule.to_device(np.array([1.5, 2.5]))
>>> x.item(1), float(x[0])
(2.5, 1.5))");
    for (const char* name : {"float", "int", "complex"}) {
        type.def(fmt::format("__{}__", name).c_str(),
                 [name](const py::object& self) { return converted(self, name); });
    }
}

}  // namespace bascule::python
