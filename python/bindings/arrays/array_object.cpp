// The value of a bascule.DeviceArray, and its Python class, assembled from its parts.
#include "arrays/array_object.hpp"

#include <cstddef>
#include <functional>
#include <optional>

#include <bascule/interface/errors/rejection.hpp>
#include <bascule/interface/errors/wording.hpp>
#include <bascule/runtime/driver/driver.hpp>
#include <bascule/runtime/memory/owned_memory.hpp>
#include <bascule/runtime/streams/ordering.hpp>
#include <bascule/runtime/streams/stream_capture.hpp>

#include "context/current_stream.hpp"
#include "context/stream_object.hpp"
#include "exchange/dlpack_managed.hpp"
#include "parts.hpp"
#include "values/numpy_values.hpp"

namespace bascule::python {
namespace {

/// as_array relies on pybind11's object layout. This compares its result with pybind11's own. The object made for that
/// borrows memory that is never read. Throws: ImportError.
void require_known_layout() {
    alignas(ArrayObject) std::byte memory[sizeof(ArrayObject)];
    auto* const inside = reinterpret_cast<ArrayObject*>(memory);
    const py::object object = py::cast(inside, py::return_value_policy::reference);
    if (as_array(object.ptr()) == inside && object.cast<ArrayObject*>() == inside) return;
    throw py::import_error(
        fmt::format("bascule was built with pybind11 {}.{}, whose objects have a layout that bascule does "
                    "not know. Build it with pybind11 3.1: pip install --no-binary bascule bascule.",
                    PYBIND11_VERSION_MAJOR, PYBIND11_VERSION_MINOR));
}

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

py::object stream_to_bind(const py::object& stream, Device device) {
    return stream_object_or_current(stream, device, "array");
}

void bind_stream(ArrayObject& array, py::object stream) {
    array.view.stream.handle = stream.cast<StreamObject&>().ref.handle();
    array.view.stream.source = StreamSource::own;
    array.stream = std::move(stream);
}

ArrayObject view_of(const ArrayObject& array, const ArrayView& view) {
    return {view, array.device, array.buffer, array.owner, array.stream};
}

py::object stream_object_for(const ArrayObject& array, const py::object& given, const ArrayObject* other) {
    std::optional<StreamRef> stream = to_stream(given, array.device);
    std::optional<StreamRef> current;
    if (!stream && anything_entered()) current = current_stream(array.device);
    std::optional<std::uint64_t> common;
    const bool agree =
        other == nullptr || (other->view.stream && other->bound_stream() == array.bound_stream());
    if (array.view.stream && agree) common = array.view.stream.handle;
    switch (how_chosen(stream, current, common)) {
        case StreamChoice::given:
        case StreamChoice::current:
            return stream_object_or_current(given, array.device, "array");
        case StreamChoice::common_producer:
            return array.stream;
        case StreamChoice::device_default:
            break;
    }
    return py::cast(StreamObject{nullptr, StreamRef::device_default(array.device), py::none()});
}

StreamRef stream_for(const ArrayObject& array, const py::object& given, const ArrayObject* other) {
    return stream_object_for(array, given, other).cast<StreamObject&>().ref;
}

void wait_for_allocation(const ArrayObject& array) {
    if (array.buffer != nullptr) without_gil([&] { array.buffer->wait_for_allocation(); });
}

void share_with_libraries(const ArrayObject& array) {
    OwnedMemory* const memory = array.buffer == nullptr ? nullptr : array.buffer->owned();
    if (memory == nullptr) return;
    memory->share();
    const py::dict modules = py::reinterpret_borrow<py::dict>(PyImport_GetModuleDict());
    if (!modules.contains("torch") && !modules.contains("cupy")) return;
    const py::object streams =
        py::module_::import("bascule._producers").attr("side_streams")(array.device.ordinal());
    for (const py::handle each : streams) {
        const auto [handle, stream] = each.cast<std::pair<std::uint64_t, py::object>>();
        const StreamRef side(handle, array.device);
        if (stream.is_none()) {
            memory->share(side, nullptr);
        } else if (py::isinstance<py::bool_>(stream)) {  // owned by Bascule, or by an unknown owner
            if (auto owner = owner_of(side)) memory->share(side, std::move(owner));
        } else {
            const Owner kept = kept_object(stream.ptr());
            memory->share(side, std::shared_ptr<void>(kept.object, [kept](void*) { release(Owners(kept)); }));
        }
    }
}

void require_order(const std::string& order, std::string_view allowed) {
    if (order.size() == 1 && allowed.find(order) != std::string_view::npos) return;
    reject(ErrorKind::value, {.field = "order", .got = order}, "`order` must be {}, got '{}'.",
           allowed == "CF" ? "'C' or 'F'" : "'C', 'F' or 'K' (memory order)", shortened(order));
}

void require_writable(const ArrayObject& array) {
    if (!array.view.readonly) return;
    reject_field(ErrorKind::value, "readonly",
                 "the array is read-only and cannot be written. Write to a copy: x.copy().");
}

py::object make_array(const ArrayView& view, Device device, py::object owner) {
    ArrayObject array{view, device, nullptr, std::move(owner), py::none()};
    bind_stream(array, stream_to_bind(py::none(), device));
    return py::cast(std::move(array));
}

std::string array_with_arithmetic() {
    if (!Driver::get().emulated()) {
        const py::object find_spec = py::module_::import("importlib.util").attr("find_spec");
        for (const auto& [library, view] : {std::pair("cupy", "cupy.asarray(x)"),
                                            std::pair("torch", "torch.as_tensor(x, device='cuda')")}) {
            if (!find_spec(library).is_none()) return fmt::format("{}, which views it without a copy", view);
        }
    }
    return "x.copy_to_host() and NumPy";
}

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
    detail::array_type = reinterpret_cast<PyTypeObject*>(type.ptr());
    require_known_layout();
    bind_masks(module, type);
    bind_dlpack_export(type);
    bind_exchange_table(type);
    bind_array_views(type);
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
