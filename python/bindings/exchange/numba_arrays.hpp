// Reads arrays of numba-cuda without calling their `__cuda_array_interface__`, a Python property that takes longer than
// the rest of a launch. Done only if the property's code is known exactly (types/type_profile).
#pragma once

#include <bascule/interface/arrays/plain_array.hpp>

#include "types/type_profile.hpp"

namespace bascule::python {

/// Reads an array whose class is a KnownClass::array, from the attributes that its property reads. Returns true if the
/// property would describe a plain array; `array` is then the same as read_plain_interface would make it. Returns false
/// for everything else, including attributes that raise; the caller then calls the property, which reports the error.
/// Stores the extents in `shape`, unless it is null. May run Python code. Throws: exceptions that are not an Exception, such as KeyboardInterrupt.
bool read_numba_array(PyObject* object, PlainArray& array, Dimensions* shape);

}  // namespace bascule::python
