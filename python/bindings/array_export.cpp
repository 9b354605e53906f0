#include "array_export.hpp"

#include "descr.hpp"
#include "numpy_values.hpp"

namespace py = pybind11;

namespace bascule::python {
namespace {

py::dict exported_interface(const ArrayObject& array) {
    const ArrayView& view = array.view;
    py::dict fields;
    fields["shape"] = to_tuple(view.shape);
    fields["typestr"] = to_typestr(view.dtype);
    if (view.layout != nullptr) fields["descr"] = structured_dtype(*view.layout).attr("descr");
    fields["data"] = py::make_tuple(view.empty() ? 0 : view.pointer, view.readonly);
    fields["version"] = 3;
    fields["strides"] = view.c_contiguous ? py::object(py::none()) : py::object(to_tuple(view.strides));
    fields["stream"] = view.has_stream ? py::object(py::int_(view.stream)) : py::object(py::none());
    if (array.mask) fields["mask"] = array.mask;
    return fields;
}

}  // namespace

void bind_array_export(ArrayClass& type) {
    type.def_property_readonly("__cuda_array_interface__", &exported_interface);
}

}  // namespace bascule::python
