// Reads the `__cuda_array_interface__` of a Python object: once, from one snapshot.
#pragma once

#include <optional>
#include <string>

#include <bascule/interface/arrays/array_interface.hpp>

#include "support/gil.hpp"
#include "support/pybind.hpp"
#include "types/type_profile.hpp"

namespace bascule::python {

/// An array as its producer described it.
struct DescribedArray {
    ArrayView view;           ///< validated
    pybind11::object mask{};  ///< what `mask` names, unread; null where it is missing or None
};

namespace detail {

/// As call_interface. Throws: ArgumentError for a class in place of an object.
PyObject* get_interface_by_name(PyObject* object);

}  // namespace detail

/// `object.__cuda_array_interface__`, read exactly once, by the `interface` of its type's profile: a new reference, or null
/// with Python's error set. Throws: ArgumentError for a class in place of an object.
inline PyObject* call_interface(PyObject* object, PyObject* getter) {
    if (getter == nullptr) return detail::get_interface_by_name(object);
    const descrgetfunc get = Py_TYPE(getter)->tp_descr_get;
    Py_INCREF(getter);  // the class may be changed meanwhile
    PyObject* const found =
        into_python([&] { return get(getter, object, reinterpret_cast<PyObject*>(Py_TYPE(object))); });
    Py_DECREF(getter);
    return found;
}

/// After call_interface has failed: clears an AttributeError, and returns its words, unless they are Python's own. Throws:
/// any other exception, unchanged.
std::string take_absence();

/// The same as call_interface; null when the attribute raises AttributeError, whose words go to `absence`. Throws: as both.
pybind11::object get_interface(PyObject* object, PyObject* getter, std::string& absence);

/// The array that a descriptor describes: the fast path, else the general one, which allocates nothing where the descriptor is a
/// dict whose values are tuples and ints of at most 62 bits. What is learned of such dicts is
/// remembered of `producer`. Throws:
/// ArgumentError (type, missing_key, value) that names the key; a producer's own exception unchanged.
DescribedArray read_descriptor(PyObject* descriptor, PyTypeObject* producer);

/// Reads `object.__cuda_array_interface__` exactly once. Nothing when the attribute raises AttributeError, whose words go to
/// `absence`. Throws: as both.
std::optional<DescribedArray> read_interface(PyObject* object, std::string& absence);

}  // namespace bascule::python
