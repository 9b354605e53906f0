// bascule.CudaArray, bascule.Texture and bascule.Surface.
#pragma once

#include <memory>
#include <string>

#include <bascule/runtime/textures/texture.hpp>

#include "classes/collected.hpp"
#include "support/pybind.hpp"

namespace bascule::python {

/// bascule.CudaArray. Never null.
struct CudaArrayObject {
    std::shared_ptr<CudaArray> array;
    pybind11::object stream;  ///< the bound stream's object, kept alive

    void visit_references(ReferenceVisitor& each) { each(stream); }
};

/// What a texture or surface was made of.
struct ImageSource {
    std::uint64_t pointer = 0;  ///< of the array when the texture was made; 0 for a CudaArray
    std::string description;    ///< "a float32 array of shape (4, 4)"
};

/// bascule.Texture.
struct TextureObject {
    Texture texture;
    pybind11::object array;  ///< what it reads, kept alive for as long: any array, or a CudaArray
    ImageSource source;

    void visit_references(ReferenceVisitor& each) { each.only_look_at(array.ptr()); }
};

/// bascule.Surface.
struct SurfaceObject {
    Surface surface;
    pybind11::object array;  ///< the CudaArray, kept alive
    ImageSource source;

    void visit_references(ReferenceVisitor& each) { each.only_look_at(array.ptr()); }
};

namespace detail {
inline PyTypeObject* texture_type = nullptr;  // set once by bind_textures, held by the module
inline PyTypeObject* surface_type = nullptr;
inline PyTypeObject* cuda_array_type = nullptr;
}  // namespace detail

namespace detail {
/// The value inside an object of that class; null for others, and for one that was never initialised.
template <class T>
const T* value_of(PyObject* object, const PyTypeObject* type) noexcept {
    if (Py_TYPE(object) != type) return nullptr;
    // Where pybind11's simple layout has the value: one base, and a holder of one pointer.
    const auto* instance = reinterpret_cast<const pybind11::detail::instance*>(object);
    return static_cast<const T*>(instance->simple_value_holder[0]);
}
}  // namespace detail

inline bool is_image(PyObject* object) noexcept {
    return detail::value_of<TextureObject>(object, detail::texture_type) != nullptr ||
           detail::value_of<SurfaceObject>(object, detail::surface_type) != nullptr;
}

/// A texture or surface as an argument; the object has what is pointed to.
struct ImageReference {
    const ImageArgument* argument;
    PyObject* array;
    const ImageSource* source;
    Device device;
};
/// Of an object for which is_image holds.
ImageReference as_image(PyObject* object);

/// Null for every other object.
inline const CudaArrayObject* as_cuda_array_object(PyObject* object) noexcept {
    return detail::value_of<CudaArrayObject>(object, detail::cuda_array_type);
}

}  // namespace bascule::python
