// Views of a DeviceArray with another shape or dtype: `reshape`, `T`, `transpose`, `ravel`, `view`.
#include <string>
#include <vector>

#include <bascule/interface/arrays/array_views.hpp>
#include <bascule/interface/errors/rejection.hpp>

#include "arrays/array_object.hpp"
#include "arrays/mask.hpp"
#include "parts.hpp"
#include "support/integers.hpp"
#include "values/numpy_values.hpp"

namespace bascule::python {
namespace {

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

void bind_array_shape(ArrayClass& type) {
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
