// bascule.CudaArray, and copies from and to it.
#include <algorithm>
#include <utility>
#include <vector>

#include <bascule/interface/errors/rejection.hpp>

#include "arrays/array_import.hpp"
#include "arrays/array_object.hpp"
#include "context/device_object.hpp"
#include "context/stream_object.hpp"
#include "parts.hpp"
#include "support/gil.hpp"
#include "support/owners.hpp"
#include "textures/texture_object.hpp"
#include "values/numpy_values.hpp"

namespace bascule::python {
namespace {

CudaArrayObject make(const std::vector<std::int64_t>& shape, DType dtype, const CudaArrayOptions& options,
                     Device device, const py::object& stream) {
    const py::object bound = stream_object_or_current(stream, device, "CUDA array");
    const StreamRef target = bound.cast<const StreamObject&>().ref;
    auto array = without_gil([&] { return std::make_shared<CudaArray>(shape, dtype, options, target); });
    return {std::move(array), bound};
}

CudaArrayObject make_undefined(const py::object& shape, const py::object& dtype, int channels, bool layered,
                               bool cube, bool surface, bool gather, const py::object& stream) {
    const Dimensions extents = to_shape(shape);
    return make({extents.begin(), extents.end()}, dtype_of(to_dtype(dtype)),
                {channels, layered, cube, surface, gather}, current_device(), stream);
}

/// The stream of a copy: the given one, else the array's.
StreamRef copy_stream_of(const CudaArray& array, const py::object& given) {
    if (given.is_none()) return array.stream();
    return stream_or_current(given, array.stream().device(), "CUDA array");
}

void check_same(const CudaArray& array, const Dimensions& shape, DType dtype) {
    if (std::ranges::equal(shape, array.shape()) && dtype == array.format().dtype) return;
    reject_field(ErrorKind::value, "array",
                 "the CUDA array has shape {} and dtype {}, got shape {} and dtype {}.",
                 bascule::to_string(array.shape()), bascule::to_string(array.format().dtype),
                 bascule::to_string(shape), bascule::to_string(dtype));
}

void copy_from_device(const CudaArray& array, const ArrayObject& source, PyObject* owner, StreamRef stream) {
    check_same(array, source.view.shape, source.view.dtype);
    if (source.view.mask != nullptr)
        reject_field(ErrorKind::type, "array", "a CUDA array has no mask, and the array has one.");
    if (!source.view.c_contiguous) {
        reject_field(ErrorKind::value, "array", "the array must be C-contiguous, got {}. Pass a copy of it.",
                     bascule::describe(source.view));
    }
    std::vector<Producer> producers{{{array.stream().handle()}}};
    if (source.view.stream) producers.push_back({producer_stream(source.bound_stream(), stream.device())});
    OwnerList owners;
    owners.keep(owner, source.view);
    without_gil([&] { array.copy_from_device(stream, source.view.pointer, producers, owners.transfer()); });
}

void copy_from_host(const CudaArray& array, const py::object& host, StreamRef stream) {
    const py::object packed = numpy().attr("ascontiguousarray")(host).attr("reshape")(host.attr("shape"));
    check_same(array, to_shape(packed.attr("shape")), dtype_of(packed.attr("dtype")));
    const Producer own{{array.stream().handle()}};
    OwnerList owners;
    owners.keep(packed.ptr(), 0);  // pinned memory is read asynchronously
    const void* address = host_address_of(packed);
    without_gil([&] { array.copy_from_host(stream, address, {&own, 1}, owners.transfer()); });
}

/// Converts a device array; empty for arrays in host memory.
std::optional<ArrayObject> on_device(const py::object& array) {
    if (const ArrayObject* own = as_array(array.ptr())) return view_of(*own, own->view);
    return find_cuda_array(array, true);
}

void copy_array_from(const CudaArrayObject& self, const py::object& array, const py::object& stream) {
    const StreamRef target = copy_stream_of(*self.array, stream);
    if (const auto source = on_device(array))
        return copy_from_device(*self.array, *source, array.ptr(), target);
    copy_from_host(*self.array, numpy().attr("asarray")(array), target);
}

CudaArrayObject copied_array(const py::object& array, int channels, bool layered, bool cube, bool surface,
                             bool gather, const py::object& stream) {
    const CudaArrayOptions options{channels, layered, cube, surface, gather};
    if (const auto source = on_device(array)) {
        const Dimensions& shape = source->view.shape;
        CudaArrayObject made =
            make({shape.begin(), shape.end()}, source->view.dtype, options, source->device, stream);
        copy_from_device(*made.array, *source, array.ptr(), made.array->stream());
        return made;
    }
    const py::object host = numpy().attr("asarray")(array);
    const Dimensions shape = to_shape(host.attr("shape"));
    CudaArrayObject made =
        make({shape.begin(), shape.end()}, dtype_of(host.attr("dtype")), options, current_device(), stream);
    copy_from_host(*made.array, host, made.array->stream());
    return made;
}

py::object host_copy_of(const CudaArrayObject& self, const py::object& stream) {
    const CudaArray& array = *self.array;
    py::object out = numpy().attr("empty")(to_tuple(array.shape()), numpy_dtype(array.format().dtype));
    const StreamRef source = copy_stream_of(array, stream);
    const Producer own{{array.stream().handle()}};
    void* const address = host_address_of(out);
    without_gil([&] { array.copy_to_host(source, address, {&own, 1}); });
    return out;
}

std::string repr_of_cuda_array(const CudaArrayObject& self) {
    const CudaArray& array = *self.array;
    const CudaArrayOptions& options = array.options();
    std::string text = fmt::format("<bascule.CudaArray shape={} dtype={}", bascule::to_string(array.shape()),
                                   bascule::to_string(array.format().dtype));
    if (options.channels > 1) text += fmt::format(" channels={}", options.channels);
    for (const auto& [set, name] :
         {std::pair{options.layered, "layered"}, std::pair{options.cube, "cube"},
          std::pair{options.surface, "surface"}, std::pair{options.gather, "gather"}}) {
        if (set) text += fmt::format(" {}", name);
    }
    return text + fmt::format(" on {}>", to_string(array.stream().device()));
}

}  // namespace

void bind_cuda_arrays(py::module_& module) {
    py::class_<CudaArrayObject> type(
        module, "CudaArray", py::is_final(), collected<CudaArrayObject>(),
        R"(Memory in a layout of the driver's own, which textures sample and surfaces write.

It has no address: kernels reach it through `bascule.texture` and `bascule.surface`, and copies go in and out.
Launches and copies are ordered with its stream, as with that of a DeviceArray.

shape : as in NumPy, the width last: (width,), (height, width) or (depth, height, width), followed by the channels if
there are several. Contents are undefined; `bascule.cuda_array` copies an array.
dtype : integers of 8, 16 and 32 bits, float16 and float32.
channels : 1, 2 or 4. If there are several, the shape's last axis has this length.
layered : the first axis counts layers: tex1DLayered, tex2DLayered, texCubemapLayered.
cube : the first axis counts the six faces +x, -x, +y, -y, +z, -z: texCubemap. With layered=True it counts six for each layer.
surface : a surface may write it.
gather : tex2Dgather may read it.
stream : bound to the array; None means the current stream, else the default stream.

Raises ArgumentError for a shape, a dtype or an option that no device supports, and CudaError.

>>> import bascule
>>> bascule.CudaArray((480, 640, 4), "u1", channels=4, surface=True).nbytes
1228800)");
    type.def(py::init(&make_undefined), "shape"_a, "dtype"_a = "float32", py::kw_only(), "channels"_a = 1,
             "layered"_a = false, "cube"_a = false, "surface"_a = false, "gather"_a = false,
             "stream"_a = py::none())
        .def_property_readonly("shape",
                               [](const CudaArrayObject& self) { return to_tuple(self.array->shape()); })
        .def_property_readonly(
            "dtype", [](const CudaArrayObject& self) { return numpy_dtype(self.array->format().dtype); })
        .def_property_readonly("channels",
                               [](const CudaArrayObject& self) { return self.array->format().channels; })
        .def_property_readonly("nbytes", [](const CudaArrayObject& self) { return self.array->bytes(); })
        .def_property_readonly("layered",
                               [](const CudaArrayObject& self) { return self.array->options().layered; })
        .def_property_readonly("cube", [](const CudaArrayObject& self) { return self.array->options().cube; })
        .def_property_readonly(
            "stream", [](const CudaArrayObject& self) { return self.stream; },
            "The stream that orders what uses the array.")
        .def_property_readonly("device",
                               [](const CudaArrayObject& self) { return self.array->stream().device(); })
        .def(
            "copy_from", &copy_array_from, "array"_a, py::kw_only(), "stream"_a = py::none(),
            R"(Copy an array of the same shape and dtype, on the device or the host, in the order of `stream` (None: the array's own).

A host array may be changed when this returns, unless its memory is pinned.

>>> import numpy as np, bascule
>>> array = bascule.CudaArray((2, 3))
>>> array.copy_from(np.ones((2, 3), "f4")))")
        .def(
            "copy_to_host", &host_copy_of, py::kw_only(), "stream"_a = py::none(),
            R"(Copy to a NumPy array, after all work enqueued on `stream` (None: the array's own) and on the array's stream; wait.

>>> import numpy as np, bascule
>>> bascule.cuda_array(np.arange(3, dtype="f4")).copy_to_host()
array([0., 1., 2.], dtype=float32))")
        .def("__repr__", &repr_of_cuda_array);
    detail::cuda_array_type = reinterpret_cast<PyTypeObject*>(type.ptr());
    module.def("cuda_array", &copied_array, "array"_a, py::kw_only(), "channels"_a = 1, "layered"_a = false,
               "cube"_a = false, "surface"_a = false, "gather"_a = false, "stream"_a = py::none(),
               R"(Copy an array, on the device or the host, to a new CudaArray, in the order of `stream`.

array : any C-contiguous device array, or a host array; its shape and dtype are the new one's.
channels, layered, cube, surface, gather, stream : as for `bascule.CudaArray`.

>>> import numpy as np, bascule
>>> volume = bascule.cuda_array(np.zeros((8, 16, 32), "f4"))
>>> bascule.texture(volume, filter="linear")
<bascule.Texture of a CUDA array of shape (8, 16, 32) and dtype float32, on emulated:0>)");
}

}  // namespace bascule::python
