// bascule.CudaArray, bascule.Texture and bascule.Surface.
#pragma once

#include <memory>
#include <string>

#include <pybind11/pybind11.h>

#include <bascule/runtime/textures/texture.hpp>

#include "classes/collected.hpp"

namespace bascule::python {

/// The value of a bascule.CudaArray. `array` is never null.
struct CudaArrayObject {
    std::shared_ptr<CudaArray> array;
    pybind11::object stream;  ///< the bound stream's object, kept alive

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
    pybind11::object array;  ///< any array or a CudaArray, kept alive by the texture
    ImageSource source;

    void visit_references(ReferenceVisitor& each) { each.only_look_at(array.ptr()); }
};

/// The value of a bascule.Surface.
struct SurfaceObject {
    Surface surface;
    pybind11::object array;  ///< the CudaArray, kept alive
    ImageSource source;

    void visit_references(ReferenceVisitor& each) { each.only_look_at(array.ptr()); }
};

namespace detail {
inline PyTypeObject* texture_type = nullptr;  // set once by bind_textures; the module owns it
inline PyTypeObject* surface_type = nullptr;
inline PyTypeObject* cuda_array_type = nullptr;
}  // namespace detail

namespace detail {
/// The value of an object of exactly this class; null for other objects, and for uninitialised ones.
template <class T>
const T* value_of(PyObject* object, const PyTypeObject* type) noexcept {
    if (Py_TYPE(object) != type) return nullptr;
    // The value's position in pybind11's simple layout: one base class, and a holder of one pointer.
    const auto* instance = reinterpret_cast<const pybind11::detail::instance*>(object);
    return static_cast<const T*>(instance->simple_value_holder[0]);
}
}  // namespace detail

inline bool is_image(PyObject* object) noexcept {
    return detail::value_of<TextureObject>(object, detail::texture_type) != nullptr ||
           detail::value_of<SurfaceObject>(object, detail::surface_type) != nullptr;
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
    return detail::value_of<CudaArrayObject>(object, detail::cuda_array_type);
}

}  // namespace bascule::python
