#include "array_creation.hpp"

#include <string>

#include <fmt/format.h>

#include <bascule/interface/error.hpp>
#include <bascule/runtime/driver.hpp>
#include <bascule/runtime/emulated_device.hpp>

#include "descr.hpp"
#include "device_object.hpp"
#include "mask.hpp"
#include "numpy_values.hpp"

namespace py = pybind11;
using namespace py::literals;

namespace bascule::python {
namespace {

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

ArrayObject device_array(const py::object& shape, const py::object& dtype, const py::object& stream) {
    const py::object element = numpy().attr("dtype")(dtype);
    return allocate(to_shape(shape), dtype_of(element), numpy_layout(element), false, stream);
}

ArrayObject to_device(const py::object& object, const py::object& stream) {
    if (is_numpy_masked(object)) {
        ArrayObject array = to_device(object.attr("data"), stream);
        upload_mask(array, object);
        return array;
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

}  // namespace

ArrayObject allocate(const Dimensions& shape, DType dtype, std::shared_ptr<const StructLayout> layout,
                     bool fortran, const py::object& stream) {
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
    view.dtype = dtype;
    view.layout = std::move(layout);
    auto buffer = std::make_shared<DeviceBuffer>(view.size * dtype.itemsize, device);
    view.pointer = buffer->address();
    tell_where_made(view.pointer);
    ArrayObject array{view, device, std::move(buffer), py::none(), py::none()};
    bind_stream(array, stream_to_bind(stream, device));
    return array;
}

void bind_array_creation(py::module_& module) {
    module.def("to_device", &to_device, "array"_a, py::kw_only(), "stream"_a = py::none(),
               R"(Copy a host array to a new DeviceArray bound to `stream` (None: the default stream).)");
    module.def("device_array", &device_array, "shape"_a, "dtype"_a = "float32", py::kw_only(),
               "stream"_a = py::none(), "A new DeviceArray with undefined contents.");
}

}  // namespace bascule::python
