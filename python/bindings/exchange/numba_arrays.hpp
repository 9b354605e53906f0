// Arrays of numba-cuda, read without the property that describes them: it is written in Python, and takes longer than the rest
// of a launch. Only where its code is known to the letter (types/known_code).
#pragma once

#include <bascule/interface/arrays/plain_array.hpp>

#include "support/pybind.hpp"
#include "types/known_code.hpp"

namespace bascule::python {

/// Reads an array of a class that is `known.is(KnownClass::array)`, by the attributes that its property reads. True where
/// that would describe a plain array: `array` is what read_plain_interface makes of it. False for everything else, attributes
/// that raise included: the property is asked then, and says why. May run Python code.
/// Throws: what is not an Exception, such as KeyboardInterrupt.
bool read_numba_array(PyObject* object, PlainArray& array);

}  // namespace bascule::python
