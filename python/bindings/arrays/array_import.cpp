#include "arrays/array_import.hpp"

#include <bascule/interface/errors/rejection.hpp>

#include "arrays/mask.hpp"
#include "context/device_object.hpp"
#include "context/stream_object.hpp"
#include "exchange/interface_reader.hpp"
#include "exchange/producer_streams.hpp"
#include "parts.hpp"
#include "support/attributes.hpp"
#include "types/type_profile.hpp"

namespace bascule::python {
namespace {

/// A view of memory that another library owns, bound to the producer's stream, or to none with sync=False.
/// `producer` is null if only its descriptor is known.
ArrayObject wrap(DescribedArray described, py::object owner, bool sync, PyObject* producer) {
    Home home{.device = current_device()};
    ArrayView& view = described.view;
    if (producer != nullptr) require_plain_state(producer, profile_of(Py_TYPE(producer)).state, view, false);
    find_home(view, home);
    const Device device = home.device;
    ArrayObject array{std::move(view), device, nullptr, std::move(owner), py::none()};
    if (array.view.dtype.kind == DType::Kind::bit) {
        reject_field(ErrorKind::value, "typestr",
                     "'typestr' of __cuda_array_interface__ is \"{}\": arrays of single bits can only be "
                     "masks of other arrays.",
                     to_typestr(array.view.dtype));
    }
    if (!sync || !interface_sync()) {
        array.view.stream = ignored_stream;
        import_mask(array, described.mask, producer, sync);
        return array;
    }
    py::object kept = array.owner;
    if (needs_stream(array.view) && producer != nullptr) {
        const StreamRef consumer = stream_or_current(py::none(), device, "array");
        if (const py::object also = find_stream(producer, device, consumer, array.view)) {
            kept = py::make_tuple(array.owner, also);
        }
    }
    if (array.view.stream) {
        const bool own = producer != nullptr && as_array(producer) != nullptr;
        if (array.view.stream.handle <= 2 && array.view.stream.source == StreamSource::interface && !own)
            without_gil([] { require_primary_defaults(); });
        bind_stream(array, py::cast(StreamObject{nullptr, array.bound_stream(), kept}));
    } else {
        bind_stream(array, stream_to_bind(py::none(), device));
    }
    import_mask(array, described.mask, producer, sync);
    return array;
}

/// The descriptor that as_cuda_array would read; null if it does not exist.
py::object find_descriptor(const py::object& object) {
    if (PyType_Check(object.ptr()) != 0) return {};
    std::string absence;
    py::object descriptor = get_interface(object.ptr(), profile_of(Py_TYPE(object.ptr())).interface, absence);
    const bool is_one =
        descriptor && (PyDict_Check(descriptor.ptr()) != 0 || has_attribute(descriptor, "keys"));
    return is_one ? descriptor : py::object();
}

ArrayObject from_cuda_array_interface(const py::object& descriptor, py::object owner, bool sync) {
    return wrap(read_descriptor(descriptor.ptr(), Py_TYPE(descriptor.ptr())), std::move(owner), sync,
                nullptr);
}

ArrayObject as_cuda_array(const py::object& object, bool sync) {
    std::string why;
    auto described = read_interface(object.ptr(), why);
    if (!described) {
        reject(ErrorKind::type,
               "as_cuda_array takes an object with __cuda_array_interface__, got {}{}. Copy a host array to "
               "the device with bascule.to_device(array).",
               Py_TYPE(object.ptr())->tp_name, why.empty() ? "" : fmt::format(" (which says: {})", why));
    }
    if (const ArrayObject* const own = sync ? nullptr : as_array(object.ptr())) wait_for_allocation(*own);
    return wrap(*std::move(described), object, sync, object.ptr());
}

bool is_cuda_array(const py::object& object) { return static_cast<bool>(find_descriptor(object)); }

}  // namespace

std::optional<ArrayObject> find_cuda_array(const py::object& object, bool sync) {
    const py::object descriptor = find_descriptor(object);
    if (!descriptor) return std::nullopt;
    return wrap(read_descriptor(descriptor.ptr(), Py_TYPE(object.ptr())), object, sync, object.ptr());
}

void bind_array_import(py::module_& module) {
    module.def(
        "as_cuda_array", &as_cuda_array, "object"_a, py::kw_only(), "sync"_a = true,
        R"(View any object with `__cuda_array_interface__` as a DeviceArray, without a copy; the object is kept alive.

The producer's stream becomes the bound stream of the view: later operations are ordered with it on the device, and the host never
waits (Numba waits here). With sync=False, or with `bascule.config.cuda_array_interface_sync` off, the producer's stream is ignored and
the view has no bound stream.

Raises ArgumentError for an invalid descriptor or memory that no device can use; the object's own exceptions propagate unchanged.

>>> import bascule
>>> x = bascule.device_array(4, "f4")
>>> bascule.as_cuda_array(x).stream == x.stream
True)");
    module.def(
        "from_cuda_array_interface", &from_cuda_array_interface, "descriptor"_a, "owner"_a = py::none(),
        py::kw_only(), "sync"_a = true,
        R"(View the memory that a `__cuda_array_interface__` dict describes, as `as_cuda_array` does. `owner` is kept alive; without one
the caller must keep the memory alive.

>>> import bascule
>>> x = bascule.device_array(4, "f4")
>>> bascule.from_cuda_array_interface(x.__cuda_array_interface__, owner=x).shape
(4,))");
    module.def("is_cuda_array", &is_cuda_array, "object"_a,
               R"(Whether `object` has a `__cuda_array_interface__` that `as_cuda_array` would read.

The attribute is read, because some libraries decide only then: AttributeError means no, and any other exception of the library
propagates unchanged (PyTorch raises RuntimeError for a tensor that requires a gradient, with what to do about it). The contents of the
descriptor are not checked. False for classes.

>>> import bascule
>>> bascule.is_cuda_array(bascule.device_array(4, "f4")), bascule.is_cuda_array([1, 2])
(True, False))");
}

}  // namespace bascule::python
