#include "array_object.hpp"

#include <string>
#include <vector>

#include <fmt/format.h>
#include <pybind11/stl.h>

#include <bascule/interface/error.hpp>
#include <bascule/runtime/driver.hpp>
#include <bascule/runtime/emulated_device.hpp>

#include "descr.hpp"
#include "device_object.hpp"
#include "interface_reader.hpp"
#include "owners.hpp"
#include "stream_object.hpp"

namespace py = pybind11;
using namespace py::literals;

namespace bascule::python {
namespace {

PyTypeObject* array_type = nullptr;  // set once by bind_arrays, held by the module

py::tuple to_tuple(const Dimensions& dimensions) {
    py::tuple tuple(dimensions.size());
    for (int d = 0; d < dimensions.size(); ++d) tuple[static_cast<std::size_t>(d)] = py::int_(dimensions[d]);
    return tuple;
}

py::object numpy() { return py::module_::import("numpy"); }

py::object numpy_dtype(const ArrayView& view) {
    if (view.layout != nullptr) return structured_dtype(*view.layout);
    return numpy().attr("dtype")(to_typestr(view.dtype));
}

/// A host NumPy array's fields by the rules of the device interface: the two share them.
ArrayView host_view(const py::object& array) {
    const py::dict fields = array.attr("__array_interface__");
    py::dict copy;
    for (const char* key : {"shape", "typestr", "data", "strides", "descr"}) copy[key] = fields[key];
    copy["version"] = 3;
    InterfaceSnapshot snapshot;
    read_descriptor(copy.ptr(), snapshot);
    ArrayView view = validate(snapshot.raw);
    view.layout = snapshot.layout;
    return view;
}

/// The stream object that an array binds: the one given, else the default stream.
py::object stream_to_bind(const py::object& stream, Device device) {
    if (py::isinstance<StreamObject>(stream)) return stream;
    const std::optional<StreamRef> given = to_stream(stream, device);
    return py::cast(StreamObject{nullptr, given.value_or(default_stream(device)), stream});
}

void bind_stream(ArrayObject& array, py::object stream) {
    array.view.has_stream = true;
    array.view.stream = stream.cast<StreamObject&>().ref.handle();
    array.stream = std::move(stream);
}

/// On the emulated device, fault reports name the line of Python that made an allocation.
void tell_where_made(std::uint64_t address) {
    const EmulatedFunctions* emulated = Driver::get().emulated_functions();
    PyFrameObject* frame = PyEval_GetFrame();
    if (emulated == nullptr || address == 0 || frame == nullptr) return;
    const auto code = py::reinterpret_steal<py::object>(reinterpret_cast<PyObject*>(PyFrame_GetCode(frame)));
    const std::string file = py::str(code.attr("co_filename"));
    emulated->name_allocation(address,
                              fmt::format("made at {}:{}", file, PyFrame_GetLineNumber(frame)).c_str());
}

ArrayObject allocate(Dimensions shape, DType dtype, std::shared_ptr<const StructLayout> layout, bool fortran,
                     const py::object& stream) {
    const Device device = current_device();
    RawInterface raw;
    const std::string typestr = to_typestr(dtype);
    raw.shape = shape;
    raw.typestr = typestr;
    raw.pointer = 1;  // checked for size first, placed afterwards
    if (fortran) {
        raw.has_strides = true;
        std::int64_t stride = dtype.itemsize;
        for (int d = 0; d < shape.size(); ++d) {
            raw.strides.push_back(stride);
            stride *= shape[d];
        }
    }
    ArrayView view = validate(raw);
    view.layout = std::move(layout);
    auto buffer = std::make_shared<DeviceBuffer>(view.size * dtype.itemsize, device);
    view.pointer = buffer->address();
    tell_where_made(view.pointer);
    ArrayObject array{view, device, std::move(buffer), py::none(), py::none()};
    bind_stream(array, stream_to_bind(stream, device));
    return array;
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

ArrayObject device_array(const py::object& shape, const py::object& dtype, const py::object& stream) {
    const py::object element = numpy().attr("dtype")(dtype);
    const std::string typestr = py::str(element.attr("str"));
    return allocate(to_shape(shape), parse_typestr(typestr), numpy_layout(element), false, stream);
}

ArrayObject to_device(const py::object& object, const py::object& stream) {
    if (py::hasattr(object, "mask") && py::hasattr(object, "filled")) {
        throw ArgumentError(
            ArgumentError::Kind::not_supported,
            "to_device: masked arrays are not supported yet; pass object.filled(value), and its mask as "
            "an array of its own.");
    }
    py::object host = numpy().attr("asarray")(object);
    ArrayView view = host_view(host);
    if (!view.contiguous()) {
        host = numpy().attr("ascontiguousarray")(host).attr("reshape")(host.attr("shape"));
        view = host_view(host);
    }
    ArrayObject array = allocate(view.shape, view.dtype, view.layout, !view.c_contiguous, stream);
    const StreamRef target(array.view.stream, array.device);
    const std::size_t bytes = view.size * view.dtype.itemsize;
    {
        const py::gil_scoped_release release;
        copy_to_device(target, array.view.pointer, reinterpret_cast<const void*>(view.pointer), bytes);
    }
    return array;
}

/// The lowest byte that an array touches, relative to its pointer, and how many bytes from there.
struct Span {
    std::int64_t start = 0;
    std::size_t bytes = 0;
};

Span span_of(const ArrayView& view) {
    if (view.empty()) return {};
    std::int64_t low = 0;
    std::int64_t high = view.dtype.itemsize;
    for (int d = 0; d < view.ndim(); ++d) {
        const std::int64_t reach = (view.shape[d] - 1) * view.strides[d];
        (reach < 0 ? low : high) += reach;
    }
    return {low, static_cast<std::size_t>(high - low)};
}

py::object copy_to_host(const py::object& self, const py::object& out, const py::object& stream) {
    const ArrayObject& array = self.cast<const ArrayObject&>();
    const py::object dtype = numpy_dtype(array.view);
    const Span span = span_of(array.view);
    const py::object bytes = numpy().attr("empty")(span.bytes, "u1");
    const StreamRef bound(array.view.has_stream ? array.view.stream : default_stream(array.device).handle(),
                          array.device);
    const StreamRef source = to_stream(stream, array.device).value_or(bound);
    Producer producer{array.view.stream, 0};
    const std::span<const Producer> producers(&producer, array.view.has_stream ? 1 : 0);
    void* destination =
        bytes.attr("ctypes").attr("data").cast<std::uintptr_t>() == 0
            ? nullptr
            : reinterpret_cast<void*>(bytes.attr("ctypes").attr("data").cast<std::uintptr_t>());
    const std::uint64_t address = array.view.pointer + static_cast<std::uint64_t>(span.start);
    OwnerList owners;
    owners.keep(self.ptr());
    {
        const py::gil_scoped_release release;
        copy_to_host(source, destination, address, span.bytes, producers, owners.hand_over());
    }
    const py::object host =
        numpy().attr("ndarray")(to_tuple(array.view.shape), "dtype"_a = dtype, "buffer"_a = bytes,
                                "offset"_a = -span.start, "strides"_a = to_tuple(array.view.strides));
    if (out.is_none()) return array.view.contiguous() ? host : py::object(host.attr("copy")());
    if (!py::object(out.attr("shape")).equal(py::object(host.attr("shape"))) ||
        !py::object(out.attr("dtype")).equal(dtype)) {
        throw ArgumentError(
            ArgumentError::Kind::value,
            fmt::format("`out` must be an array of shape {} and dtype {}.",
                        bascule::to_string(array.view.shape), bascule::to_string(array.view.dtype)),
            {.field = "out"});
    }
    numpy().attr("copyto")(out, host, "casting"_a = "no");
    return out;
}

/// The values as a host array of exactly this shape and dtype, laid out as the device array is.
py::object host_values(const py::object& values, const ArrayView& view) {
    const py::object dtype = numpy_dtype(view);
    const bool is_array = py::isinstance(values, numpy().attr("ndarray"));
    const py::object host =
        is_array ? values : py::object(numpy().attr("asarray")(values, "dtype"_a = dtype));
    if (!py::object(host.attr("dtype")).equal(dtype) ||
        !py::object(host.attr("shape")).equal(to_tuple(view.shape))) {
        throw ArgumentError(
            ArgumentError::Kind::value,
            fmt::format(
                "`values` must have shape {} and dtype {}, got shape {} and dtype {}. Convert them with "
                ".astype(array.dtype), or spread them with numpy.broadcast_to(values, array.shape).",
                bascule::to_string(view.shape), std::string(py::str(dtype)),
                std::string(py::str(host.attr("shape"))), std::string(py::str(host.attr("dtype")))),
            {.field = "values"});
    }
    return numpy().attr("asarray")(host, "order"_a = view.c_contiguous ? "C" : "F");
}

void copy_from_host(const py::object& self, const py::object& values, const py::object& stream) {
    const ArrayObject& array = self.cast<const ArrayObject&>();
    if (array.view.readonly) {
        throw ArgumentError(ArgumentError::Kind::value, "the array is read-only and cannot be written.",
                            {.field = "values"});
    }
    if (!array.view.contiguous()) {
        throw ArgumentError(ArgumentError::Kind::not_supported,
                            "copy_from_host fills contiguous arrays; this one has gaps between its elements.",
                            {.field = "values"});
    }
    const py::object host = host_values(values, array.view);
    const StreamRef bound(array.view.has_stream ? array.view.stream : default_stream(array.device).handle(),
                          array.device);
    const StreamRef target = to_stream(stream, array.device).value_or(bound);
    Producer producer{array.view.stream, 0};
    const std::span<const Producer> producers(&producer, array.view.has_stream ? 1 : 0);
    const auto source = host.attr("ctypes").attr("data").cast<std::uintptr_t>();
    const std::size_t bytes = array.view.size * array.view.dtype.itemsize;
    OwnerList owners;
    owners.keep(self.ptr());
    owners.keep(host.ptr());  // pinned memory is read later
    const py::gil_scoped_release release;
    copy_to_device(target, array.view.pointer, reinterpret_cast<const void*>(source), bytes, producers,
                   owners.hand_over());
}

/// A view of memory that somebody else owns, with the producer's stream bound, or none with sync=False.
ArrayObject wrap(const InterfaceSnapshot& snapshot, py::object owner, bool sync) {
    if (snapshot.mask) {
        throw ArgumentError(
            ArgumentError::Kind::not_supported,
            "the array has a mask, and masked arrays are not supported yet: pass its data and its mask as "
            "two arrays.",
            {.field = "mask"});
    }
    const Device device = current_device();
    ArrayObject array{resolve(validate(snapshot.raw), device), device, nullptr, std::move(owner), py::none()};
    array.view.layout = snapshot.layout;
    if (!sync) {
        array.view.has_stream = false;
        array.view.stream = 0;
        return array;
    }
    const StreamRef stream =
        array.view.has_stream ? StreamRef(array.view.stream, device) : default_stream(device);
    bind_stream(array, py::cast(StreamObject{nullptr, stream, array.owner}));
    return array;
}

ArrayObject as_cuda_array(const py::object& object, bool sync) {
    InterfaceSnapshot snapshot;
    if (!read_interface(object.ptr(), snapshot)) {
        throw ArgumentError(
            ArgumentError::Kind::type,
            fmt::format("as_cuda_array takes an object with __cuda_array_interface__, got {} ({}). A host "
                        "array goes to the device with bascule.to_device(array).",
                        Py_TYPE(object.ptr())->tp_name, snapshot.absence));
    }
    return wrap(snapshot, object, sync);
}

ArrayObject from_cuda_array_interface(const py::object& descriptor, py::object owner, bool sync) {
    InterfaceSnapshot snapshot;
    read_descriptor(descriptor.ptr(), snapshot);
    return wrap(snapshot, std::move(owner), sync);
}

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
    return fields;
}

std::string repr(const ArrayObject& array) {
    return fmt::format("<bascule.DeviceArray shape={} dtype={}{} on {}>",
                       bascule::to_string(array.view.shape), bascule::to_string(array.view.dtype),
                       array.view.readonly ? " read-only" : "", to_string(array.device));
}

std::size_t length(const ArrayObject& array) {
    if (array.view.ndim() == 0) throw py::type_error("len() of a 0-dimensional array");
    return static_cast<std::size_t>(array.view.shape[0]);
}

}  // namespace

const ArrayObject* as_array(PyObject* object) noexcept {
    if (Py_TYPE(object) != array_type) return nullptr;
    // An exact instance of a pybind11 class with one base keeps its value in the first slot of the simple
    // layout.
    const auto* instance = reinterpret_cast<const py::detail::instance*>(object);
    return static_cast<const ArrayObject*>(instance->simple_value_holder[0]);
}

py::object make_array(const ArrayView& view, Device device, py::object owner) {
    ArrayObject array{view, device, nullptr, std::move(owner), py::none()};
    bind_stream(array, stream_to_bind(py::none(), device));
    return py::cast(std::move(array));
}

void bind_arrays(py::module_& module) {
    py::class_<ArrayObject> type(module, "DeviceArray", py::is_final(), R"(An array in device memory.

Exports `__cuda_array_interface__` (version 3) with its bound stream, so that CuPy, PyTorch, Numba and others take it without a copy.
Made by `to_device`, `device_array` and `as_cuda_array`.)");
    type.def_property_readonly("shape", [](const ArrayObject& self) { return to_tuple(self.view.shape); })
        .def_property_readonly(
            "strides", [](const ArrayObject& self) { return to_tuple(self.view.strides); },
            "Bytes to skip to the next element along each axis.")
        .def_property_readonly("dtype", [](const ArrayObject& self) { return numpy_dtype(self.view); })
        .def_property_readonly("ndim", [](const ArrayObject& self) { return self.view.ndim(); })
        .def_property_readonly(
            "size", [](const ArrayObject& self) { return self.view.size; }, "Elements.")
        .def_property_readonly(
            "nbytes", [](const ArrayObject& self) { return self.view.size * self.view.dtype.itemsize; })
        .def_property_readonly("readonly", [](const ArrayObject& self) { return self.view.readonly; })
        .def_property_readonly(
            "stream", [](const ArrayObject& self) { return self.stream; },
            "The bound stream, or None for a view made with sync=False.")
        .def_property_readonly("device", [](const ArrayObject& self) { return self.device; })
        .def_property_readonly("__cuda_array_interface__", &exported_interface)
        .def("copy_to_host", &copy_to_host, py::kw_only(), "out"_a = py::none(), "stream"_a = py::none(),
             R"(Copy to a NumPy array, after everything enqueued on the bound stream; waits until it is there.

out : numpy.ndarray of the same shape and dtype to fill, or None for a new one.
stream : where the copy is enqueued; None means the bound stream.)")
        .def("copy_from_host", &copy_from_host, "values"_a, py::kw_only(), "stream"_a = py::none(),
             R"(Fill the array with host values, after everything enqueued on the bound stream; does not wait.

values : numpy.ndarray of the same shape and dtype, or numbers of that shape; free to change when this returns.
stream : where the copy is enqueued; None means the bound stream.)")
        .def("__len__", &length)
        .def("__repr__", &repr);
    array_type = reinterpret_cast<PyTypeObject*>(type.ptr());

    module.def("to_device", &to_device, "array"_a, py::kw_only(), "stream"_a = py::none(),
               R"(Copy a host array to a new DeviceArray bound to `stream` (None: the default stream).)");
    module.def("device_array", &device_array, "shape"_a, "dtype"_a = "float32", py::kw_only(),
               "stream"_a = py::none(), "A new DeviceArray with undefined contents.");
    module.def(
        "as_cuda_array", &as_cuda_array, "object"_a, py::kw_only(), "sync"_a = true,
        R"(View any object with `__cuda_array_interface__` as a DeviceArray, without a copy; the object is kept alive.

The producer's stream becomes the view's own: later operations are ordered with it on the device, and the host never waits (Numba
waits here). With sync=False the stream is ignored for the life of the view.)");
    module.def("from_cuda_array_interface", &from_cuda_array_interface, "descriptor"_a,
               "owner"_a = py::none(), py::kw_only(), "sync"_a = true,
               "The same from a descriptor; `owner` is kept alive, otherwise the caller keeps the memory.");
}

}  // namespace bascule::python
