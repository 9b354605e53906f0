// Functions of the package whose frames stay out of the traceback of an error: it ends in the user's code.
#pragma once

#include <pybind11/pybind11.h>

namespace bascule::python {

/// Binds the decorator `_public`. The result calls the function and has its name, signature and documentation; as a member
/// of a class it is a method. When the function raises, the frames of this package at the top of the traceback are left
/// out; frames of the user's code that the package called stay, and all stay while BASCULE_FULL_TRACEBACK is set and not
/// "0". `_public_with(results)` is the same decorator with a dict of what calls with one str alone return, without calling
/// the function. Needs the GIL.
void bind_public_functions(pybind11::module_& module);

}  // namespace bascule::python
