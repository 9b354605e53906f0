// Views of a DeviceArray: indexing, `x[...]` and `x[...] = value`; `reshape`, `T`, `transpose`, `ravel`, `view`.

#include <bascule/interface/arrays/array_views.hpp>
#include <bascule/interface/errors/rejection.hpp>

#include "arrays/array_creation.hpp"
#include "arrays/array_elements.hpp"
#include "arrays/array_import.hpp"
#include "arrays/array_transfer.hpp"
#include "arrays/mask.hpp"
#include "parts.hpp"
#include "support/attributes.hpp"
#include "support/integers.hpp"
#include "values/numpy_values.hpp"

namespace bascule::python {
namespace {

[[noreturn]] void fail_advanced(PyObject* entry) {
    reject(ErrorKind::not_supported, {.field = "index", .got = Py_TYPE(entry)->tp_name},
           "a DeviceArray is indexed by integers, slices, `...` and None, which give views; an index of "
           "type {} would need a copy: use {}.",
           Py_TYPE(entry)->tp_name, array_with_arithmetic());
}

[[noreturn]] void fail_type(PyObject* entry) {
    reject(ErrorKind::index, {.field = "index", .got = Py_TYPE(entry)->tp_name},
           "only integers, slices (`:`), ellipsis (`...`) and None (numpy.newaxis) are valid indices, got "
           "an object of type {}.",
           Py_TYPE(entry)->tp_name);
}

/// True for a bool, and for a sequence or an array of indices or bools.
bool is_advanced(PyObject* entry) {
    return PyBool_Check(entry) || PyList_Check(entry) || PyTuple_Check(entry) ||
           has_attribute(entry, "dtype");
}

/// The int of an object with __index__; empty for bools and all other objects.
std::optional<std::int64_t> integer_of(PyObject* entry) {
    const py::object integer = try_int(entry);  // numpy.bool refuses
    if (!integer) return std::nullopt;
    int overflow = 0;
    const long long value = PyLong_AsLongLongAndOverflow(integer.ptr(), &overflow);
    if (overflow != 0) {
        reject_field(ErrorKind::index, "index", "cannot fit 'int' into an index-sized integer.");
    }
    return value;
}

IndexEntry slice_of(PyObject* object) {
    IndexEntry entry;
    entry.kind = IndexEntry::Kind::slice;
    Py_ssize_t start = 0;
    Py_ssize_t stop = 0;
    Py_ssize_t step = 0;
    if (PySlice_Unpack(object, &start, &stop, &step) != 0) throw py::error_already_set();
    const auto* slice = reinterpret_cast<const PySliceObject*>(object);
    if (slice->start != Py_None) entry.start = start;
    if (slice->stop != Py_None) entry.stop = stop;
    entry.step = step;
    return entry;
}

IndexEntry entry_of(PyObject* object) {
    IndexEntry entry;
    if (object == Py_Ellipsis) {
        entry.kind = IndexEntry::Kind::ellipsis;
    } else if (object == Py_None) {
        entry.kind = IndexEntry::Kind::new_axis;
    } else if (PySlice_Check(object)) {
        entry = slice_of(object);
    } else if (const auto integer = integer_of(object)) {
        entry.integer = *integer;
    } else if (is_advanced(object)) {
        fail_advanced(object);
    } else {
        fail_type(object);
    }
    return entry;
}

bool is_number(const py::object& value) {
    if (py::isinstance<py::list>(value) || py::isinstance<py::tuple>(value)) return false;
    return !has_attribute(value, "shape") || py::len(value.attr("shape")) == 0;
}

/// Transfers the values without broadcasting them first: rows are repeated on the device.
void assign_from_host(const py::object& array, const py::object& given) {
    const ArrayObject& target = array.cast<const ArrayObject&>();
    if (is_numpy_masked(given))
        return copy_from_host(array, given, py::none());  // raises: masks are not changed
    const py::object dtype = numpy_dtype(target.view);
    const py::object values = cast_values(as_opaque(given, dtype, target.view.shape), dtype);
    if (py::object(values.attr("shape")).equal(to_tuple(target.view.shape))) {
        return copy_from_host(array, values, py::none());
    }
    const py::object stream = stream_object_for(target, py::none());
    copy_on_device(array, py::cast(to_device(values, target.device, stream)), stream);
}

/// `x[...] = value` for a number, or an array that broadcasts to the shape of the elements.
void assign(const py::object& array, const py::object& value) {
    require_writable(array.cast<const ArrayObject&>());
    if (as_array(value.ptr()) != nullptr) return copy_on_device(array, value, py::none());
    if (auto other = find_cuda_array(value, true))
        return copy_on_device(array, py::cast(*std::move(other)), py::none());
    if (is_number(value)) return fill(array, value, py::none());
    assign_from_host(array, value);
}

/// The view `x[key]`. Throws: ArgumentError (index; not_supported if it would need a copy).
ArrayView index_by(const ArrayView& array, const py::object& key) {
    if (PyUnicode_Check(key.ptr())) return field_of(array, key.cast<std::string>());
    std::vector<IndexEntry> index;
    if (PyTuple_Check(key.ptr())) {
        for (py::handle entry : key.cast<py::tuple>()) index.push_back(entry_of(entry.ptr()));
    } else {
        index.push_back(entry_of(key.ptr()));
    }
    return index_array(array, index);
}

ArrayObject get_item(const ArrayObject& array, const py::object& key) {
    if (array.mask && PyUnicode_Check(key.ptr())) {
        reject_field(ErrorKind::not_supported, "index",
                     "a field of a masked array would lose which elements are valid: copy the values without "
                     "the mask first.");
    }
    return changed(array, [&](const ArrayView& view) { return index_by(view, key); });
}

void set_item(const ArrayObject& array, const py::object& key, const py::object& value) {
    ArrayView values = array.view;
    values.mask = nullptr;  // assignment does not change the mask
    assign(py::cast(view_of(array, index_by(values, key))), value);
}

// --- Another shape or dtype

/// The numbers of `x.reshape(2, 3)` or `x.reshape((2, 3))`.
py::object alone_or_all(const py::args& arguments) {
    if (arguments.size() != 1) return arguments;
    const py::object only = arguments[0];
    return is_several(only) ? only : py::object(arguments);
}

ArrayObject reshaped(const ArrayObject& array, const py::args& shape) {
    const Dimensions extents = to_integers(alone_or_all(shape), "shape");
    return changed(array, [&](const ArrayView& view) { return reshape(view, extents); });
}

ArrayObject raveled(const ArrayObject& array, const std::string& order) {
    require_order(order, "CFK");
    Dimensions flat;
    flat.push_back(-1);
    if (order == "C") return changed(array, [&](const ArrayView& view) { return reshape(view, flat); });
    if (order == "F") {
        return changed(array, [&](const ArrayView& view) { return reshape(transpose(view), flat); });
    }
    if (!is_dense(array.view)) {
        reject_field(ErrorKind::value, "order",
                     "ravel(\"K\") is a view of the elements in memory order, and an array of shape {} and "
                     "strides {} has gaps between them, repeats them or steps backwards. Use "
                     "x.copy().ravel().",
                     bascule::to_string(array.view.shape), bascule::to_string(array.view.strides));
    }
    const std::vector<std::int64_t> axes = axes_in_memory_order(array.view);  // also used for the mask
    return changed(array, [&](const ArrayView& view) { return reshape(transpose(view, axes), flat); });
}

ArrayObject reversed(const ArrayObject& array) {
    return changed(array, [](const ArrayView& view) { return transpose(view); });
}

ArrayObject transposed(const ArrayObject& array, const py::args& axes) {
    const py::object given = alone_or_all(axes);
    if (axes.empty() || (axes.size() == 1 && axes[0].is_none())) {
        return reversed(array);
    }
    const Dimensions order = to_integers(given, "axes");
    return changed(array, [&](const ArrayView& view) {
        return transpose(view, {order.begin(), order.end()});
    });
}

ArrayObject viewed(const ArrayObject& array, const py::object& dtype) {
    const py::object element = to_dtype(dtype);
    if (array.mask) {
        reject_field(ErrorKind::not_supported, "dtype",
                     "a view of a masked array as another dtype would lose which elements are valid. Use "
                     "x.astype(dtype), or copy the values without the mask.");
    }
    return view_of(array, view_as(array.view, dtype_of(element), numpy_layout(element)));
}

}  // namespace

void bind_array_views(ArrayClass& type) {
    type.def("__getitem__", &get_item, "key"_a,
             R"(A view selected by integers, slices, `...` and None, by NumPy's rules.

An integer for every axis gives a 0-dimensional view, not a number; `x[2, 3].item()` waits for the device and returns
the number. `x["field"]` is a view of one field of structures. Index arrays and masks are refused, because they would
need a copy.

>>> import numpy as np, bascule
>>> x = bascule.to_device(np.arange(12).reshape(3, 4))
>>> x[::-1, 1:3].copy_to_host()
array([[ 9, 10],
       [ 5,  6],
       [ 1,  2]]))")
        .def("__setitem__", &set_item, "key"_a, "value"_a,
             R"(Set the selected elements, after all work enqueued on the bound stream. Does not wait.

value : a number, numbers, or a host or device array that broadcasts to the shape of the elements.

Values are converted by NumPy's casting rule 'same_kind', as by `numpy.copyto`: float64 to float32, but not float to
int, complex to float or int64 to uint8. Integers that are not in an array must be in the range of the dtype.
Broadcasting, and conversion of a device array, run on the device.

Raises TypeError for values of another kind, OverflowError for an integer out of range, and ValueError for a shape that
does not fit.

>>> import numpy as np, bascule
>>> x = bascule.to_device(np.zeros(4, "i4"))
>>> x[1:3] = 7
>>> x.copy_to_host()
array([0, 7, 7, 0], dtype=int32))");
    type.def("reshape", &reshaped,
             R"(A view of the same elements, in C order, in another shape; one extent may be -1.

Raises where NumPy would copy: use `x.copy().reshape(...)`.

>>> import numpy as np, bascule
>>> bascule.to_device(np.arange(6)).reshape(2, -1).shape
(2, 3))")
        .def("ravel", &raveled, "order"_a = "C",
             R"(A one-dimensional view of all elements. Raises where NumPy would copy.

order : 'C' or 'F', or 'K': memory order, for elementwise kernels that take a raw pointer. 'K' raises for an array
with gaps, repeated elements (strides of 0) or negative strides.

>>> import numpy as np, bascule
>>> x = bascule.to_device(np.arange(6).reshape(2, 3)).T
>>> x.ravel("K").copy_to_host()
array([0, 1, 2, 3, 4, 5]))")
        .def("transpose", &transposed,
             R"(A view with the axes in another order, by default the reverse one.

>>> import numpy as np, bascule
>>> bascule.to_device(np.zeros((2, 3, 4))).transpose(2, 0, 1).shape
(4, 2, 3))")
        .def_property_readonly("T", &reversed, "A view with the axes in reverse order.")
        .def("view", &viewed, "dtype"_a,
             R"(A view of the same bytes as elements of another dtype.

If the item size differs, the last axis must be contiguous and its length changes, as in NumPy.

>>> import numpy as np, bascule
>>> bascule.to_device(np.ones(2, "f4")).view("u2").copy_to_host()
array([    0, 16256,     0, 16256], dtype=uint16))");
}

}  // namespace bascule::python
