// Reads the `__cuda_array_interface__` of a Python object: once, from one snapshot.
#pragma once

#include <memory>
#include <string>

#include <pybind11/pybind11.h>

#include <bascule/interface/array_interface.hpp>

namespace bascule::python {

/// One read of a producer's descriptor. Keeps what `raw` borrows from.
struct InterfaceSnapshot {
    RawInterface raw;
    pybind11::object mask;  ///< what `mask` names, unread; null where it is missing or None
    pybind11::object typestr;
    std::shared_ptr<const StructLayout> layout;  ///< of `descr`, where it names fields
    std::string absence;  ///< why there is no descriptor: the words of the AttributeError
};

/// Reads `object.__cuda_array_interface__` exactly once. False when the attribute raises AttributeError.
/// Throws: ArgumentError (type, missing_key, value) that names the key; a producer's own exception unchanged.
bool read_interface(PyObject* object, InterfaceSnapshot& snapshot);

/// The fields of a descriptor. Throws as above.
void read_descriptor(PyObject* descriptor, InterfaceSnapshot& snapshot);

}  // namespace bascule::python
