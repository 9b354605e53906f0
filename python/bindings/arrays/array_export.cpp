// `__cuda_array_interface__` of a DeviceArray, in all versions, and NumPy's `__array_interface__`.
// Sources: the specifications of the CUDA Array Interface, versions 0, 2 and 3, and their remarks on version 1.
#include <cstdint>

#include <bascule/interface/errors/rejection.hpp>
#include <bascule/runtime/streams/stream.hpp>

#include "arrays/array_object.hpp"
#include "parts.hpp"
#include "support/names.hpp"
#include "values/numpy_values.hpp"

namespace bascule::python {
namespace {

constexpr int newest_version = 3;

/// The value of a bascule.ExportedArray, which exports another version of the interface.
struct ExportObject {
    py::object array;  // the DeviceArray
    int version = newest_version;
    bool names_stream = true;

    void visit_references(ReferenceVisitor& each) { each(array); }
};

/// The entries that the host's and the device's interface share, in version 3: shape, typestr, descr, data, strides, version.
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

py::dict fields_of(const ArrayObject& array, int version, bool names_stream) {
    const ArrayView& view = array.view;
    share_with_libraries(array);
    // The consumer will not know the stream that orders the memory.
    if (version < 3 || !view.stream || !names_stream) wait_for_allocation(array);
    py::dict fields = interface_of(view);
    fields[py::handle(names().version)] = version;
    // Versions 0 and 1 do not define when strides may be omitted.
    if (version < 2) fields[py::handle(names().strides)] = to_tuple(view.strides);
    if (version >= 3) {
        if (view.stream && names_stream) give_out_handle(array.bound_stream());
        fields[py::handle(names().stream)] =
            view.stream && names_stream ? py::object(py::int_(view.stream.handle)) : py::object(py::none());
    }
    if (array.mask) fields[py::handle(names().mask)] = array.mask;
    return fields;
}

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

// --- NumPy's views of an array in pinned or managed memory; device memory is refused

bool host_accessible(const ArrayObject& array) noexcept {
    return array.buffer != nullptr && array.buffer->kind() != MemoryKind::device;
}

/// The host address of the first element.
std::uint64_t host_address(const ArrayObject& array) noexcept {
    if (array.view.empty()) return 0;
    return reinterpret_cast<std::uintptr_t>(array.buffer->host()) +
           (array.view.pointer - array.buffer->address());
}

/// NumPy reads this attribute. AttributeError means that it does not exist.
py::dict array_interface(const ArrayObject& array) {
    if (!host_accessible(array)) {
        throw py::attribute_error(
            "a DeviceArray in device memory has no __array_interface__, because the host cannot read it. Use "
            "x.copy_to_host().");
    }
    if (array.buffer->kind() == MemoryKind::managed) {
        const GilReleased released;
        wait_for_managed_memory(array.device);
    }
    py::dict fields = interface_of(array.view);
    fields["data"] = py::make_tuple(host_address(array), array.view.readonly);
    return fields;
}

py::object to_array(const py::object& self, const py::object& dtype, const py::object& copy) {
    if (!host_accessible(self.cast<const ArrayObject&>())) {
        reject(ErrorKind::type,
               "a DeviceArray is not converted to a NumPy array implicitly, because that copies and waits: "
               "use x.copy_to_host(). For a copy on the device use x.copy().");
    }
    const py::object host = numpy().attr("asarray")(self);  // uses the interface above, without a copy
    if (copy.is_none()) return numpy().attr("asarray")(host, "dtype"_a = dtype);
    return numpy().attr("array")(host, "dtype"_a = dtype, "copy"_a = copy);
}

}  // namespace

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
    type.def_property_readonly(
            "__cuda_array_interface__",
            [](const ArrayObject& self) { return fields_of(self, newest_version, true); },
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
    type.def_property_readonly(
            "__array_interface__", &array_interface,
            "NumPy's array interface of a pinned or managed array. Raises AttributeError for device memory.")
        .def("__array__", &to_array, "dtype"_a = py::none(), py::kw_only(), "copy"_a = py::none(),
             "For numpy.asarray: a view of a pinned or managed array. Raises TypeError for device memory.")
        .def_property_readonly("host_accessible", &host_accessible,
                               "True for pinned and managed arrays, which NumPy can view.");
}

}  // namespace bascule::python
