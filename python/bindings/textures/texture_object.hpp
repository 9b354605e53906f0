// bascule.CudaArray, bascule.Texture and bascule.Surface.
#pragma once

#include <memory>
#include <string>

#include <bascule/runtime/textures/texture.hpp>

#include "classes/collected.hpp"
#include "classes/simple_value.hpp"
#include "support/pybind.hpp"

namespace bascule::python {

/// The value of a bascule.CudaArray. `array` is never null.
struct CudaArrayObject {
    std::shared_ptr<CudaArray> array;
    py::object stream;  ///< the bound stream's object, kept alive

    void visit_references(ReferenceVisitor& each) { each(stream); }
};

/// Describes the array of a texture or surface.
struct ImageSource {
    std::uint64_t pointer = 0;  ///< the array's address when the texture was made; 0 for a CudaArray
    std::string description;    ///< "a float32 array of shape (4, 4)"
};

/// The value of a bascule.Texture.
struct TextureObject {
    Texture texture;
    py::object array;  ///< any array or a CudaArray, kept alive by the texture
    ImageSource source;

    void visit_references(ReferenceVisitor& each) { each.only_look_at(array.ptr()); }
};

/// The value of a bascule.Surface.
struct SurfaceObject {
    Surface surface;
    py::object array;  ///< the CudaArray, kept alive
    ImageSource source;

    void visit_references(ReferenceVisitor& each) { each.only_look_at(array.ptr()); }
};

namespace detail {
inline PyTypeObject* texture_type = nullptr;  // set once by bind_textures; the module owns it
inline PyTypeObject* surface_type = nullptr;
inline PyTypeObject* cuda_array_type = nullptr;
}  // namespace detail

inline bool is_image(PyObject* object) noexcept {
    return exact_value<TextureObject>(object, detail::texture_type) != nullptr ||
           exact_value<SurfaceObject>(object, detail::surface_type) != nullptr;
}

/// A texture or surface as an argument. Borrows from the object.
struct ImageReference {
    const ImageArgument* argument;
    PyObject* array;
    const ImageSource* source;
    Device device;
};
/// Converts an object for which is_image is true.
ImageReference as_image(PyObject* object);

/// Null for all other objects.
inline const CudaArrayObject* as_cuda_array_object(PyObject* object) noexcept {
    return exact_value<CudaArrayObject>(object, detail::cuda_array_type);
}

}  // namespace bascule::python
