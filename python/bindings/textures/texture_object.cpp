// bascule.texture and bascule.surface.
#include "textures/texture_object.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include <bascule/interface/errors/rejection.hpp>

#include "arrays/array_import.hpp"
#include "arrays/array_object.hpp"
#include "context/device_object.hpp"
#include "parts.hpp"
#include "support/gil.hpp"
#include "values/numpy_values.hpp"

namespace bascule::python {
namespace {

template <class Value>
using Names = std::initializer_list<std::pair<const char*, Value>>;

/// Looks up an enumerator by its name.
template <class Value>
Value named(const py::handle& given, const char* field, Names<Value> names) {
    const std::string text = py::isinstance<py::str>(given) ? given.cast<std::string>() : std::string();
    for (const auto& [name, value] : names) {
        if (text == name) return value;
    }
    std::string all;
    for (const auto& each : names) all += fmt::format("{}'{}'", all.empty() ? "" : ", ", each.first);
    reject_field(ErrorKind::value, field, "'{}' is one of {}, got {}.", field, all,
                 std::string(py::repr(given)));
}

AddressMode address_mode(const py::handle& given) {
    return named<AddressMode>(given, "address",
                              {{"wrap", AddressMode::wrap},
                               {"clamp", AddressMode::clamp},
                               {"mirror", AddressMode::mirror},
                               {"border", AddressMode::border}});
}

/// Reads one mode for all axes, or a tuple of modes for x, y, z.
std::array<AddressMode, 3> address_modes(const py::object& given) {
    std::array<AddressMode, 3> made{};
    if (!py::isinstance<py::tuple>(given) && !py::isinstance<py::list>(given)) {
        made.fill(address_mode(given));
        return made;
    }
    const auto count = static_cast<std::size_t>(py::len(given));
    if (count == 0 || count > made.size())
        reject_field(ErrorKind::value, "address",
                     "'address' has a mode for each of x, y and z, got {} of them.", count);
    for (std::size_t axis = 0; axis < made.size(); ++axis)
        made[axis] = address_mode(py::object(given[py::int_(std::min(axis, count - 1))]));
    return made;
}

/// Reads one number for all channels, or a tuple of numbers.
std::array<float, 4> border_color(const py::object& given) {
    std::array<float, 4> made{};
    if (!py::isinstance<py::tuple>(given) && !py::isinstance<py::list>(given)) {
        made.fill(given.cast<float>());
        return made;
    }
    const auto count = static_cast<std::size_t>(py::len(given));
    if (count > made.size())
        reject_field(ErrorKind::value, "border", "'border' has at most 4 numbers, got {}.", count);
    for (std::size_t c = 0; c < count; ++c) made[c] = py::object(given[py::int_(c)]).cast<float>();
    return made;
}

std::string describe_array(const CudaArray& array) {
    return fmt::format("a CUDA array of shape {} and dtype {}", bascule::to_string(array.shape()),
                       bascule::to_string(array.format().dtype));
}

TextureObject texture_of_memory(const py::object& array, const ArrayObject& source,
                                const TextureOptions& options) {
    Texture made = without_gil([&] { return Texture(source.view, options, source.device); });
    return {std::move(made), array, {source.view.pointer, bascule::describe(source.view)}};
}

TextureObject texture(const py::object& array, const py::object& address, const py::object& filter,
                      bool normalized, const py::object& read, bool srgb, const py::object& border,
                      int channels) {
    TextureOptions options;
    options.address = address_modes(address);
    options.filter =
        named<FilterMode>(filter, "filter", {{"point", FilterMode::point}, {"linear", FilterMode::linear}});
    options.read =
        named<ReadMode>(read, "read", {{"element", ReadMode::element}, {"normalized", ReadMode::normalized}});
    options.normalized = normalized;
    options.srgb = srgb;
    options.border = border_color(border);
    options.channels = channels;
    if (const CudaArrayObject* of = as_cuda_array_object(array.ptr())) {
        Texture made = without_gil([&] { return Texture(*of->array, options); });
        return {std::move(made), array, {0, describe_array(*of->array)}};
    }
    if (const ArrayObject* own = as_array(array.ptr())) return texture_of_memory(array, *own, options);
    if (const auto found = find_cuda_array(array, true)) return texture_of_memory(array, *found, options);
    reject_field(ErrorKind::type, "array",
                 "a texture is made of a device array or a bascule.CudaArray, got an object of type {}. "
                 "bascule.cuda_array(x) copies a host array.",
                 Py_TYPE(array.ptr())->tp_name);
}

SurfaceObject surface(const py::object& array) {
    const CudaArrayObject* of = as_cuda_array_object(array.ptr());
    if (of == nullptr) {
        reject_field(
            ErrorKind::type, "array",
            "a surface is made of a bascule.CudaArray, got an object of type {}: drivers have no surfaces over "
            "memory. Copy it by bascule.cuda_array(x, surface=True).",
            Py_TYPE(array.ptr())->tp_name);
    }
    Surface made = without_gil([&] { return Surface(*of->array); });
    return {std::move(made), array, {0, describe_array(*of->array)}};
}

std::string repr_of(const char* kind, const ImageSource& source, Device device) {
    return fmt::format("<bascule.{} of {}, on {}>", kind, source.description, to_string(device));
}

template <class Object>
void bind_properties(py::class_<Object>& type, const char* kind, auto image) {
    type.def_property_readonly(
            "array", [](const Object& self) { return self.array; },
            "What it was made of, which it keeps alive.")
        .def_property_readonly(
            "handle", [image](const Object& self) { return (self.*image).handle(); },
            "The driver's object, as an integer.")
        .def_property_readonly("device", [image](const Object& self) { return (self.*image).device(); })
        .def("__repr__", [kind, image](const Object& self) {
            return repr_of(kind, self.source, (self.*image).device());
        });
}

}  // namespace

ImageReference as_image(PyObject* object) {
    if (const auto* found = exact_value<TextureObject>(object, detail::texture_type))
        return {&found->texture.argument(), found->array.ptr(), &found->source, found->texture.device()};
    const auto* found = exact_value<SurfaceObject>(object, detail::surface_type);
    return {&found->surface.argument(), found->array.ptr(), &found->source, found->surface.device()};
}

void bind_textures(py::module_& module) {
    py::class_<TextureObject> texture_class(
        module, "Texture", py::is_final(), collected<TextureObject>(),
        "An array as kernels sample it, made by `bascule.texture`: an argument for a "
        "parameter of type cudaTextureObject_t.");
    bind_properties(texture_class, "Texture", &TextureObject::texture);
    py::class_<SurfaceObject> surface_class(
        module, "Surface", py::is_final(), collected<SurfaceObject>(),
        "A CUDA array as kernels write it, made by `bascule.surface`: an argument for "
        "a parameter of type cudaSurfaceObject_t.");
    bind_properties(surface_class, "Surface", &SurfaceObject::surface);
    detail::texture_type = reinterpret_cast<PyTypeObject*>(texture_class.ptr());
    detail::surface_type = reinterpret_cast<PyTypeObject*>(surface_class.ptr());
    module.def(
        "texture", &texture, "array"_a, py::kw_only(), "address"_a = "clamp", "filter"_a = "point",
        "normalized"_a = false, "read"_a = "element", "srgb"_a = false, "border"_a = 0.0, "channels"_a = 1,
        R"(Make a texture of an array: what kernels sample by coordinates, with filtering and rules for what lies outside.

array : a device array of one dimension (tex1Dfetch) or two (tex2D), read where it lies and kept alive; or a CudaArray of any kind. The
rows of memory are a multiple of 32 bytes apart; what does not fit can be copied by `bascule.cuda_array`.
address : 'clamp', 'border', 'wrap' or 'mirror', or a tuple of one each for x, y and z. The last two need normalized=True.
filter : 'point' or 'linear'.
normalized : coordinates go from 0 to 1, not to the extents.
read : 'element', or 'normalized': integers of 8 and 16 bits are read as float, from 0 or -1 to 1.
srgb : uint8 that is read as float is sRGB.
border : what is read outside with 'border': a number, or a tuple of one for each channel.
channels : 2 or 4: the last axis of memory has so many, for float2, uchar4 and the like. A CudaArray knows its own.

The kernel declares `cudaTextureObject_t`. A launch is ordered with the array's stream as if it took the array.

Raises ArgumentError, also for options that a driver would ignore, and CudaError.

>>> import numpy as np, bascule
>>> module = bascule.compile('''
... __global__ void half(cudaTextureObject_t image, float* out) {
...     out[threadIdx.x] = tex2D<float>(image, threadIdx.x + 1.0f, 0.5f);
... }''')
>>> image = bascule.to_device(np.arange(16, dtype="f4").reshape(2, 8))
>>> out = bascule.device_array(4, "f4")
>>> module.half[1, 4](bascule.texture(image, filter="linear"), out)
>>> out.copy_to_host()
array([0.5, 1.5, 2.5, 3.5], dtype=float32))");
    module.def(
        "surface", &surface, "array"_a,
        R"(Make a surface of a CudaArray that was made with surface=True: kernels read and write it by coordinates.

The kernel declares `cudaSurfaceObject_t`; x counts bytes there. A launch is ordered with the array's stream.

>>> import bascule
>>> module = bascule.compile('''
... __global__ void count(cudaSurfaceObject_t s) { surf2Dwrite(threadIdx.x, s, 4 * threadIdx.x, 0); }''')
>>> array = bascule.CudaArray((1, 4), "u4", surface=True)
>>> module.count[1, 4](bascule.surface(array))
>>> array.copy_to_host()
array([[0, 1, 2, 3]], dtype=uint32))");
}

}  // namespace bascule::python
