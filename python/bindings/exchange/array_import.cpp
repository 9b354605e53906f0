#include "exchange/array_import.hpp"

#include <atomic>
#include <cstdlib>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include <bascule/interface/errors/error.hpp>
#include <bascule/interface/errors/shortened.hpp>
#include <bascule/runtime/driver/home_device.hpp>

#include "arrays/mask.hpp"
#include "context/device_object.hpp"
#include "context/stream_object.hpp"
#include "exchange/interface_reader.hpp"
#include "exchange/producer_streams.hpp"
#include "support/gil.hpp"
#include "support/names.hpp"

namespace py = pybind11;
using namespace py::literals;

namespace bascule::python {
namespace {

/// A view of memory that somebody else owns, with the producer's stream bound, or none with sync=False. Null
/// for `producer`: a descriptor without the object that it is of.
ArrayObject wrap(const InterfaceSnapshot& snapshot, py::object owner, bool sync, PyObject* producer) {
    Home home{.device = current_device()};
    ArrayView view = validate(snapshot.raw);
    resolve_at_home(view, home);
    const Device device = home.device;
    ArrayObject array{std::move(view), device, nullptr, std::move(owner), py::none()};
    if (array.view.dtype.kind == DType::Kind::bit) {
        throw ArgumentError(
            ArgumentError::Kind::value,
            fmt::format("'typestr' of __cuda_array_interface__ is \"{}\": arrays of single bits "
                        "are masks of other arrays, and no arrays themselves.",
                        shortened(snapshot.raw.typestr)),
            {.field = "typestr"});
    }
    array.view.layout = snapshot.layout;
    if (!sync || !interface_sync()) {
        array.view.has_stream = false;
        array.view.stream = 0;
        import_mask(array, snapshot.mask, sync);
        return array;
    }
    py::object kept = array.owner;
    if (needs_stream(array.view) && producer != nullptr) {
        const StreamRef consumer = stream_or_current(py::none(), device, "array");
        if (const py::object also = find_stream(producer, device, consumer, array.view)) {
            kept = py::make_tuple(array.owner, also);
        }
    }
    if (array.view.has_stream) {
        bind_stream(array, py::cast(StreamObject{nullptr, StreamRef(array.view.stream, device), kept}));
    } else {
        bind_stream(array, stream_to_bind(py::none(), device));
    }
    import_mask(array, snapshot.mask, sync);
    return array;
}

ArrayObject from_cuda_array_interface(const py::object& descriptor, py::object owner, bool sync) {
    InterfaceSnapshot snapshot;
    read_descriptor(descriptor.ptr(), snapshot);
    return wrap(snapshot, std::move(owner), sync, nullptr);
}

/// BASCULE_CUDA_ARRAY_INTERFACE_SYNC: "0" or "1", on when it is not set.
bool sync_by_environment() {
    const char* value = std::getenv("BASCULE_CUDA_ARRAY_INTERFACE_SYNC");
    const std::string_view text = value == nullptr ? "" : value;
    if (text.empty() || text == "1") return true;
    if (text == "0") return false;
    throw ArgumentError(ArgumentError::Kind::value,
                        fmt::format("BASCULE_CUDA_ARRAY_INTERFACE_SYNC is '{}': set it to 1 (foreign arrays' "
                                    "streams are waited for) or 0 (they are not), or unset it.",
                                    shortened(text)),
                        {.field = "BASCULE_CUDA_ARRAY_INTERFACE_SYNC"});
}

std::atomic<bool> syncs{true};

}  // namespace

bool interface_sync() noexcept { return syncs.load(std::memory_order_relaxed); }

bool is_cuda_array(const py::object& object) {
    if (PyType_Check(object.ptr()) != 0) return false;
    const auto descriptor = py::reinterpret_steal<py::object>(
        into_python([&] { return PyObject_GetAttr(object.ptr(), names().cuda_array_interface); }));
    if (!descriptor) {
        if (PyErr_ExceptionMatches(PyExc_AttributeError) == 0) throw py::error_already_set();
        PyErr_Clear();
        return false;
    }
    return PyDict_Check(descriptor.ptr()) || py::hasattr(descriptor, "keys");
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
    return wrap(snapshot, object, sync, object.ptr());
}

void bind_array_import(py::module_& module) {
    module.def(
        "as_cuda_array", &as_cuda_array, "object"_a, py::kw_only(), "sync"_a = true,
        R"(View any object with `__cuda_array_interface__` as a DeviceArray, without a copy; the object is kept alive.

The producer's stream becomes the view's own: later operations are ordered with it on the device, and the host never waits (Numba
waits here). With sync=False, or `bascule.config.cuda_array_interface_sync` off, the stream is ignored for the life of the view, which
names none itself.

>>> import bascule
>>> x = bascule.device_array(4, "f4")
>>> bascule.as_cuda_array(x).stream == x.stream
True)");
    module.def("from_cuda_array_interface", &from_cuda_array_interface, "descriptor"_a,
               "owner"_a = py::none(), py::kw_only(), "sync"_a = true,
               R"(The same from a descriptor; `owner` is kept alive, otherwise the caller keeps the memory.

>>> import bascule
>>> x = bascule.device_array(4, "f4")
>>> bascule.from_cuda_array_interface(x.__cuda_array_interface__, owner=x).shape
(4,))");
    module.def("is_cuda_array", &is_cuda_array, "object"_a,
               R"(Whether `object` has a `__cuda_array_interface__` that `as_cuda_array` would read.

The attribute is read, since some libraries decide only then: AttributeError means no, and any other exception of the library comes
out as it is (PyTorch raises RuntimeError for a tensor that requires a gradient, with what to do about it). What the descriptor says
is not checked. A class is no array.

>>> import bascule
>>> bascule.is_cuda_array(bascule.device_array(4)), bascule.is_cuda_array([1, 2])
(True, False))");
    module.def("_interface_sync", [] {
        syncs.store(sync_by_environment());
        return interface_sync();
    });
    module.def(
        "_set_interface_sync", [](bool on) { syncs.store(on); }, "on"_a);
}

}  // namespace bascule::python
