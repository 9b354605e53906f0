// bascule.CudaArray, bascule.Texture and bascule.Surface.
#pragma once

#include <memory>
#include <string>

#include <bascule/runtime/textures/texture.hpp>

#include "classes/collected.hpp"
#include "classes/simple_value.hpp"
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

inline bool is_image(PyObject* object) noexcept {
    return exact_value<TextureObject>(object, detail::texture_type) != nullptr ||
           exact_value<SurfaceObject>(object, detail::surface_type) != nullptr;
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
    return exact_value<CudaArrayObject>(object, detail::cuda_array_type);
}

}  // namespace bascule::python
