#include "numpy_values.hpp"

#include <string>

#include "descr.hpp"
#include "interface_reader.hpp"

namespace py = pybind11;

namespace bascule::python {

py::object numpy() { return py::module_::import("numpy"); }

py::tuple to_tuple(const Dimensions& dimensions) {
    py::tuple tuple(dimensions.size());
    for (int d = 0; d < dimensions.size(); ++d) tuple[static_cast<std::size_t>(d)] = py::int_(dimensions[d]);
    return tuple;
}

Dimensions to_shape(const py::object& shape) {
    RawInterface raw;
    py::dict descriptor;
    descriptor["shape"] = py::isinstance<py::int_>(shape) ? py::object(py::make_tuple(shape)) : shape;
    descriptor["typestr"] = "|u1";
    descriptor["data"] = py::make_tuple(0, false);
    descriptor["version"] = 3;
    InterfaceSnapshot snapshot;
    read_descriptor(descriptor.ptr(), snapshot);
    return snapshot.raw.shape;
}

py::object numpy_dtype(const ArrayView& view) {
    if (view.layout != nullptr) return structured_dtype(*view.layout);
    return numpy_dtype(view.dtype);
}

ArrayView host_view(const py::object& array) {
    const py::dict fields = array.attr("__array_interface__");
    py::dict copy;
    for (const char* key : {"shape", "typestr", "data", "strides", "descr"}) copy[key] = fields[key];
    copy["version"] = 3;
    InterfaceSnapshot snapshot;
    read_descriptor(copy.ptr(), snapshot);
    ArrayView view = validate(snapshot.raw);
    // The dtype says more than its typestr and descr: which format of ml_dtypes it is.
    view.dtype = dtype_of(array.attr("dtype"));
    view.layout = numpy_layout(array.attr("dtype"));
    return view;
}

}  // namespace bascule::python
