// Objects that were never initialised: `bascule.Stream.__new__(bascule.Stream)`, and what pickles of old protocols make.
#pragma once

#include <pybind11/pybind11.h>

namespace bascule::python {

/// For the classes that the module has by now: whatever uses such an object as a C++ value raises TypeError. pybind11 itself
/// would give it memory without a value.
void refuse_uninitialised_objects(const pybind11::module_& module);

}  // namespace bascule::python
