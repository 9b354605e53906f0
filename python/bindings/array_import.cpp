#include "array_import.hpp"

#include <string>

#include <fmt/format.h>

#include <bascule/interface/error.hpp>
#include <bascule/runtime/device.hpp>

#include "array_object.hpp"
#include "device_object.hpp"
#include "interface_reader.hpp"
#include "mask.hpp"
#include "stream_object.hpp"

namespace py = pybind11;
using namespace py::literals;

namespace bascule::python {
namespace {

/// A view of memory that somebody else owns, with the producer's stream bound, or none with sync=False.
ArrayObject wrap(const InterfaceSnapshot& snapshot, py::object owner, bool sync) {
    const Device device = current_device();
    ArrayObject array{resolve(validate(snapshot.raw), device), device, nullptr, std::move(owner), py::none()};
    array.view.layout = snapshot.layout;
    if (!sync) {
        array.view.has_stream = false;
        array.view.stream = 0;
        import_mask(array, snapshot.mask, sync);
        return array;
    }
    const StreamRef stream =
        array.view.has_stream ? StreamRef(array.view.stream, device) : default_stream(device);
    bind_stream(array, py::cast(StreamObject{nullptr, stream, array.owner}));
    import_mask(array, snapshot.mask, sync);
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

}  // namespace

void bind_array_import(py::module_& module) {
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
