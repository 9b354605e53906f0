// The repr of any Python object, for messages.
#pragma once

#include <string>

#include <Python.h>

namespace bascule::python {

/// Short and escaped. Never fails because of the object: where its repr raises, it is "<a TYPE>". Only
/// KeyboardInterrupt and its like come out.
std::string safe_repr(PyObject* object);

}  // namespace bascule::python
