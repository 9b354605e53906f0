// The repr of any Python object, for messages.
#pragma once

#include <string>

#include <Python.h>

namespace bascule::python {

/// Short and escaped. Never fails because of the object: where its repr raises, it is "<a TYPE>". Only
/// KeyboardInterrupt and its like come out.
std::string safe_repr(PyObject* object);

/// The text of a str; lone surrogates are escaped.
std::string escaped(PyObject* text);

}  // namespace bascule::python
