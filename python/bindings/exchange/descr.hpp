// The `descr` of an array interface as a StructLayout.
#pragma once

#include <memory>
#include <string_view>

#include <bascule/interface/types/struct_layout.hpp>

#include "support/pybind.hpp"

namespace bascule::python {

/// The `descr` of an array interface, for elements of this typestr; null where it names no fields. Throws:
/// ArgumentError (type if it is not a list of tuples, value if it contradicts the typestr).
std::shared_ptr<const StructLayout> read_descr(PyObject* descr, std::string_view typestr);

}  // namespace bascule::python
