// Sources: the specifications of the CUDA Array Interface, versions 0, 2 and 3, and their remarks on version 1.
#include "arrays/array_export.hpp"

#include <bascule/runtime/streams/hidden_streams.hpp>

#include "parts.hpp"
#include "support/names.hpp"
#include "support/rejection.hpp"
#include "values/dtype_object.hpp"
#include "values/numpy_values.hpp"

namespace py = pybind11;
using namespace py::literals;

namespace bascule::python {
namespace {

constexpr int newest_version = 3;

/// bascule.ExportedArray: an array that exports another version of the interface.
struct ExportObject {
    py::object array;  // its DeviceArray
    int version = newest_version;
    bool names_stream = true;

    void visit_references(ReferenceVisitor& each) { each(array); }
};

py::dict fields_of(const ArrayObject& array, int version, bool names_stream) {
    const ArrayView& view = array.view;
    if (array.buffer) array.buffer->share();
    py::dict fields = interface_of(view);
    fields[py::handle(names().version)] = version;
    // Versions 0 and 1 do not define which arrays may omit the strides.
    if (version < 2) fields[py::handle(names().strides)] = to_tuple(view.strides);
    if (version >= 3) {
        if (view.has_stream && names_stream) give_out_handle({view.stream, array.device});
        fields[py::handle(names().stream)] =
            view.has_stream && names_stream ? py::object(py::int_(view.stream)) : py::object(py::none());
    }
    if (array.mask) fields[py::handle(names().mask)] = array.mask;
    return fields;
}

py::dict newest_interface(const ArrayObject& array) { return fields_of(array, newest_version, true); }

ExportObject exported(const py::object& self, int version, const py::object& stream) {
    if (version < 0 || version > newest_version) {
        reject_field(ErrorKind::value, "version", "`version` must be 0, 1, 2 or 3, got {}.", version);
    }
    const bool named = PyBool_Check(stream.ptr()) && stream.cast<bool>();
    if (!named && !stream.is_none()) {
        reject_field(ErrorKind::type, "stream",
                     "`stream` must be True (name the bound stream) or None (name none), got {}.",
                     std::string(py::repr(stream)));
    }
    return {self, version, named};
}

}  // namespace

py::dict interface_of(const ArrayView& view) {
    py::dict fields;
    fields[py::handle(names().shape)] = to_tuple(view.shape);
    fields[py::handle(names().typestr)] = to_typestr(view.dtype);
    if (view.layout != nullptr)
        fields[py::handle(names().descr)] = structured_dtype(*view.layout).attr("descr");
    fields[py::handle(names().data)] =
        py::make_tuple(view.empty() ? 0 : view.pointer, !view.writable_by_kernels());
    fields[py::handle(names().version)] = newest_version;
    fields[py::handle(names().strides)] =
        view.c_contiguous ? py::object(py::none()) : py::object(to_tuple(view.strides));
    return fields;
}

void bind_array_export(py::module_& module, ArrayClass& type) {
    py::class_<ExportObject>(module, "ExportedArray", collected<ExportObject>(),
                             "An array that exports another version of `__cuda_array_interface__`; created "
                             "by `DeviceArray.export`. Keeps the array alive.")
        .def_property_readonly("__cuda_array_interface__",
                               [](const ExportObject& self) {
                                   return fields_of(self.array.cast<const ArrayObject&>(), self.version,
                                                    self.names_stream);
                               })
        .def_readonly("array", &ExportObject::array, "The DeviceArray.")
        .def("__repr__", [](const ExportObject& self) {
            return fmt::format("<bascule.ExportedArray version {}{} of {}>", self.version,
                               self.version == 3 && !self.names_stream ? " without a stream" : "",
                               std::string(py::repr(self.array)));
        });
    type.def_property_readonly("__cuda_array_interface__", &newest_interface,
                               "The CUDA Array Interface, version 3. `stream` is the bound stream, which "
                               "lives as long as the array and which consumers wait for; None for a view "
                               "created with sync=False.")
        .def("export", &exported, py::kw_only(), "version"_a = newest_version, "stream"_a = true,
             R"(Export the array with another version of the interface, or without a stream.

version : 0 to 3; the dict has the entries that this version defines. Versions before 3 have no stream.
stream : True names the bound stream. None names no stream: the caller must then synchronise before others read the array.

>>> import bascule
>>> x = bascule.device_array(4, "f4")
>>> sorted(x.export(version=2).__cuda_array_interface__)
['data', 'shape', 'strides', 'typestr', 'version'])");
}

}  // namespace bascule::python
