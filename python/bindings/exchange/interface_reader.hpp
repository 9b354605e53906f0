// Reads the `__cuda_array_interface__` of a Python object: once, from one snapshot.
#pragma once

#include <memory>
#include <string>

#include <pybind11/pybind11.h>

#include <bascule/interface/arrays/array_interface.hpp>
#include <bascule/interface/arrays/plain_array.hpp>

#include "exchange/type_profile.hpp"

namespace bascule::python {

/// One read of a producer's descriptor. Keeps what `raw` borrows from.
struct InterfaceSnapshot {
    RawInterface raw;
    pybind11::object mask;  ///< what `mask` names, unread; null where it is missing or None
    pybind11::object typestr;
    std::shared_ptr<const StructLayout> layout;  ///< of `descr`, where it names fields
    std::string absence;  ///< why there is no descriptor, in the object's own words, if it has any
};

/// `object.__cuda_array_interface__`, read exactly once, by the `interface` of its type's profile; null when it raises
/// AttributeError, whose words go to `absence`, unless they are Python's own or it is null. Throws: ArgumentError for
/// a class in place of an object; a producer's own exception unchanged.
pybind11::object get_interface(PyObject* object, PyObject* getter, std::string* absence);

/// Reads a descriptor that is what most producers say: a dict of tuples, short ints and a typestr of numbers, C
/// order, not empty, no mask, no fields, and nothing wrong. read_descriptor and validate would take it too. False for all
/// others; then `array` is half written. The extents go to `shape`, unless it is null. `keys` says where the keys were
/// last. Runs no Python code and allocates nothing.
bool read_plainly(PyObject* descriptor, KeyOrder& keys, PlainArray& array, Dimensions* shape) noexcept;

/// The descriptor of `object`, by all rules; what it masks goes to `mask`. Throws as read_interface.
ArrayView read_view(PyObject* object, PyObject* descriptor, pybind11::object& mask);

/// Reads `object.__cuda_array_interface__` exactly once. False when the attribute raises AttributeError.
/// Throws: ArgumentError (type, missing_key, value) that names the key; a producer's own exception unchanged.
bool read_interface(PyObject* object, InterfaceSnapshot& snapshot);

/// The fields of a descriptor. Allocates nothing where it is a dict whose values are tuples and ints of at
/// most 62 bits. Throws as above.
void read_descriptor(PyObject* descriptor, InterfaceSnapshot& snapshot);

void bind_interface_reader(pybind11::module_& module);

}  // namespace bascule::python
