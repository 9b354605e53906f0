// Reads the `__cuda_array_interface__` of a Python object: once, from one snapshot.
#pragma once

#include <optional>

#include <bascule/interface/arrays/array_interface.hpp>

#include "support/gil.hpp"
#include "types/type_profile.hpp"

namespace bascule::python {

/// An array as its producer described it.
struct DescribedArray {
    ArrayView view;     ///< validated
    py::object mask{};  ///< the value of `mask`, not read yet; null if it is missing or None
};

namespace detail {

/// The slow path of call_interface, by the attribute's name. Throws: ArgumentError if `object` is a class.
PyObject* get_interface_by_name(PyObject* object);

}  // namespace detail

/// Reads `object.__cuda_array_interface__` exactly once. `getter` is the `interface` of its type's profile. Returns a
/// new reference, or null with Python's error set. Throws: ArgumentError if `object` is a class.
inline PyObject* call_interface(PyObject* object, PyObject* getter) {
    if (getter == nullptr) return detail::get_interface_by_name(object);
    const descrgetfunc get = Py_TYPE(getter)->tp_descr_get;
    Py_INCREF(getter);  // the class may be changed meanwhile
    PyObject* const found =
        into_python([&] { return get(getter, object, reinterpret_cast<PyObject*>(Py_TYPE(object))); });
    Py_DECREF(getter);
    return found;
}

/// Call this after call_interface has returned null. Clears an AttributeError and returns its message, or an empty text
/// for Python's own message. Throws: any other exception, unchanged.
std::string take_absence();

/// Like call_interface, but null if the attribute raises AttributeError, whose message goes to `absence`. Throws: as
/// call_interface and take_absence.
py::object get_interface(PyObject* object, PyObject* getter, std::string& absence);

/// Reads the array that a descriptor describes, by the fast path or else by the general one. Remembers the positions of
/// the dict's keys for the type `producer`. Throws: ArgumentError (type, missing_key, value) that names the key; a
/// producer's own exception unchanged.
DescribedArray read_descriptor(PyObject* descriptor, PyTypeObject* producer);

/// Reads `object.__cuda_array_interface__` exactly once. Empty if the attribute raises AttributeError, whose message
/// goes to `absence`. Throws: as get_interface and read_descriptor.
std::optional<DescribedArray> read_interface(PyObject* object, std::string& absence);

}  // namespace bascule::python
