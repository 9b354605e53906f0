// Converts the `descr` of an array interface to a StructLayout.
#pragma once

#include <memory>

#include <bascule/interface/types/struct_layout.hpp>

#include "support/pybind.hpp"

namespace bascule::python {

/// Reads the `descr` of an array interface whose elements have this typestr. Null if it names no fields. Throws:
/// ArgumentError (type if it is not a list of tuples, value if it contradicts the typestr).
std::shared_ptr<const StructLayout> read_descr(PyObject* descr, std::string_view typestr);

}  // namespace bascule::python
