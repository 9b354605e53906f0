// Reads the `__cuda_array_interface__` of a Python object: once, from one snapshot.
#pragma once

#include <memory>
#include <string>

#include <bascule/interface/arrays/array_interface.hpp>

#include "support/gil.hpp"
#include "support/pybind.hpp"
#include "types/type_profile.hpp"

namespace bascule::python {

/// One read of a producer's descriptor. Keeps what `raw` borrows from.
struct InterfaceSnapshot {
    RawInterface raw;
    pybind11::object mask;  ///< what `mask` names, unread; null where it is missing or None
    pybind11::object typestr;
    std::shared_ptr<const StructLayout> layout;  ///< of `descr`, where it names fields
    std::string absence;  ///< why there is no descriptor, in the object's own words, if it has any
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

/// The array that the descriptor of `object` describes; what it masks goes to `mask`. Throws as read_interface.
ArrayView read_view(PyObject* object, PyObject* descriptor, pybind11::object& mask);

/// Reads `object.__cuda_array_interface__` exactly once. False when the attribute raises AttributeError.
/// Throws: ArgumentError (type, missing_key, value) that names the key; a producer's own exception unchanged.
bool read_interface(PyObject* object, InterfaceSnapshot& snapshot);

/// The fields of a descriptor. Allocates nothing where it is a dict whose values are tuples and ints of at
/// most 62 bits. Throws as above.
void read_descriptor(PyObject* descriptor, InterfaceSnapshot& snapshot);

}  // namespace bascule::python
